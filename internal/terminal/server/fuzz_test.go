package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/internal/terminal/hook"
	"ductor/lang"
)

// A hook gets at most one answer, and no secret is reported, whatever the hook sends.
func FuzzHook(f *testing.F) {
	f.Add("claude", []byte(`{"hook_event_name":"PermissionRequest","session_id":"a","tool_name":"Bash","tool_input":{"command":"ls sk-very-secret-value"}}`))
	f.Add("gemini", []byte(`{"hook_event_name":"Notification","message":"sk-very-secret-value"}`))
	f.Add("codex", []byte(`{"type":"agent-turn-complete","thread-id":"t","last-assistant-message":"done"}`))
	f.Fuzz(func(t *testing.T, agent string, said []byte) {
		c := &chat{}
		s := New(Options{
			Away: func(context.Context) bool { return true }, Wait: 1 << 40, Chat: c,
			Secrets: func(string) *secrets.Set { return secrets.NewSet("sk-very-secret-value") },
			Ask: func(context.Context, Session, string, cli.Event) (cli.Decision, error) {
				return cli.Decision{Allow: true}, nil
			},
			Seen: func(context.Context, Session) error { return nil }, Lang: func() lang.Printer { return lang.Printer{} },
			Name: func(a cli.Agent) string { return string(a) }, Log: slog.New(slog.DiscardHandler),
		})
		answers := 0
		h := hookCall{Message: hook.Message{Agent: agent, Dir: "/d", Event: said}, s: s, send: func(hook.Answer) error { answers++; return nil }}
		if json.Unmarshal(said, &h.event) != nil {
			return
		}
		h.handle(t.Context(), func() {})
		for _, text := range c.all {
			if bytes.Contains([]byte(text), []byte("sk-very-secret-value")) {
				t.Fatalf("%q is reported", text)
			}
		}
	})
}
