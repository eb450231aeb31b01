package gemini

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"ductor/cli"
	"ductor/cli/stored"
)

var _ cli.SessionKeeper = (*Provider)(nil)

// StoredSessions implements cli.SessionKeeper. Gemini stores only a digest of a session's directory.
func (p *Provider) StoredSessions(ctx context.Context, dir string) ([]cli.StoredSession, error) {
	sum := sha256.Sum256([]byte(dir))
	digest := hex.EncodeToString(sum[:])
	return stored.Source{
		Agent: Agent, Launcher: p.opts.Launcher, Env: p.env(cli.Request{}),
		Files: stored.Files{
			Homes: []string{"GEMINI_CLI_HOME/.gemini", "HOME/.gemini"},
			Globs: []string{"tmp/*/chats/session-*.jsonl"}, Has: digest,
		},
		Parse: func(line []byte) stored.Line {
			l, project := storedLine(line)
			if project == digest {
				l.Dir = dir
			}
			return l
		},
	}.List(ctx, dir)
}

// ResumeCommand implements cli.SessionKeeper.
func (p *Provider) ResumeCommand(id cli.AgentSessionID) []string {
	return []string{p.opts.Path, "--resume", string(id)}
}

// storedLine parses a line of the file in which Gemini stores a session. It also returns the digest of the project's
// directory, if the line contains one.
func storedLine(line []byte) (_ stored.Line, project string) {
	var l struct {
		ID      string `json:"sessionId"`
		Project string `json:"projectHash"`
		Kind    string `json:"kind"`
		Type    string `json:"type"`
		Content json.RawMessage
	}
	if json.Unmarshal(line, &l) != nil {
		return stored.Line{}, ""
	}
	out := stored.Line{ID: cli.AgentSessionID(l.ID), Hidden: l.Kind == "subagent"}
	if l.Type == "user" {
		out.Prompt = storedPrompt(l.Content)
	}
	return out, l.Project
}

// storedPrompt returns the text of a message of the user. It returns "" for the text with which Gemini itself describes
// a session: Gemini stores that text as a message of the user, too.
func storedPrompt(content json.RawMessage) (text string) {
	var parts []struct{ Text string }
	if bytes.HasPrefix(content, []byte(`"`)) {
		_ = json.Unmarshal(content, &text) // the line was already parsed as JSON
	} else if json.Unmarshal(content, &parts) == nil {
		var said strings.Builder
		for _, p := range parts {
			said.WriteString(p.Text + "\n")
		}
		text = said.String()
	}
	if strings.HasPrefix(text, "<session_context>") {
		return ""
	}
	return text
}
