package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// geminiPrinter prints the events of `gemini -o stream-json`. If json is false, it prints only the answer.
type geminiPrinter struct {
	*process
	json  bool
	model string
	start time.Time
	tools int
}

func (s *geminiPrinter) event(kind string, kv ...any) {
	if s.json {
		s.out.line(obj(append([]any{"type", kind, "timestamp", timestamp()}, kv...)...))
	}
}

func (s *geminiPrinter) begin(session, prompt string) {
	s.start = time.Now()
	s.event("init", "session_id", session, "model", s.model)
	s.event("message", "role", "user", "content", prompt)
}

func (s *geminiPrinter) text(chunk string) {
	if !s.json {
		fmt.Fprint(s.stdout, chunk)
	}
	s.event("message", "role", "assistant", "content", chunk, "delta", true)
}

func (s *geminiPrinter) think(string) {}

func (s *geminiPrinter) permit(_ context.Context, c geminiCall) (bool, error) {
	s.event("tool_use", "tool_name", c.name, "tool_id", c.id, "parameters", c.parameters())
	s.event("tool_result", "tool_id", c.id, "status", "error", "output", "Tool execution denied by policy.",
		"error", obj("type", "policy_violation", "message", "Tool execution denied by policy."))
	return false, nil
}

func (c geminiCall) parameters() json.RawMessage {
	if c.path != "" {
		return obj("file_path", c.path, "content", c.body)
	}
	return obj("command", c.command)
}

func (s *geminiPrinter) toolStarted(c geminiCall) {
	s.tools++
	s.event("tool_use", "tool_name", c.name, "tool_id", c.id, "parameters", c.parameters())
}

func (s *geminiPrinter) toolEnded(c geminiCall) {
	if c.failed != "" {
		s.event("tool_result", "tool_id", c.id, "status", "error", "output", c.failed,
			"error", obj("type", "execution_failed", "message", c.failed))
		return
	}
	s.event("tool_result", "tool_id", c.id, "status", "success", "output", c.output)
}

func (s *geminiPrinter) longLine(n int) []byte {
	return obj("type", "error", "timestamp", timestamp(), "severity", "warning", "message", strings.Repeat("x", n))
}

// end prints the result and returns the exit code.
func (s *geminiPrinter) end(t *geminiTurn, err error) int {
	var exit exitError
	var failure geminiFailure
	u := t.counted()
	stats := obj("total_tokens", u.Input+u.Output, "input_tokens", u.Input, "output_tokens", u.Output, "cached",
		u.Cached,
		"input", u.Input-u.Cached, "duration_ms", time.Since(s.start).Milliseconds(), "tool_calls", s.tools,
		"models", obj(s.model, obj("total_tokens", u.Input+u.Output, "input_tokens", u.Input, "output_tokens", u.Output,
			"cached", u.Cached, "input", u.Input-u.Cached)))
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &failure):
		s.event("result", "status", "error", "error",
			obj("type", "unknown", "message", "[API Error: "+failure.message+"]"), "stats", stats)
		if failure.status == 404 {
			return 1
		}
		return failure.status % 256
	case err != nil:
		return 0
	}
	if !s.json {
		fmt.Fprintln(s.stdout)
	}
	s.event("result", "status", "success", "stats", stats)
	return 0
}
