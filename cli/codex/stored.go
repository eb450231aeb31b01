package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"ductor/cli"
	"ductor/cli/stored"
)

var _ cli.SessionKeeper = (*Provider)(nil)

// StoredSessions implements cli.SessionKeeper.
func (p *Provider) StoredSessions(ctx context.Context, dir string) ([]cli.StoredSession, error) {
	return stored.Source{
		Agent: Agent, Launcher: p.opts.Launcher, Env: p.env(cli.Request{}), Parse: storedLine,
		Files: stored.Files{
			Homes: []string{"CODEX_HOME", "HOME/.codex"},
			Globs: []string{"sessions/*/*/*/rollout-*.jsonl"}, Has: stored.HasDir(dir),
		},
	}.List(ctx, dir)
}

// ResumeCommand implements cli.SessionKeeper.
func (p *Provider) ResumeCommand(id cli.AgentSessionID) []string {
	return []string{p.opts.Path, "resume", string(id)}
}

// storedLine parses a line of the file in which Codex stores a session. Codex stores some of its own text as the
// user's. storedLine recognizes such text by the tags around it.
func storedLine(line []byte) stored.Line {
	var l struct {
		Type    string `json:"type"`
		Payload struct {
			ID      string          `json:"id"`
			Dir     string          `json:"cwd"`
			Source  json.RawMessage `json:"source"` // an object if the session belongs to a sub-agent
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content []struct{ Text string }
		} `json:"payload"`
	}
	if !bytes.Contains(line, []byte(`"session_meta"`)) && !bytes.Contains(line, []byte(`"role":"user"`)) || json.Unmarshal(line, &l) != nil {
		return stored.Line{}
	}
	switch {
	case l.Type == "session_meta":
		return stored.Line{ID: cli.AgentSessionID(l.Payload.ID), Dir: l.Payload.Dir, Hidden: bytes.HasPrefix(l.Payload.Source, []byte("{"))}
	case l.Type != "response_item" || l.Payload.Type != "message" || l.Payload.Role != "user":
		return stored.Line{}
	}
	var said strings.Builder
	for _, part := range l.Payload.Content {
		said.WriteString(part.Text + "\n")
	}
	text := said.String()
	if strings.HasPrefix(text, "<") || strings.HasPrefix(text, "# AGENTS.md") {
		return stored.Line{}
	}
	return stored.Line{Prompt: text}
}
