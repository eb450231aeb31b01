package modelapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ductor/internal/sim/script"
)

// chatWire writes a response of the Chat Completions API, either as a stream of events or as one object.
type chatWire struct {
	c         conversation
	w         http.ResponseWriter
	model     string
	id        string
	started   bool
	said      strings.Builder
	calls     []any
	counted   script.Usage
	tellUsage bool // the request asks for usage in the stream
}

func (w *chatWire) began() bool { return w.started }

func (w *chatWire) usage(u script.Usage) { w.counted = u }

func (w *chatWire) delta(d map[string]any) error {
	if !w.c.stream {
		return nil
	}
	if !w.started {
		d["role"] = "assistant"
	}
	w.started = true
	return w.send(w.object("chat.completion.chunk", map[string]any{"index": 0, "delta": d, "finish_reason": nil}))
}

func (w *chatWire) object(kind string, choices ...any) map[string]any {
	if choices == nil {
		choices = []any{}
	}
	return map[string]any{"id": w.id, "object": kind, "created": unixNow(), "model": w.model, "choices": choices}
}

// send writes an event without a name.
func (w *chatWire) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return w.event(string(b))
}

func (w *chatWire) event(data string) error {
	w.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if _, err := fmt.Fprintf(w.w, "data: %s\n\n", data); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return http.NewResponseController(w.w).Flush()
}

func (w *chatWire) text(chunk string) error {
	w.said.WriteString(chunk)
	return w.delta(map[string]any{"content": chunk})
}

// think sends reasoning in the field reasoning_content, like servers for open models. OpenAI's own server sends no
// reasoning.
func (w *chatWire) think(chunk string) error {
	return w.delta(map[string]any{"reasoning_content": chunk})
}

// shell calls the CLI's shell tool. The name and the parameters of the tool differ between CLIs.
func (w *chatWire) shell(st script.Tool) error {
	in := map[string]any{"command": st.Command, "description": "Run a command"}
	switch name := cmp.Or(st.As, w.c.offered("run_shell_command", "bash", "run_commands")); name {
	case "run_shell_command":
		in["is_background"] = false
		return w.use(name, in)
	case "bash":
		return w.use(name, in)
	case "run_commands":
		return w.use(name, map[string]any{"commands": []string{st.Command}})
	}
	return w.text("script: the request offers no shell tool")
}

func (w *chatWire) write(path, body string) error {
	switch name := w.c.offered("write_file", "write", "apply_patch"); name {
	case "write_file":
		return w.use(name, map[string]any{"file_path": path, "content": body})
	case "write":
		return w.use(name, map[string]any{"filePath": path, "content": body})
	case "apply_patch":
		return w.use(name, map[string]any{"input": patchAdding(path, body)})
	}
	return w.text("script: the request offers no file tool")
}

func (w *chatWire) use(tool string, input map[string]any) error {
	b, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode tool input: %w", err)
	}
	call := map[string]any{"index": len(w.calls), "id": newID("call_"), "type": "function",
		"function": map[string]any{"name": tool, "arguments": string(b)}}
	w.calls = append(w.calls, call)
	return w.delta(map[string]any{"tool_calls": []any{call}})
}

// fail ends the response with an error. If the stream has begun, the error is an event of the stream. Otherwise it is
// an HTTP status.
func (w *chatWire) fail(e script.APIError) error {
	kind, code, message := openAIFailure(e)
	if w.started && w.c.stream {
		return w.send(openAIError(kind, code, message))
	}
	setErrorHeaders(w.w, e)
	writeJSON(w.w, e.Status, openAIError(kind, code, message))
	return nil
}

func (w *chatWire) finish(reason script.EndReason) error {
	why := map[script.EndReason]string{script.EndMaxTokens: "length", script.EndRefusal: "content_filter"}[reason]
	if why == "" && len(w.calls) > 0 {
		why = "tool_calls"
	}
	why = cmp.Or(why, "stop")
	usage := map[string]any{"prompt_tokens": w.counted.Input, "completion_tokens": w.counted.Output,
		"total_tokens":          w.counted.Input + w.counted.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": w.counted.Cached}}
	if !w.c.stream {
		message := map[string]any{"role": "assistant", "content": w.said.String()}
		if w.calls != nil {
			message["tool_calls"] = w.calls
		}
		whole := w.object("chat.completion", map[string]any{"index": 0, "message": message, "finish_reason": why})
		whole["usage"] = usage
		writeJSON(w.w, http.StatusOK, whole)
		return nil
	}
	if err := w.send(w.object("chat.completion.chunk",
		map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": why})); err != nil {
		return err
	}
	if w.tellUsage {
		last := w.object("chat.completion.chunk")
		last["usage"] = usage
		if err := w.send(last); err != nil {
			return err
		}
	}
	return w.event("[DONE]")
}
