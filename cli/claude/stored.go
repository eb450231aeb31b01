package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"ductor/cli"
	"ductor/cli/stored"
)

var _ cli.SessionKeeper = (*Provider)(nil)

// projectName returns a glob pattern for the folder in which Claude stores the sessions of a directory. The folder is
// named after the path of the directory, with each character that is not a letter or digit replaced by a dash. If the
// name is long, Claude cuts it and adds a suffix.
func projectName(dir string) string {
	name := regexp.MustCompile(`[^a-zA-Z0-9]`).ReplaceAllString(dir, "-")
	if len(name) > 200 {
		return name[:200] + "*"
	}
	return name
}

// StoredSessions implements cli.SessionKeeper.
func (p *Provider) StoredSessions(ctx context.Context, dir string) ([]cli.StoredSession, error) {
	return stored.Source{
		Agent: agent, Launcher: p.opts.Launcher, Env: p.environment(cli.Request{}), Parse: storedLine,
		Files: stored.Files{
			Homes: []string{"CLAUDE_CONFIG_DIR", "HOME/.claude"},
			Globs: []string{"projects/" + projectName(dir) + "/*.jsonl"},
		},
	}.List(ctx, dir)
}

// ResumeCommand implements cli.SessionKeeper.
func (p *Provider) ResumeCommand(id cli.AgentSessionID) []string {
	return []string{p.opts.Path, "--resume", string(id)}
}

// storedLine parses a line of the file in which Claude stores a session.
func storedLine(line []byte) stored.Line {
	var l struct {
		Type      string `json:"type"`
		ID        string `json:"sessionId"`
		Dir       string `json:"cwd"`
		Sidechain bool   `json:"isSidechain"`
		Meta      bool   `json:"isMeta"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if !bytes.Contains(line, []byte(`"sessionId"`)) || json.Unmarshal(line, &l) != nil {
		return stored.Line{}
	}
	out := stored.Line{ID: cli.AgentSessionID(l.ID), Dir: l.Dir, Hidden: l.Sidechain}
	if l.Type == "user" && !l.Meta {
		out.Prompt = storedPrompt(l.Message.Content)
	}
	return out
}

// storedPrompt returns the text that a user wrote. It returns "" for results of tools and for output of Claude's
// commands.
func storedPrompt(content json.RawMessage) string {
	var text string
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &text) != nil && json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var said strings.Builder
	for _, b := range blocks {
		if b.Type == "text" {
			said.WriteString(b.Text + "\n")
		}
	}
	text += said.String()
	for _, mark := range []string{"<command-", "<local-command-", "<bash-", "[Request interrupted"} {
		if strings.HasPrefix(text, mark) {
			return ""
		}
	}
	return text
}
