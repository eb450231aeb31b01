package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// execSink prints the events of `codex exec --json`. Without --json it prints only the last message.
type execSink struct {
	*process
	json  bool
	total tokens
}

func (s *execSink) event(kv ...any) {
	if s.json {
		s.out.line(obj(kv...))
	}
}

func (s *execSink) turnStarted(thread string) {
	s.event("type", "thread.started", "thread_id", thread)
	s.event("type", "turn.started")
}

func (s *execSink) textDelta(string, string)  {}
func (s *execSink) thinkDelta(string, string) {}

func (s *execSink) itemStarted(i codexItem) {
	if i.kind == itemCommand || i.kind == itemFile {
		s.event("type", "item.started", "item", i.execJSON())
	}
}

func (s *execSink) itemCompleted(i codexItem) {
	if i.kind == itemCompact {
		return
	}
	if !s.json && i.kind == itemMessage {
		fmt.Fprintln(s.stdout, i.text)
	}
	s.event("type", "item.completed", "item", i.execJSON())
}

func (i codexItem) execJSON() json.RawMessage {
	switch i.kind {
	case itemCommand:
		return obj("id", i.id, "type", i.kind, "command", i.command, "aggregated_output", i.output,
			"exit_code", i.exit, "status", i.status)
	case itemFile:
		return obj("id", i.id, "type", i.kind, "changes",
			[]json.RawMessage{obj("path", i.path, "kind", "add")}, "status", i.status)
	}
	return obj("id", i.id, "type", i.kind, "text", i.text)
}

func (s *execSink) apiError(message string, _ int, _ bool) {
	s.event("type", "error", "message", message)
}

func (s *execSink) usage(total, _ tokens) { s.total = total }

func (s *execSink) turnCompleted() {
	u := s.total
	s.event("type", "turn.completed", "usage", obj("input_tokens", u.Input, "cached_input_tokens", u.Cached,
		"cache_write_input_tokens", 0, "output_tokens", u.Output, "reasoning_output_tokens", u.Reasoning))
}

func (s *execSink) turnFailed(message string, _ int) {
	s.event("type", "turn.failed", "error", obj("message", message))
}

func (s *execSink) longLine(n int) []byte {
	return obj("type", "item.completed", "item",
		obj("id", "item_long", "type", "error", "message", strings.Repeat("x", n)))
}
