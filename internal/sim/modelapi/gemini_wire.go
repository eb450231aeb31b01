package modelapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"ductor/internal/sim/script"
)

// geminiWire writes a response of Gemini's API, either as a stream of events or as one object.
type geminiWire struct {
	c       conversation
	w       http.ResponseWriter
	model   string
	id      string
	started bool
	parts   []any // parts sent so far, if the response is not a stream
	counted script.Usage
}

func (w *geminiWire) began() bool { return w.started }

func (w *geminiWire) usage(u script.Usage) { w.counted = u }

func (w *geminiWire) part(p map[string]any) error {
	w.started = true
	if !w.c.stream {
		w.parts = append(w.parts, p)
		return nil
	}
	return w.send(w.response([]any{p}, ""))
}

// send writes an event without a name.
func (w *geminiWire) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	w.w.Header().Set("Content-Type", "text/event-stream")
	if _, err := fmt.Fprintf(w.w, "data: %s\r\n\r\n", b); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return http.NewResponseController(w.w).Flush()
}

func (w *geminiWire) response(parts []any, finish string) map[string]any {
	candidate := map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	u := w.counted
	return map[string]any{"candidates": []any{candidate}, "modelVersion": w.model, "responseId": w.id,
		"usageMetadata": map[string]any{"promptTokenCount": u.Input, "candidatesTokenCount": u.Output,
			"cachedContentTokenCount": u.Cached, "totalTokenCount": u.Input + u.Output}}
}

func (w *geminiWire) text(chunk string) error { return w.part(map[string]any{"text": chunk}) }

func (w *geminiWire) think(chunk string) error {
	return w.part(map[string]any{"text": "**Considering**\n" + chunk, "thought": true})
}

func (w *geminiWire) shell(st script.Tool) error {
	command := st.Command
	name := cmp.Or(st.As, w.c.offered("run_shell_command"))
	if name == "" {
		return w.text("script: the request offers no shell tool")
	}
	return w.call(name, map[string]any{"command": command, "description": "Run a command"})
}

func (w *geminiWire) write(path, body string) error {
	name := w.c.offered("write_file")
	if name == "" {
		return w.text("script: the request offers no file tool")
	}
	return w.call(name, map[string]any{"file_path": path, "content": body})
}

func (w *geminiWire) use(tool string, input map[string]any) error { return w.call(tool, input) }

func (w *geminiWire) call(name string, args map[string]any) error {
	return w.part(map[string]any{"functionCall": map[string]any{"id": newID("fc_"), "name": name, "args": args}})
}

// fail ends the response with an error. If the stream has begun, fail writes the error as plain JSON, like Google's
// server, and not as an event. Otherwise the error is an HTTP status.
func (w *geminiWire) fail(e script.APIError) error {
	if !w.started || !w.c.stream {
		setErrorHeaders(w.w, e)
		writeJSON(w.w, e.Status, geminiError(e.Status, e.Message))
		return nil
	}
	b, err := json.Marshal(geminiError(e.Status, e.Message))
	if err != nil {
		return fmt.Errorf("encode error: %w", err)
	}
	// The client must read the earlier text first. If it reads the text and the error together, it takes the error for
	// text.
	time.Sleep(cutLinger)
	if _, err := w.w.Write(b); err != nil {
		return fmt.Errorf("send error: %w", err)
	}
	return http.NewResponseController(w.w).Flush()
}

func (w *geminiWire) finish(reason script.EndReason) error {
	why := "STOP"
	switch reason {
	case script.EndMaxTokens:
		why = "MAX_TOKENS"
	case script.EndRefusal:
		why = "SAFETY"
	}
	if !w.c.stream {
		if w.parts == nil {
			w.parts = []any{map[string]any{"text": ""}}
		}
		writeJSON(w.w, http.StatusOK, w.response(w.parts, why))
		return nil
	}
	return w.send(w.response([]any{map[string]any{"text": ""}}, why))
}

// decide answers the CLI's own questions: which model to use, and who speaks next.
func (w *geminiWire) decide() error {
	answer, err := json.Marshal(map[string]any{"reasoning": "scripted", "next_speaker": "user", "model_choice": "pro",
		"complexity_reasoning": "scripted", "complexity_score": 50})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if err := w.text(string(answer)); err != nil {
		return err
	}
	return w.finish("")
}
