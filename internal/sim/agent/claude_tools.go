package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/script"
)

// toolOutcome is the result of a tool for the model.
type toolOutcome struct {
	text   string
	failed bool
	bare   bool            // omit the field is_error if the tool succeeded
	detail json.RawMessage // value of tool_use_result, if the tool succeeded
}

// permission decides whether a tool may run.
type permission int

const (
	allow permission = iota
	ask
	deny
)

const rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was " +
	"a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."

// tool simulates a tool call. It prints the call, asks for permission if necessary, runs the tool, and prints the
// result.
func (t *claudeTurn) tool(name string, input []any, perm permission,
	run func(json.RawMessage) (toolOutcome, error)) (err error) {
	return t.toolOf(name, obj(input...), perm, run)
}

// toolOf is like tool, for input that is already JSON.
func (t *claudeTurn) toolOf(name string, in json.RawMessage, perm permission,
	run func(json.RawMessage) (toolOutcome, error)) (err error) {
	id := t.stream.toolID()
	t.stream.toolUse(id, name, in)
	t.tools++
	t.inTool = true
	defer func() { t.inTool = err != nil }()
	if perm == ask && t.args.promptTool != "stdio" {
		perm = deny
	}
	if perm == ask {
		return t.askThenRun(id, name, in, run)
	}
	t.stream.end("tool_use")
	if perm == deny {
		t.refuse(id, name, in, "Claude requested permissions to use "+name+", but you haven't granted it yet.")
		return nil
	}
	return t.runAndReport(id, name, in, run)
}

func (t *claudeTurn) runAndReport(id, name string, in json.RawMessage,
	run func(json.RawMessage) (toolOutcome, error)) error {
	out, err := run(in)
	var exit exitError
	if errors.As(err, &exit) {
		return err
	}
	if err != nil {
		t.toolResult(id, toolOutcome{text: rejected, failed: true}, "User rejected tool use")
		return err
	}
	if out.failed {
		t.toolResult(id, out, "Error: "+out.text)
		return nil
	}
	t.toolResult(id, out, out.detail)
	return nil
}

func (t *claudeTurn) toolResult(id string, out toolOutcome, detail any) {
	kv := []any{"tool_use_id", id, "type", "tool_result", "content", out.text}
	if !out.bare {
		kv = append(kv, "is_error", out.failed)
	}
	t.emit(t.userEvent([]json.RawMessage{obj(kv...)}, "tool_use_result", detail))
}

// refuse prints the result of a tool call that was denied.
func (t *claudeTurn) refuse(id, name string, in json.RawMessage, why string) {
	t.refused = append(t.refused, obj("tool_name", name, "tool_use_id", id, "tool_input", in))
	t.toolResult(id, toolOutcome{text: why, failed: true}, "Error: "+why)
}

// decision is the client's answer to a can_use_tool request.
type decision struct {
	Behavior     string          `json:"behavior"`
	Message      string          `json:"message"`
	Interrupt    bool            `json:"interrupt"`
	UpdatedInput json.RawMessage `json:"updatedInput"`
}

// askThenRun asks the client for permission, and runs the tool if the client allows it. It waits without a time limit.
func (t *claudeTurn) askThenRun(id, name string, in json.RawMessage,
	run func(json.RawMessage) (toolOutcome, error)) error {
	request := newUUID()
	answer := t.answers.expect(request)
	t.emit(obj("type", "control_request", "request_id", request, "request", obj("subtype", "can_use_tool",
		"tool_name", name, "display_name", name, "input", in, "description", "Run a command",
		"permission_suggestions", []json.RawMessage{obj("type", "setMode", "mode", "acceptEdits", "destination",
			"session")},
		"tool_use_id", id)))
	t.stream.end("tool_use")
	select {
	case raw := <-answer:
		var d decision
		if err := json.Unmarshal(raw, &d); err != nil {
			d = decision{Message: "unreadable permission response: " + err.Error()}
		}
		return t.decided(id, name, in, d, run)
	case <-t.ctx.Done():
		t.emit(obj("type", "control_cancel_request", "request_id", request))
		t.refused = append(t.refused, obj("tool_name", name, "tool_use_id", id, "tool_input", in))
		t.toolResult(id, toolOutcome{text: rejected, failed: true}, "User rejected tool use")
		return errInterrupted
	}
}

func (t *claudeTurn) decided(id, name string, in json.RawMessage, d decision,
	run func(json.RawMessage) (toolOutcome, error)) error {
	t.asked(string(in), d.Behavior == "allow")
	if d.Behavior == "allow" {
		if len(d.UpdatedInput) > 0 {
			in = d.UpdatedInput
		}
		return t.runAndReport(id, name, in, run)
	}
	t.refuse(id, name, in, d.Message)
	if d.Interrupt {
		return errInterrupted
	}
	return nil
}

func (t *claudeTurn) bash(input json.RawMessage) (toolOutcome, error) {
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return toolOutcome{text: "InputValidationError: " + err.Error(), failed: true}, nil
	}
	// As in the real Claude, an interrupt kills the command. If a signal ends Claude, the command continues.
	run, err := t.runTool(t.ctx, in.Command, func(cause error) bool { return errors.Is(cause, errInterrupted) })
	if err != nil {
		return toolOutcome{}, err
	}
	text := strings.TrimRight(run.output, "\n")
	if run.code != 0 {
		return toolOutcome{text: strings.TrimRight(fmt.Sprintf("Exit code %d\n%s", run.code, text), "\n"),
			failed: true}, nil
	}
	detail := obj("stdout", text, "stderr", "", "interrupted", false, "isImage", false, "noOutputExpected", text == "")
	if text == "" {
		text = "(Bash completed with no output)"
	}
	return toolOutcome{text: text, detail: detail}, nil
}

// bashAllowed decides whether a command may run. asks is true if the command needs permission according to the script.
func (t *claudeTurn) bashAllowed(asks bool) permission {
	switch mode := t.currentMode(); {
	case slices.Contains(t.args.denied, "Bash"):
		return deny
	case !asks, mode == "bypassPermissions", mode == "auto", slices.Contains(t.args.allowed, "Bash"):
		return allow
	case mode == "dontAsk", mode == "plan":
		return deny
	}
	return ask
}

func (t *claudeTurn) writeAllowed() permission {
	switch mode := t.currentMode(); {
	case slices.Contains(t.args.denied, "Write"):
		return deny
	case mode == "bypassPermissions", mode == "auto", mode == "acceptEdits", slices.Contains(t.args.allowed, "Write"):
		return allow
	case mode == "dontAsk", mode == "plan":
		return deny
	}
	return ask
}

// retryDelay returns how long Claude waits before a retry.
func retryDelay(attempt int) time.Duration {
	schedule := [...]time.Duration{550, 1100, 2100, 4500, 8000, 17200, 38000}
	return schedule[min(attempt, len(schedule))-1] * time.Millisecond
}

// apiError simulates a failure of the model's API. Claude retries, and ends the turn if all retries fail.
func (t *claudeTurn) apiError(st script.APIError) error {
	most := 10
	if v, err := strconv.Atoi(t.env["CLAUDE_CODE_MAX_RETRIES"]); err == nil {
		most = v
	}
	failure := claudeFailure(st, t.currentModel())
	switch st.Status {
	case 400, 403, 404, 413:
		return failure
	case 529:
		if most > 2 {
			most = 2
			failure.status = 0
			failure.text = "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment."
		}
	}
	for attempt := 1; st.Times == 0 || attempt <= st.Times; attempt++ {
		if attempt > most {
			return failure
		}
		delay := retryDelay(attempt)
		if st.RetryAfter > 0 {
			delay = st.RetryAfter
		}
		if st.Delay > 0 {
			delay = st.Delay
		}
		t.emit(t.retryEvent(attempt, most, delay, st.Status, failure.name))
		if err := sleep(t.ctx, delay); err != nil {
			return err
		}
	}
	return nil
}

func (t *claudeTurn) retryEvent(attempt, most int, delay time.Duration, status int, name string) json.RawMessage {
	if status == 529 {
		name = "overloaded"
	}
	return obj("type", "system", "subtype", "api_retry", "attempt", attempt, "max_retries", most,
		"retry_delay_ms", float64(delay.Microseconds())/1000, "error_status", status, "error", name,
		"session_id", t.id, "uuid", newUUID())
}

func claudeFailure(st script.APIError, model string) apiFailure {
	said := st.Message
	f := apiFailure{status: st.Status}
	switch st.Status {
	case 401:
		f.text, f.name = "Invalid API key · Fix external API key", "authentication_failed"
	case 403:
		f.text, f.name = "Failed to authenticate. API Error: 403 "+or(said, "forbidden"), "authentication_failed"
	case 404:
		f.text = "There's an issue with the selected model (" + model +
			"). It may not exist or you may not have access to it. Run --model to pick a different model."
		f.name = "model_not_found"
	case 429:
		f.text = "API Error: Request rejected (429) · " + or(said,
			"This request would exceed your account's rate limit. Please try again later.")
		f.name = "rate_limit"
	case 529:
		f.text, f.name = "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.", "server_error"
	case 400, 413:
		f.text, f.name = fmt.Sprintf("API Error: %d %s", st.Status, or(said, "invalid request")), "invalid_request"
	default:
		f.text = fmt.Sprintf(
			"API Error: %d %s. This is a server-side issue, usually temporary — try again in a moment.", st.Status,
			or(said, "Internal server error"))
		f.name = "server_error"
	}
	return f
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
