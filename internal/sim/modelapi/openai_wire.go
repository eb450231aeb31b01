package modelapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ductor/internal/sim/script"
)

// responseWire writes a response of the Responses API, either as a stream of events or as one object.
type responseWire struct {
	c       conversation
	model   string
	id      string
	events  events
	started bool
	seq     int
	output  []map[string]any
	open    string // type of the open item (message or reasoning); "" if none is open
	said    strings.Builder
	counted script.Usage
}

func (w *responseWire) began() bool { return w.started }

func (w *responseWire) usage(u script.Usage) { w.counted = u }

// send writes an event, unless the response is not a stream.
func (w *responseWire) send(name string, v map[string]any) error {
	if !w.c.stream {
		return nil
	}
	v["type"], v["sequence_number"] = name, w.seq
	w.seq++
	return w.events.send(name, v)
}

func (w *responseWire) response(status string) map[string]any {
	out := w.output
	if out == nil {
		out = []map[string]any{}
	}
	return map[string]any{"id": w.id, "object": "response", "created_at": unixNow(), "status": status,
		"error": nil, "incomplete_details": nil, "model": w.model, "output": out, "usage": nil}
}

func (w *responseWire) start() error {
	if w.started {
		return nil
	}
	w.started = true
	return w.send("response.created", map[string]any{"response": w.response("in_progress")})
}

func (w *responseWire) at() int { return len(w.output) - 1 }

func (w *responseWire) itemID() string { return w.output[w.at()]["id"].(string) }

func (w *responseWire) add(kind string, item map[string]any) error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.closeItem(); err != nil {
		return err
	}
	w.output = append(w.output, item)
	w.open = kind
	w.said.Reset()
	return w.send("response.output_item.added", map[string]any{"output_index": w.at(), "item": item})
}

func (w *responseWire) text(chunk string) error {
	if w.open != "message" {
		if err := w.add("message", map[string]any{"id": newID("msg_"), "type": "message", "status": "in_progress",
			"role": "assistant", "content": []any{}}); err != nil {
			return err
		}
		if err := w.send("response.content_part.added", w.part(map[string]any{
			"part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}}})); err != nil {
			return err
		}
	}
	w.said.WriteString(chunk)
	return w.send("response.output_text.delta", w.part(map[string]any{"delta": chunk}))
}

// part adds the fields that identify the open part of a message to an event.
func (w *responseWire) part(v map[string]any) map[string]any {
	v["item_id"], v["output_index"], v["content_index"] = w.itemID(), w.at(), 0
	return v
}

func (w *responseWire) think(chunk string) error {
	if w.open != "reasoning" {
		if err := w.add("reasoning", map[string]any{"id": newID("rs_"), "type": "reasoning",
			"summary": []any{}}); err != nil {
			return err
		}
		if err := w.send("response.reasoning_summary_part.added", w.summary(map[string]any{
			"part": map[string]any{"type": "summary_text", "text": ""}})); err != nil {
			return err
		}
	}
	w.said.WriteString(chunk)
	return w.send("response.reasoning_summary_text.delta", w.summary(map[string]any{"delta": chunk}))
}

func (w *responseWire) summary(v map[string]any) map[string]any {
	v["item_id"], v["output_index"], v["summary_index"] = w.itemID(), w.at(), 0
	return v
}

func (w *responseWire) closeItem() error {
	if w.open == "" {
		return nil
	}
	kind, said, item := w.open, w.said.String(), w.output[w.at()]
	w.open = ""
	var err error
	switch kind {
	case "message":
		item["status"] = "completed"
		item["content"] = []any{map[string]any{"type": "output_text", "text": said, "annotations": []any{}}}
		err = w.send("response.output_text.done", w.part(map[string]any{"text": said}))
	case "reasoning":
		item["summary"] = []any{map[string]any{"type": "summary_text", "text": said}}
		item["encrypted_content"] = "c2ltdWxhdGVk"
		err = w.send("response.reasoning_summary_text.done", w.summary(map[string]any{"text": said}))
	}
	if err != nil {
		return err
	}
	return w.send("response.output_item.done", map[string]any{"output_index": w.at(), "item": item})
}

// shell calls the CLI's shell tool. The name and the parameters of the tool differ between CLIs.
func (w *responseWire) shell(st script.Tool) error {
	command := st.Command
	switch name := cmp.Or(st.As, w.c.offered("exec_command", "shell_command", "shell", "exec", "bash")); name {
	case "exec_command":
		in := map[string]any{"cmd": command}
		if st.Dir != "" {
			in["workdir"] = st.Dir
		}
		if st.Ask {
			in["sandbox_permissions"], in["justification"] = "require_escalated", "The script asks for it"
		}
		return w.function(name, in)
	case "shell_command":
		in := map[string]any{"command": command}
		if st.Dir != "" {
			in["workdir"] = st.Dir
		}
		return w.function(name, in)
	case "shell":
		return w.function(name, map[string]any{"command": []string{"bash", "-lc", command}})
	case "bash":
		return w.function(name, copilotShell(command))
	case "exec":
		where := ""
		if st.Dir != "" {
			where = ", workdir: " + jsString(st.Dir)
		}
		return w.custom(name, "const r = await tools.exec_command({cmd: "+jsString(command)+where+
			"});\ntext(r.output);\n")
	}
	return w.text("script: the request offers no shell tool")
}

// patchAdding returns a patch that adds a file, in OpenAI's format.
func patchAdding(path, body string) string {
	var patch strings.Builder
	fmt.Fprintf(&patch, "*** Begin Patch\n*** Add File: %s\n", path)
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		fmt.Fprintf(&patch, "+%s\n", line)
	}
	return patch.String() + "*** End Patch\n"
}

// write adds a file by calling the CLI's tool for patches.
func (w *responseWire) write(path, body string) error {
	patch := patchAdding(path, body)
	switch name := w.c.offered("apply_patch", "exec", "create"); name {
	case "create":
		return w.function(name, map[string]any{"path": path, "file_text": body})
	case "apply_patch":
		return w.custom(name, patch)
	case "exec":
		return w.custom(name, "text(await tools.apply_patch("+jsString(patch)+"));\n")
	}
	return w.text("script: the request offers no file tool")
}

// use calls a tool. If the tool expects a text, use sends the value of "input" as this text.
func (w *responseWire) use(tool string, input map[string]any) error {
	if text, ok := input["input"].(string); ok && slices.Contains(w.c.free, tool) {
		return w.custom(tool, text)
	}
	return w.function(tool, input)
}

// search simulates a call of the model's tool search. In its next request, the CLI offers the tools that the search
// found.
func (w *responseWire) search(query string) error {
	return w.add("tool_search_call", map[string]any{"id": newID("tsc_"), "type": "tool_search_call",
		"status":  "completed",
		"call_id": newID("call_"), "execution": "client", "arguments": map[string]any{"query": query}})
}

// jsString returns s as a JavaScript literal.
func jsString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func (w *responseWire) function(name string, input map[string]any) error {
	b, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode tool input: %w", err)
	}
	item := map[string]any{"id": newID("fc_"), "type": "function_call", "status": "in_progress",
		"call_id": newID("call_"), "name": name, "arguments": ""}
	if space := w.c.spaces[name]; space != "" {
		item["namespace"] = space
	}
	if err := w.add("function_call", item); err != nil {
		return err
	}
	if err := w.send("response.function_call_arguments.delta", map[string]any{
		"item_id": item["id"], "output_index": w.at(), "delta": string(b)}); err != nil {
		return err
	}
	item["status"], item["arguments"] = "completed", string(b)
	return w.send("response.function_call_arguments.done", map[string]any{
		"item_id": item["id"], "output_index": w.at(), "arguments": string(b)})
}

func (w *responseWire) custom(name, input string) error {
	item := map[string]any{"id": newID("ctc_"), "type": "custom_tool_call", "status": "in_progress",
		"call_id": newID("call_"), "name": name, "input": ""}
	if err := w.add("custom_tool_call", item); err != nil {
		return err
	}
	if err := w.send("response.custom_tool_call_input.delta", map[string]any{
		"item_id": item["id"], "output_index": w.at(), "delta": input}); err != nil {
		return err
	}
	item["status"], item["input"] = "completed", input
	return nil
}

// fail ends the response with an error. If the stream has begun, the error is an event of the stream. Otherwise it is
// an HTTP status.
func (w *responseWire) fail(e script.APIError) error {
	kind, code, message := openAIFailure(e)
	if w.started && w.c.stream {
		r := w.response("failed")
		r["error"] = map[string]any{"code": code, "message": message}
		return w.send("response.failed", map[string]any{"response": r})
	}
	setErrorHeaders(w.events.w, e)
	writeJSON(w.events.w, e.Status, openAIError(kind, code, message))
	return nil
}

func openAIFailure(e script.APIError) (kind, code, message string) {
	switch e.Status {
	case http.StatusUnauthorized:
		kind, code, message = "invalid_request_error", "invalid_api_key", "Incorrect API key provided."
	case http.StatusNotFound:
		kind, code, message = "invalid_request_error", "model_not_found",
			"The model does not exist or you do not have access to it."
	case http.StatusTooManyRequests:
		kind, code, message = "requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."
	case http.StatusServiceUnavailable, 529:
		kind, code, message = "server_error", "server_is_overloaded",
			"Our servers are currently overloaded. Please try again later."
	case http.StatusForbidden:
		kind, code, message = "request_forbidden", "unsupported_country_region_territory",
			"Country, region, or territory not supported"
	case http.StatusBadRequest:
		kind, code, message = "invalid_request_error", "", "scripted error"
	default:
		kind, code, message = "server_error", "server_error", "The server had an error while processing your request."
	}
	if e.Message != "" {
		message = e.Message
	}
	return kind, code, message
}

func (w *responseWire) finish(reason script.EndReason) error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.closeItem(); err != nil {
		return err
	}
	u := w.counted
	status := "completed"
	why := map[script.EndReason]string{script.EndMaxTokens: "max_output_tokens",
		script.EndRefusal: "content_filter"}[reason]
	if why != "" {
		status = "incomplete"
	}
	r := w.response(status)
	r["usage"] = map[string]any{"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details":  map[string]any{"cached_tokens": u.Cached},
		"output_tokens_details": map[string]any{"reasoning_tokens": 7}}
	if why != "" {
		r["incomplete_details"] = map[string]any{"reason": why}
	}
	if !w.c.stream {
		writeJSON(w.events.w, http.StatusOK, r)
		return nil
	}
	return w.send("response."+status, map[string]any{"response": r})
}
