package modelapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"ductor/internal/sim/script"
)

// messageWire writes a response of the Messages API, either as a stream of events or as one message.
type messageWire struct {
	c       conversation
	model   string
	id      string
	events  events
	started bool
	blocks  []map[string]any
	open    string // type of the open block; "" if none is open
	counted script.Usage
}

func (w *messageWire) began() bool { return w.started }

func (w *messageWire) usage(u script.Usage) { w.counted = u }

func (w *messageWire) usageJSON(output int64) map[string]any {
	return map[string]any{"input_tokens": w.counted.Input, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": w.counted.Cached, "output_tokens": output, "service_tier": "standard"}
}

// send writes an event of a stream. It does nothing if the client did not request a stream.
func (w *messageWire) send(v map[string]any) error {
	if !w.c.stream {
		return nil
	}
	return w.events.send(v["type"].(string), v)
}

func (w *messageWire) start() error {
	if w.started {
		return nil
	}
	w.started = true
	return w.send(map[string]any{"type": "message_start", "message": map[string]any{
		"id": w.id, "type": "message", "role": "assistant", "model": w.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": w.usageJSON(1)}})
}

// begin opens a block of the given kind. It first closes the open block, if any.
func (w *messageWire) begin(kind string, content map[string]any) error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.closeBlock(); err != nil {
		return err
	}
	w.open = kind
	w.blocks = append(w.blocks, content)
	first := map[string]any{}
	for k, v := range content {
		first[k] = v
	}
	if kind == "tool_use" {
		first["input"] = map[string]any{}
	}
	return w.send(map[string]any{"type": "content_block_start", "index": len(w.blocks) - 1, "content_block": first})
}

func (w *messageWire) closeBlock() error {
	if w.open == "" {
		return nil
	}
	if w.open == "thinking" {
		w.last()["signature"] = "c2lnbmF0dXJl"
		if err := w.delta("signature_delta", "signature", "c2lnbmF0dXJl"); err != nil {
			return err
		}
	}
	w.open = ""
	return w.send(map[string]any{"type": "content_block_stop", "index": len(w.blocks) - 1})
}

func (w *messageWire) last() map[string]any { return w.blocks[len(w.blocks)-1] }

// delta sends a piece of a block. Claude Code passes the JSON on unchanged, so the fields have the same order as in the
// real API.
func (w *messageWire) delta(kind, field, piece string) error {
	if !w.c.stream {
		return nil
	}
	text, err := json.Marshal(piece)
	if err != nil {
		return fmt.Errorf("encode a piece: %w", err)
	}
	return w.events.send("content_block_delta", json.RawMessage(fmt.Sprintf(
		`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, len(w.blocks)-1, kind, field, text)))
}

func (w *messageWire) text(chunk string) error {
	if w.open != "text" {
		if err := w.begin("text", map[string]any{"type": "text", "text": ""}); err != nil {
			return err
		}
	}
	w.last()["text"] = w.last()["text"].(string) + chunk
	return w.delta("text_delta", "text", chunk)
}

func (w *messageWire) think(chunk string) error {
	if w.open != "thinking" {
		if err := w.begin("thinking", map[string]any{"type": "thinking", "thinking": "", "signature": ""}); err != nil {
			return err
		}
	}
	w.last()["thinking"] = w.last()["thinking"].(string) + chunk
	return w.delta("thinking_delta", "thinking", chunk)
}

func (w *messageWire) shell(st script.Tool) error {
	command := st.Command
	name := cmp.Or(st.As, w.c.offered("Bash"))
	if name == "" {
		return w.text("script: the request offers no shell tool")
	}
	return w.tool(name, map[string]any{"command": command, "description": "Run a command"})
}

func (w *messageWire) write(path, body string) error {
	name := w.c.offered("Write")
	if name == "" {
		return w.text("script: the request offers no file tool")
	}
	return w.tool(name, map[string]any{"file_path": path, "content": body})
}

func (w *messageWire) use(tool string, input map[string]any) error { return w.tool(tool, input) }

func (w *messageWire) tool(name string, input map[string]any) error {
	content := map[string]any{"type": "tool_use", "id": newID("toolu_"), "name": name, "input": input}
	if err := w.begin("tool_use", content); err != nil {
		return err
	}
	b, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode tool input: %w", err)
	}
	for half := len(b) / 2; len(b) > 0; half = len(b) {
		if err := w.delta("input_json_delta", "partial_json", string(b[:half])); err != nil {
			return err
		}
		b = b[half:]
	}
	return nil
}

// fail ends the response with an error. If the stream has begun, the error is an event of the stream. Otherwise it is
// an HTTP status.
func (w *messageWire) fail(e script.APIError) error {
	kind, message := anthropicFailure(e)
	if w.started && w.c.stream {
		return w.events.send("error", anthropicError(kind, message))
	}
	setErrorHeaders(w.events.w, e)
	writeJSON(w.events.w, e.Status, anthropicError(kind, message))
	return nil
}

func anthropicFailure(e script.APIError) (kind, message string) {
	switch e.Status {
	case http.StatusUnauthorized:
		kind, message = "authentication_error", "invalid x-api-key"
	case http.StatusForbidden:
		kind, message = "permission_error", "Your API key does not have permission to use the specified resource"
	case http.StatusNotFound:
		kind, message = "not_found_error", "model: not found"
	case http.StatusTooManyRequests:
		kind, message = "rate_limit_error", "This request would exceed your account's rate limit. Please try "+
			"again later."
	case 529:
		kind, message = "overloaded_error", "Overloaded"
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		kind, message = "invalid_request_error", "scripted error"
	default:
		kind, message = "api_error", "Internal server error"
	}
	if e.Message != "" {
		message = e.Message
	}
	return kind, message
}

func (w *messageWire) finish(reason script.EndReason) error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.closeBlock(); err != nil {
		return err
	}
	stop := "end_turn"
	if n := len(w.blocks); n > 0 && w.last()["type"] == "tool_use" {
		stop = "tool_use"
	}
	switch reason {
	case script.EndMaxTokens:
		stop = "max_tokens"
	case script.EndRefusal:
		stop = "refusal"
	}
	if !w.c.stream {
		content := w.blocks
		if content == nil {
			content = []map[string]any{}
		}
		writeJSON(w.events.w, http.StatusOK, map[string]any{"id": w.id, "type": "message", "role": "assistant",
			"model": w.model, "content": content, "stop_reason": stop, "stop_sequence": nil,
			"usage": w.usageJSON(w.counted.Output)})
		return nil
	}
	err := w.send(map[string]any{"type": "message_delta",
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": w.counted.Output}})
	if err != nil {
		return err
	}
	return w.send(map[string]any{"type": "message_stop"})
}
