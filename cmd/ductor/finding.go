package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// findingState is how a check ended.
type findingState string

const (
	findingOK      findingState = "ok"
	findingWarning findingState = "warning" // worth a look
	findingFailed  findingState = "failed"  // keeps ductor from working
)

// finding is the result of one check. Programs read its JSON: names stay the same from version to version.
type finding struct {
	Name  string       `json:"name"`
	State findingState `json:"state"`
	Text  string       `json:"text"`
	Fix   string       `json:"fix"` // empty only if the state is ok
}

// line is the finding for people.
func (f finding) line() string {
	mark := map[findingState]string{findingOK: "ok  ", findingWarning: "warn", findingFailed: "FAIL"}[f.State]
	line := mark + " " + f.Name
	if f.Text != "" {
		line += ": " + f.Text
	}
	if f.Fix != "" {
		line += "; fix: " + f.Fix
	}
	return line
}

// findings are the results of all checks, in order.
type findings []finding

// add notes a finding. Each text becomes one line: errors of programs often have several, and blank ones between them.
func (fs *findings) add(f finding) {
	f.Text, f.Fix = oneLine(f.Text), oneLine(f.Fix)
	*fs = append(*fs, f)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// failed counts what keeps ductor from working.
func (fs findings) failed() (n int) {
	for _, f := range fs {
		if f.State == findingFailed {
			n++
		}
	}
	return n
}

func (fs findings) writeText(out io.Writer) error {
	for _, f := range fs {
		if _, err := fmt.Fprintln(out, f.line()); err != nil {
			return fmt.Errorf("write findings: %w", err)
		}
	}
	return nil
}

func (fs findings) writeJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(fs); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}
