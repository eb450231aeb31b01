package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// State is the outcome of a check.
type State string

const (
	OK      State = "ok"
	Warning State = "warning" // worth attention
	Failed  State = "failed"  // prevents ductor from working
)

type check string

const (
	configuration check = "configuration"
	key           check = "key"
	proxy         check = "telegram.proxy"
	telegram      check = "Telegram"
	allowlist     check = "allowlist"
	groups        check = "control groups"
	database      check = "storage"
	backup        check = "backup"
	damaged       check = "damaged database"
	disk          check = "disk"
	homeDisk      check = "home" // disk with the home directories of agents
	defaultDir    check = "projects.default_dir"
	webhooks      check = "webhooks"
	jobs          check = "jobs"
	forgetting    check = "forgetting" // amount of old data that ductor will delete next
	agents        check = "agents"
	agent         check = "agent"
	tools         check = "tools"
	server        check = "MCP server"
	models        check = "models"
	roles         check = "roles"
	sandboxes     check = "sandboxes"
	sandbox       check = "sandbox"
)

func (c check) named(name string) check { return c + " " + check(name) }

// Finding is the result of one check. Programs parse its JSON, so the names of checks must not change between
// versions.
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Fix   string `json:"fix"` // how to fix the problem; never empty for Warning and Failed
}

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

// Findings is the list of the results of all checks.
type Findings []Finding

// appendFinding appends a finding. It joins the lines of each text, because errors of programs often have several
// lines.
func (fs *Findings) appendFinding(f Finding) {
	f.Text, f.Fix = oneLine(f.Text), oneLine(f.Fix)
	*fs = append(*fs, f)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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

// WriteJSON writes the findings as a JSON array.
func (fs Findings) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(fs); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}
