package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// State is how a check ended.
type State string

// The states.
const (
	OK      State = "ok"
	Warning State = "warning" // worth a look
	Failed  State = "failed"  // keeps ductor from working
)

// check is the name of a check, or how those of several things begin.
type check string

// The checks.
const (
	configuration check = "configuration"
	key           check = "key" // of an agent
	proxy         check = "telegram.proxy"
	telegram      check = "Telegram"
	allowlist     check = "allowlist"
	groups        check = "control groups"
	database      check = "storage"
	backup        check = "backup"
	damaged       check = "damaged database"
	disk          check = "disk"
	homeDisk      check = "home" // of the agents
	defaultDir    check = "projects.default_dir"
	webhooks      check = "webhooks"
	jobs          check = "jobs"
	forgetting    check = "forgetting" // what retention would delete
	agents        check = "agents"
	agent         check = "agent"
	tools         check = "tools"
	models        check = "models"
	roles         check = "roles"
	sandboxes     check = "sandboxes"
	sandbox       check = "sandbox"
)

// of is the check of one thing.
func (c check) of(name string) check { return c + " " + check(name) }

// Finding is the result of one check. Programs read its JSON: names stay the same from version to version.
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Fix   string `json:"fix"` // empty only if the state is ok
}

// line is the finding for people.
func (f Finding) line() string {
	mark := map[State]string{OK: "ok  ", Warning: "warn", Failed: "FAIL"}[f.State]
	line := mark + " " + f.Name
	if f.Text != "" {
		line += ": " + f.Text
	}
	if f.Fix != "" {
		line += "; fix: " + f.Fix
	}
	return line
}

// Findings are the results of all checks, in order.
type Findings []Finding

// add notes a finding. Each text becomes one line: errors of programs often have several, and blank ones between them.
func (fs *Findings) add(f Finding) {
	f.Text, f.Fix = oneLine(f.Text), oneLine(f.Fix)
	*fs = append(*fs, f)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Failed counts what keeps ductor from working.
func (fs Findings) Failed() (n int) {
	for _, f := range fs {
		if f.State == Failed {
			n++
		}
	}
	return n
}

// WriteText writes a line for each finding.
func (fs Findings) WriteText(out io.Writer) error {
	for _, f := range fs {
		if _, err := fmt.Fprintln(out, f.line()); err != nil {
			return fmt.Errorf("write findings: %w", err)
		}
	}
	return nil
}

// WriteJSON writes an array of the findings.
func (fs Findings) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(fs); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}
