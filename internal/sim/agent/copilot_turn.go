package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ductor/internal/sim/script"
)

// copilotTurn plays the script of one prompt. Only one goroutine uses it.
type copilotTurn struct {
	*process
	ctx     context.Context
	session string
	id      string // ID of the user's message; if empty, run creates an ID
	model   string
	emit    func(kind string, data json.RawMessage, ephemeral bool)
	// ask requests permission to use a tool. If the client denies the request, ask returns false and the reason.
	ask func(kind, call string, request json.RawMessage) (bool, string)
	// counts is true if the protocol reports the usage of a turn.
	counts bool

	past    []entry
	message string // ID of the message that is being streamed, or ""
	said    strings.Builder
	thought strings.Builder
	usage   *script.Usage
	failed  bool
	calls   int
}

// errCopilotFailed is the error that ends a turn because the model's API keeps failing.
var errCopilotFailed = errors.New("the model failed")

// run plays the script of a prompt. It returns nil even if the script simulates a failure of the model.
func (t *copilotTurn) run(prompt string) error {
	t.past = t.store.read(copilotFolder, t.session)
	if err := t.store.add(copilotFolder, t.session, entry{Prompt: prompt, Dir: t.dir}); err != nil {
		fmt.Fprintln(t.stderr, err)
	}
	t.reportPrompt(prompt, or(t.id, newUUID()))
	err := t.play(prompt)
	if errors.Is(err, errCopilotFailed) {
		t.failed, err = true, nil
	}
	var exit exitError
	if errors.As(err, &exit) {
		return err
	}
	t.idle(err != nil)
	return err
}

// reportPrompt reports the user's message as a part of the conversation.
func (t *copilotTurn) reportPrompt(prompt, id string) {
	t.emit("user.message", obj("content", prompt, "transformedContent",
		"<current_datetime>"+copilotNow()+"</current_datetime>\n\n"+prompt,
		"messageId", id, "delivery", "idle", "interactionId", newUUID(), "turnId", "0"), false)
}

func (t *copilotTurn) idle(aborted bool) {
	data := obj()
	if aborted {
		t.emit("abort", obj("reason", "user_initiated"), false)
		data = obj("aborted", true)
	}
	t.emit("assistant.idle", data, true)
}

func (t *copilotTurn) play(prompt string) error {
	for i, steps := range t.responses(prompt) {
		t.calls++
		turn := obj("turnId", fmt.Sprint(i), "interactionId", newUUID())
		t.emit("assistant.turn_start", turn, false)
		for j, st := range steps {
			if err := t.step(st, steps[j+1:]); err != nil {
				return err
			}
		}
		t.close("", nil)
		t.emit("assistant.turn_end", obj("turnId", fmt.Sprint(i)), false)
	}
	t.ended(prompt, nil)
	return nil
}

func (t *copilotTurn) step(st script.Step, rest []script.Step) error {
	switch st := st.(type) {
	case script.Text:
		return t.stream(st.Chunks, st.Delay, t.text)
	case script.Think:
		return t.stream(st.Chunks, st.Delay, t.think)
	case script.History:
		t.text(history(t.past))
		return nil
	case script.RetryText:
		return t.retryText(st, rest)
	case script.Tool:
		return t.command(st)
	case script.Request:
		return t.request(st)
	case script.Write:
		return t.write(st)
	case script.APIError:
		return t.apiError(st)
	case script.Compact:
		t.emit("session.compaction_start", obj("currentTokens", 100000), false)
		t.emit("session.compaction_complete", obj("success", true, "preCompactionTokens", 100000, "trigger",
			"threshold"), false)
		return nil
	case script.Usage:
		t.usage = &st
		return nil
	}
	_, err := t.misbehave(t.ctx, st, func(n int) []byte {
		line := copilotEvent("session.info", obj("infoType", "notification", "message", strings.Repeat("x", n)), true)
		if t.counts {
			return frame(obj("jsonrpc", "2.0", "method", "session.event", "params",
				obj("sessionId", t.session, "event", line)))
		}
		return line
	})
	return err
}

func (t *copilotTurn) stream(chunks []string, delay time.Duration, say func(string)) error {
	for i, chunk := range chunks {
		if i > 0 || delay == 0 {
			if err := sleep(t.ctx, delay); err != nil {
				return err
			}
		}
		say(chunk)
	}
	return nil
}

func (t *copilotTurn) text(chunk string) {
	if t.message == "" {
		t.message = newUUID()
		t.emit("assistant.message_start", obj("messageId", t.message), true)
	}
	t.said.WriteString(chunk)
	t.emit("assistant.message_delta", obj("messageId", t.message, "deltaContent", chunk), true)
}

func (t *copilotTurn) think(chunk string) {
	t.thought.WriteString(chunk)
	t.emit("assistant.reasoning_delta", obj("reasoningId", "r", "deltaContent", chunk), true)
}

// close completes the message that is being streamed. If tool is not empty, the message ends with a call of this tool,
// and close returns the ID of the call.
func (t *copilotTurn) close(tool string, arguments json.RawMessage) (call string) {
	requests := []json.RawMessage{}
	if tool != "" {
		call = "call_" + newUUID()
		requests = append(requests, obj("toolCallId", call, "name", tool, "arguments", arguments, "type", "function"))
	}
	if t.counts {
		u := script.Usage{Input: inputTokens, Output: outputTokens}
		if t.usage != nil {
			u = *t.usage
		}
		t.emit("assistant.usage", obj("model", t.model, "inputTokens", u.Input, "outputTokens", u.Output,
			"cacheReadTokens", u.Cached, "cacheWriteTokens", 0, "reasoningTokens", 0, "cost", 0, "duration", 1), true)
	}
	id := or(t.message, newUUID())
	t.emit("assistant.message", obj("messageId", id, "model", t.model, "content", t.said.String(), "toolRequests",
		requests,
		"reasoningText", t.thought.String()), false)
	t.message = ""
	t.said.Reset()
	t.thought.Reset()
	return call
}

// retryText streams text and discards it, like Copilot after the connection to the model broke.
func (t *copilotTurn) retryText(st script.RetryText, rest []script.Step) error {
	if err := t.stream(st.Chunks, st.Delay, t.text); err != nil {
		return err
	}
	t.retrying("api_error")
	for _, r := range rest {
		if _, ok := r.(script.Text); ok {
			return nil
		}
	}
	return t.stream(st.Chunks, 0, t.text)
}

// retrying reports that Copilot retries, so that the client discards the text of the response.
func (t *copilotTurn) retrying(reason string) {
	t.message = ""
	t.said.Reset()
	t.emit("assistant.turn_retry", obj("turnId", "0", "model", t.model, "reason", reason), false)
}

func (t *copilotTurn) command(st script.Tool) error {
	arguments := obj("command", st.Command, "description", "Run a command", "mode", "sync", "initial_wait", 30)
	call := t.start("bash", "Running command", arguments)
	if st.Ask {
		ok, why := t.ask("shell", call, obj("kind", "shell", "toolCallId", call, "fullCommandText", st.Command,
			"intention", "Run a command", "commands", []string{}, "canOfferSessionApproval", false))
		t.reportDecision(st.Command, ok)
		if !ok {
			return t.denied(call, why)
		}
	}
	run, err := t.runTool(t.ctx, st.Command, func(error) bool { return true })
	if err != nil {
		return err
	}
	content := fmt.Sprintf("%s\n<shellId: 0 completed with exit code %d>", strings.TrimSuffix(run.output, "\n"),
		run.code)
	t.emit("tool.execution_complete", obj("toolCallId", call, "model", t.model, "shellExecution",
		obj("exitCode", run.code),
		"success", true, "result", obj("content", content, "detailedContent", content)), false)
	return nil
}

// reportDecision calls Program.Asked with a decision, unless the turn has ended.
func (t *copilotTurn) reportDecision(what string, allowed bool) {
	if t.ctx.Err() == nil {
		t.asked(what, allowed)
	}
}

func (t *copilotTurn) start(tool, title string, arguments json.RawMessage) (call string) {
	call = t.close(tool, arguments)
	t.emit("tool.execution_start", obj("toolCallId", call, "toolName", tool, "arguments", arguments, "turnId", "0",
		"model", t.model, "toolTitle", title), false)
	return call
}

func (t *copilotTurn) denied(call, why string) error {
	if err := context.Cause(t.ctx); err != nil {
		return err
	}
	t.emit("tool.execution_complete", obj("toolCallId", call, "model", t.model, "success", false,
		"error", obj("message", why, "code", "denied")), false)
	return nil
}

func (t *copilotTurn) write(st script.Write) error {
	path := t.abs(st.Path)
	call := t.start("create", "Creating file", obj("path", path, "file_text", st.Body))
	diff := "--- a/dev/null\n+++ b" + path + "\n@@ -1,0 +1,1 @@\n+" + st.Body + "\n"
	ok, why := t.ask("write", call, obj("kind", "write", "toolCallId", call, "fileName", path, "intention",
		"Create file",
		"diff", diff, "newFileContents", st.Body, "canOfferSessionApproval", true))
	t.reportDecision(st.Body, ok)
	if !ok {
		return t.denied(call, why)
	}
	if err := t.writeFile(path, st.Body); err != nil {
		t.emit("tool.execution_complete", obj("toolCallId", call, "success", false,
			"error", obj("message", err.Error(), "code", "failure")), false)
		return nil
	}
	t.emit("tool.execution_complete", obj("toolCallId", call, "model", t.model, "success", true,
		"fileEdits", []json.RawMessage{obj("path", path, "kind", "create")},
		"result", obj("content", "Created file "+path, "detailedContent", diff)), false)
	return nil
}

// apiError simulates a failure of the model's API. If the failure may be temporary, Copilot retries.
func (t *copilotTurn) apiError(st script.APIError) error {
	kind, reason, most := "query", "api_error", 5
	switch st.Status {
	case http.StatusUnauthorized:
		kind, reason, most = "authentication", "transient_auth_error", 2
	case http.StatusForbidden:
		kind, most = "authentication", 0
	case http.StatusTooManyRequests:
		kind, reason = "rate_limit", "rate_limit"
	case http.StatusBadRequest, http.StatusNotFound:
		most = 0
	}
	for attempt := 0; st.Times == 0 || attempt < st.Times; attempt++ {
		if attempt == most {
			message := fmt.Sprintf("%d %s", st.Status, or(st.Message, "scripted error"))
			t.emit("session.error", obj("errorType", kind, "message", message, "statusCode", st.Status), false)
			return errCopilotFailed
		}
		t.retrying(reason)
		wait := st.Delay
		if wait == 0 {
			wait = 20 * time.Millisecond
		}
		if err := sleep(t.ctx, wait); err != nil {
			return err
		}
	}
	return nil
}
