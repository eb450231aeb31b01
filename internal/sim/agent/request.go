package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"ductor/internal/sim/script"
)

// This file performs the step script.Request: a request for permission with arbitrary fields. The agent prints the
// client's answer, but runs no tool.

// fieldsOf returns the JSON fields of a request, without the braces around them.
func fieldsOf(st script.Request) []byte {
	params := bytes.TrimSpace([]byte(st.Params))
	if !json.Valid(params) || params[0] != '{' {
		params = obj("text", st.Params)
	}
	return bytes.TrimSpace(params[1 : len(params)-1])
}

// withFields returns a JSON object with the names and values in kv, followed by the fields of the request st.
func withFields(st script.Request, kv ...any) json.RawMessage {
	own, fields := obj(kv...), fieldsOf(st)
	if len(fields) == 0 {
		return own
	}
	out := own[:len(own)-1]
	if len(kv) > 0 {
		out = append(out, ',')
	}
	return append(append(out, fields...), '}')
}

func answered(allowed bool) []string {
	return []string{map[bool]string{true: "[allowed] ", false: "[denied] "}[allowed]}
}

func (t *claudeTurn) request(st script.Request) error {
	return t.toolOf(st.Kind, withFields(st), t.bashAllowed(true), func(json.RawMessage) (toolOutcome, error) {
		return toolOutcome{text: "done"}, t.stream.say(t.ctx, blockText, answered(true), 0)
	})
}

func (t *codexTurn) request(st script.Request) error {
	t.close()
	if t.live == nil {
		return nil
	}
	allowed := t.live.request(t.ctx, st.Kind,
		withFields(st, "threadId", t.live.thread.id, "turnId", t.live.turn, "itemId", t.nextID()))
	return t.say(itemMessage, answered(allowed), 0)
}

// request sends a request to the client and reports whether the client allowed it.
func (s *liveSink) request(ctx context.Context, method string, params json.RawMessage) (allowed bool) {
	var answer struct {
		Decision, Action string
		Permissions      map[string]json.RawMessage
	}
	_ = json.Unmarshal(s.threads.ask(ctx, method, params, s.thread.id), &answer) // an invalid answer denies the request
	return answer.Decision == "accept" || answer.Action == "accept" || len(answer.Permissions) > 0
}

func (t *copilotTurn) request(st script.Request) error {
	call := t.start(st.Kind, "Asking", obj())
	allowed, _ := t.ask(st.Kind, call, withFields(st, "kind", st.Kind, "toolCallId", call))
	t.emit("tool.execution_complete", obj("toolCallId", call, "model", t.model, "success", true, "result",
		obj("content", "done")), false)
	return t.stream(answered(allowed), 0, t.text)
}

func (t *geminiTurn) request(st script.Request) error {
	acp, is := t.sink.(*acpSink)
	if !is {
		return nil
	}
	call := t.call(st.Kind, "", st.Kind)
	answer := acp.request(withFields(st, "toolCallId", call.id, "status", "pending", "kind", st.Kind))
	return t.say(t.sink.text, answered(strings.HasPrefix(answer, "proceed")), 0)
}

// request asks the client about a tool call, and returns the option that the client has chosen.
func (k *acpSink) request(call json.RawMessage) string {
	var r struct {
		Outcome struct{ Outcome, OptionID string } `json:"outcome"`
	}
	_ = json.Unmarshal(bytes.TrimSpace(k.s.ask("session/request_permission",
		obj("sessionId", k.session, "toolCall", call,
			"options", permitOptions()))), &r) // an invalid answer chooses no option
	return r.Outcome.OptionID
}
