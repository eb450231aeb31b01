package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLiveClaudeTakesManyTurns(t *testing.T) {
	l := newPlace(t).startClaude(t)
	l.say(`I am Ann [[text one]]`)
	first := l.until("result")
	l.say(`[[history]]`)
	second := l.until("result")
	if first["result"] != "one" || second["result"] != "1. I am Ann" || first["session_id"] != second["session_id"] {
		t.Errorf("%v, then %v", first, second)
	}
	if cost := second["total_cost_usd"].(float64); cost <= first["total_cost_usd"].(float64) {
		t.Errorf("the cost does not add up: %v", cost)
	}
	inits := 0
	for _, e := range l.all {
		if e["subtype"] == "init" {
			inits++
		}
	}
	if inits != 2 {
		t.Errorf("%d init events, want one a turn", inits)
	}
	l.in.Close()
	if r := l.wait(); r.status.ExitStatus() != 0 {
		t.Errorf("status %v", r.status)
	}
}

func TestLiveClaudeTellsTheEndOfATask(t *testing.T) {
	l := newPlace(t).startClaude(t)
	l.say(`[[background "echo it ran; exit 3" text="the task is over"]] [[text "meanwhile"]]`)
	if r := l.until("result"); r["result"] != "meanwhile" {
		t.Errorf("the turn does not wait for its task: %v", r)
	}
	if r := l.until("result"); r["result"] != "the task is over" {
		t.Errorf("the turn after the task: %v", r)
	}
	var told event
	for _, e := range l.all {
		if e["subtype"] == "task_notification" {
			told = e
		}
	}
	output, err := os.ReadFile(fmt.Sprint(told["output_file"]))
	if told["status"] != "failed" || err != nil || string(output) != "it ran\n" {
		t.Errorf("%v, output %q, %v", told, output, err)
	}
	l.in.Close()
	if r := l.wait(); r.status.ExitStatus() != 0 {
		t.Errorf("status %v", r.status)
	}
}

func TestLiveClaudeIsInterrupted(t *testing.T) {
	tests := map[string]struct{ prompt, reason string }{
		"in text":                      {`[[text "abc" chunk=1]][[hang]]`, "aborted_streaming"},
		"in a tool":                    {`[[text x]][[tool "exec ` + ownSleep() + `"]]`, "aborted_tools"},
		"while it asks for permission": {`[[text x]][[ask "touch y"]]`, "aborted_tools"},
		"while it retries":             {`[[text x]][[error 500]]`, "aborted_streaming"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newPlace(t).startClaude(t)
			l.say(tt.prompt)
			l.until("stream_event")
			if strings.Contains(tt.prompt, "ask") {
				l.until("control_request")
			}
			if strings.Contains(tt.prompt, "sleep") {
				eventually(t, "the tool runs", func() bool { return processes(t, ownSleep()) == 1 })
			}
			l.send(`{"type":"control_request","request_id":"stop","request":{"subtype":"interrupt"}}`)
			result := l.until("result")
			if result["subtype"] != "error_during_execution" || result["terminal_reason"] != tt.reason {
				t.Errorf("%v", result)
			}
			l.say(`[[text "still here"]]`)
			if got := l.until("result"); got["result"] != "still here" {
				t.Errorf("%v", got)
			}
			if processes(t, ownSleep()) != 0 {
				t.Error("the tool lives on")
			}
		})
	}
}

func TestLiveClaudeAsksForPermission(t *testing.T) {
	tests := map[string]struct {
		response string
		made     string
		denied   bool
		result   any
	}{
		"allowed":          {`{"behavior":"allow","updatedInput":{"command":"touch made"}}`, "made", false, "after"},
		"with other input": {`{"behavior":"allow","updatedInput":{"command":"touch other"}}`, "other", false, "after"},
		"denied":           {`{"behavior":"deny","message":"not now"}`, "", true, "after"},
		"denied for good":  {`{"behavior":"deny","message":"stop","interrupt":true}`, "", true, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			l := p.startClaude(t)
			l.say(`[[ask "touch made"]][[text after]]`)
			id := l.until("control_request")["request_id"].(string)
			l.send(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":` +
				tt.response + `}}`)
			result := l.until("result")
			if result["result"] != tt.result || (len(result["permission_denials"].([]any)) > 0) != tt.denied {
				t.Errorf("%v", result)
			}
			for _, name := range []string{"made", "other"} {
				if exists(p, name) != (name == tt.made) {
					t.Errorf("file %s: %v", name, exists(p, name))
				}
			}
		})
	}
}

func TestLiveClaudeQueuesMessages(t *testing.T) {
	p := newPlace(t)
	gate := filepath.Join(p.work, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	l := p.startClaude(t, "--replay-user-messages")
	l.say(`[[text "ab" file="` + gate + `"]]`) // the turn reads the file, and waits until the test writes it
	l.until("system")
	l.send(`{"type":"user","uuid":"u1","message":{"role":"user","content":"[[text two]]"}}`)
	l.send(`{"type":"user","uuid":"u1","message":{"role":"user","content":"[[text twice]]"}}`)
	l.send(`{"type":"user","uuid":"u2","message":{"role":"user","content":"[[text three]]"}}`)
	for _, given := range []bool{true, false} {
		// a second message with this uuid is ignored
		l.send(`{"type":"user","uuid":"u3","message":{"role":"user","content":"[[text four]]"}}`)
		l.send(
			`{"type":"control_request","request_id":"back","request":{"subtype":"cancel_async_message","message_uuid":"u3"}}`)
		if got := l.until("control_response")["response"].(event)["response"].(event)["cancelled"]; got != given {
			t.Errorf("taken back: %v", got)
		}
	}
	l.in.Close()
	if err := os.WriteFile(gate, []byte("c"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.until("result")["result"]; got != "abc" {
		t.Errorf("first %v", got)
	}
	if got := l.until("result")["result"]; got != "twothree" {
		t.Errorf("messages that came during a turn are one turn, each once: %v", got)
	}
	if r := l.wait(); r.out != "" || r.status.ExitStatus() != 0 {
		t.Errorf("%+v", r)
	}
}

func TestLiveClaudeIsSteeredBetweenTools(t *testing.T) {
	p := newPlace(t)
	l := p.startClaude(t)
	l.say(`[[tool "touch a; while ! test -e b; do sleep 0.01; done"]][[text one]]`)
	eventually(t, "the tool runs", func() bool { return exists(p, "a") })
	l.say(`[[text two]]`)
	l.send(`{"type":"control_request","request_id":"1","request":{"subtype":"mcp_status"}}`)
	l.until("control_response") // so the message before it was read
	if err := touch(p, "b"); err != nil {
		t.Fatal(err)
	}
	l.in.Close()
	result := l.until("result")
	if result["result"] != "two" {
		t.Errorf("%v", result)
	}
	if r := l.wait(); strings.Contains(r.out, `"type":"result"`) {
		t.Errorf("a result too many: %s", r.out)
	}
}

func TestLiveClaudeFinishesTheTurnWhenInputEnds(t *testing.T) {
	l := newPlace(t).startClaude(t)
	l.say(`[[sleep 50ms]][[text done]]`)
	l.in.Close()
	if r := l.wait(); r.result() != "done" || r.status.ExitStatus() != 0 {
		t.Errorf("%+v", r)
	}
}

func TestLiveClaudeDiesOfALineThatIsNoJSON(t *testing.T) {
	l := newPlace(t).startClaude(t)
	l.send("hello")
	if r := l.wait(); r.status.ExitStatus() != 1 || r.out != "" {
		t.Errorf("%+v", r)
	}
}

func TestLiveClaudeKnowsNoSuchSession(t *testing.T) {
	l := newPlace(t).startClaude(t, "--resume", "11111111-2222-3333-4444-555555555555")
	result := l.until("result")
	if result["subtype"] != "error_during_execution" ||
		result["errors"].([]any)[0] != "No conversation found with session ID: 11111111-2222-3333-4444-555555555555" {
		t.Errorf("%v", result)
	}
	if r := l.wait(); r.status.ExitStatus() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestLiveClaudeAnswersControlRequests(t *testing.T) {
	l := newPlace(t).startClaude(t)
	ask := func(request string) event {
		t.Helper()
		l.send(`{"type":"control_request","request_id":"1","request":` + request + `}`)
		return l.until("control_response")["response"].(event)
	}
	if models := ask(`{"subtype":"initialize","hooks":{}}`)["response"].(event)["models"].([]any); models[0].(event)["value"] != "default" {
		t.Errorf("models %v", models)
	}
	if got := ask(`{"subtype":"set_permission_mode","mode":"plan"}`); got["response"].(event)["mode"] != "plan" {
		t.Errorf("%v", got)
	}
	if got := ask(`{"subtype":"set_permission_mode","mode":"bypassPermissions"}`); got["subtype"] != "error" {
		t.Errorf("%v", got)
	}
	if got := ask(`{"subtype":"nonsense"}`); got["error"] != "Unsupported control request subtype: nonsense" {
		t.Errorf("%v", got)
	}
	ask(`{"subtype":"set_model","model":"sonnet"}`)
	if got := l.until("user")["message"].(event)["content"]; got != "<local-command-stdout>Set model to sonnet (claude-sonnet-5)</local-command-stdout>" {
		t.Errorf("%v", got)
	}
	l.say(`[[text x]]`)
	if got := l.until("system"); got["model"] != "claude-sonnet-5" || got["permissionMode"] != "plan" {
		t.Errorf("%v", got)
	}
	l.until("result")
	ask(`{"subtype":"end_session"}`)
	if r := l.wait(); r.status.ExitStatus() != 0 {
		t.Errorf("%+v", r)
	}
}
