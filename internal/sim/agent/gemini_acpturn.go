package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prompt starts a turn. It first cancels the running turn of the session, if any.
func (s *acpServer) prompt(in acpLine) {
	session := s.session(in)
	if session == nil {
		return
	}
	var p struct {
		Prompt []struct{ Type, Text, Data string } `json:"prompt"`
	}
	if json.Unmarshal(in.Params, &p) != nil || len(p.Prompt) == 0 {
		s.refuse(in, -32602, "Invalid params", "prompt is required")
		return
	}
	var words []string
	for _, b := range p.Prompt {
		if b.Type == "text" {
			words = append(words, b.Text)
		}
	}
	if session.cancel != nil {
		session.cancel(errInterrupted)
		<-session.done
	}
	prompt := strings.Join(words, "\n")
	if strings.HasPrefix(strings.TrimSpace(prompt), "/memory") {
		s.update(session.id, "sessionUpdate", "agent_message_chunk", "content",
			obj("type", "text", "text", "a command, not a prompt"))
		s.reply(in, obj("stopReason", "end_turn"))
		return
	}
	ctx, cancel := context.WithCancelCause(s.life)
	session.cancel, session.done = cancel, make(chan struct{})
	if s.acpHas("title") != "" {
		s.update(session.id, "sessionUpdate", "session_info_update", "title", sessionTitle(newestText(prompt)))
	}
	t := &geminiTurn{process: s.inDir(session.dir), ctx: ctx, session: session.id, dir: session.dir,
		mode: s.allowance(session),
		sink: &acpSink{s: s, session: session.id}}
	go s.play(in, t, session.model, prompt, session.done)
}

// inDir returns a copy of the process that has the working directory of a session.
func (s *acpServer) inDir(dir string) *process {
	p := *s.process
	p.dir = dir
	return &p
}

func (s *acpServer) play(in acpLine, t *geminiTurn, model, prompt string, done chan struct{}) {
	defer close(done)
	err := t.run(prompt)
	defer func() {
		for _, late := range t.late {
			for late.File != "" && sleep(s.life, 10*time.Millisecond) == nil {
				if _, err := os.Stat(filepath.Join(t.dir, late.File)); err == nil {
					break
				}
			}
			_ = sleep(s.life, late.After)
			t.sink.text(late.Text)
		}
	}()
	var exit exitError
	var failure geminiFailure
	u := t.counted()
	count := obj("input_tokens", u.Input, "output_tokens", u.Output)
	switch {
	case errors.As(err, &exit):
		select {
		case s.exits <- exit.code:
		default:
		}
	case errors.As(err, &failure):
		s.refuse(in, failure.status, failure.message, "")
	case err != nil:
		s.reply(in, obj("stopReason", "cancelled"))
	default:
		s.reply(in, obj("stopReason", "end_turn", "_meta", obj("quota", obj("token_count", count,
			"model_usage", []json.RawMessage{obj("model", model, "token_count", count)}))))
	}
}

// acpSink reports a turn as session/update notifications.
type acpSink struct {
	s       *acpServer
	session string
}

func (k *acpSink) text(chunk string) {
	k.s.update(k.session, "sessionUpdate", "agent_message_chunk", "content", obj("type", "text", "text", chunk))
}

func (k *acpSink) think(chunk string) {
	k.s.update(k.session, "sessionUpdate", "agent_thought_chunk", "content", obj("type", "text", "text", chunk))
}

func (c geminiCall) acp(status string, content []json.RawMessage) []any {
	if content == nil {
		content = []json.RawMessage{}
	}
	locations := []json.RawMessage{}
	if c.path != "" {
		locations = append(locations, obj("path", c.path))
	}
	return []any{"toolCallId", c.id, "status", status, "title", c.title, "content", content, "locations", locations,
		"kind", c.kind}
}

func (c geminiCall) diff() []json.RawMessage {
	if c.path == "" {
		return nil
	}
	kind := "modify"
	if c.before == "" {
		kind = "add"
	}
	return []json.RawMessage{obj("type", "diff", "path", c.path, "oldText", c.before, "newText", c.body, "_meta",
		obj("kind", kind))}
}

func said(text string) []json.RawMessage {
	return []json.RawMessage{obj("type", "content", "content", obj("type", "text", "text", text))}
}

// permit asks the client for permission. Like Gemini, it waits for the answer even if the turn is cancelled.
func (k *acpSink) permit(ctx context.Context, c geminiCall) (bool, error) {
	content := c.diff()
	if content == nil {
		content = said("[current working directory " + k.s.dir + "] (Run a command)")
	}
	answer := k.s.ask("session/request_permission", obj("sessionId", k.session, "options", permitOptions(),
		"toolCall", obj(c.acp("pending", content)...)))
	var r struct {
		Outcome struct{ Outcome, OptionID string } `json:"outcome"`
	}
	if json.Unmarshal(bytes.TrimSpace(answer), &r) != nil {
		return false, context.Cause(ctx)
	}
	return strings.HasPrefix(r.Outcome.OptionID, "proceed"), context.Cause(ctx)
}

func permitOptions() []json.RawMessage {
	return []json.RawMessage{
		obj("optionId", "proceed_always", "name", "Allow for this session", "kind", "allow_always"),
		obj("optionId", "proceed_once", "name", "Allow", "kind", "allow_once"),
		obj("optionId", "cancel", "name", "Reject", "kind", "reject_once"),
	}
}

// toolStarted reports the start of a tool call. It does nothing if a request for permission has already shown the call
// to the client.
func (k *acpSink) toolStarted(c geminiCall) {
	if !c.asked {
		k.s.update(k.session, append([]any{"sessionUpdate", "tool_call"}, c.acp("in_progress", nil)...)...)
	}
}

func (k *acpSink) toolEnded(c geminiCall) {
	content, status := c.diff(), "completed"
	switch {
	case c.failed != "":
		content, status = said(c.failed), "failed"
	case content == nil && c.output != "":
		content = said(c.output)
	}
	k.s.update(k.session, append([]any{"sessionUpdate", "tool_call_update"}, c.acp(status, content)...)...)
}

func (k *acpSink) longLine(n int) []byte {
	return obj("jsonrpc", "2.0", "method", "session/update", "params", obj("sessionId", k.session, "update",
		obj("sessionUpdate", "agent_thought_chunk", "content", obj("type", "text", "text", strings.Repeat("x", n)))))
}

var _ geminiSink = (*acpSink)(nil)
