package modelapi_test

import (
	"strings"
	"testing"

	"ductor/internal/sim/modelapi"
)

const claudeTools = `"tools":[{"name":"Bash","input_schema":{"type":"object"}},{"name":"Write","input_schema":{"type":"object"}}]`

// userMessage returns a request with one message of the user.
func userMessage(t *testing.T, prompt string, stream bool) string {
	t.Helper()
	s := "false"
	if stream {
		s = "true"
	}
	return `{"model":"m","max_tokens":100,"stream":` + s + `,` + claudeTools +
		`,"messages":[{"role":"user","content":` + quote(t, prompt) + `}]}`
}

func TestMessagesStream(t *testing.T) {
	a := post(t, start(t), "/v1/messages", userMessage(t,
		`[[think "hm"]][[text "Hello «é»" chunk=2]][[usage in=7 out=3 cached=2]]`, true))
	want := "message_start content_block_start content_block_delta content_block_stop content_block_start " +
		"content_block_delta content_block_stop message_delta message_stop"
	if a.names() != want || a.text() != "Hello «é»" {
		t.Errorf("events %s, text %q", a.names(), a.text())
	}
	usage := a.events[0].data["message"].(map[string]any)["usage"].(map[string]any)
	last := a.events[len(a.events)-2].data
	if usage["input_tokens"] != 7.0 || usage["cache_read_input_tokens"] != 2.0 ||
		last["usage"].(map[string]any)["output_tokens"] != 3.0 ||
		last["delta"].(map[string]any)["stop_reason"] != "end_turn" {
		t.Errorf("usage %v, last %v", usage, last)
	}
}

func TestMessagesWhole(t *testing.T) {
	a := post(t, start(t), "/v1/messages", userMessage(t, `[[text "Hel"]][[text "lo"]][[tool "ls"]]`, false))
	content := a.object["content"].([]any)
	if len(content) != 2 || content[0].(map[string]any)["text"] != "Hello" || a.object["stop_reason"] != "tool_use" ||
		content[1].(map[string]any)["input"].(map[string]any)["command"] != "ls" {
		t.Errorf("%v", a.object)
	}
}

func TestMessagesGoOnAfterTools(t *testing.T) {
	s := start(t)
	const head = `{"model":"m","max_tokens":1,"stream":true,` + claudeTools + `,"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"go [[tool \"ls\"]][[text \"two\"]][[write path=/a text=b]][[text \"three\"]]"}]},` +
		`{"role":"system","content":"reminder"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"files"}]}`
	if a := post(t, s, "/v1/messages", head+`]}`); a.text() != "two" {
		t.Errorf("after one result: %q", a.text())
	}
	rest := `,{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Write","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"ok"}]}`
	if a := post(t, s, "/v1/messages", head+rest+`]}`); a.text() != "three" {
		t.Errorf("after two results: %q", a.text())
	}
	next := `,{"role":"assistant","content":"three"},{"role":"user","content":"[[history]]"}`
	if a := post(t, s, "/v1/messages", head+rest+next+`]}`); a.text() != "1. go" {
		t.Errorf("the next prompt: %q", a.text())
	}
	cut := `,{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Write","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"rejected"},` +
		`{"type":"text","text":"[Request interrupted by user for tool use]"},{"type":"text","text":"[[history]]"}]}`
	if a := post(t, s, "/v1/messages", head+cut+`]}`); a.text() != "1. go" {
		t.Errorf("the prompt after an interrupt: %q", a.text())
	}
	got := s.Prompts()
	if got[1].Position != 2 || got[2].Position != 0 || got[2].Prompt != "[[history]]" || got[0].Tools[0] != "Bash" {
		t.Errorf("recorded %+v", got)
	}
}

func TestMessagesRecordsImagesAndSystem(t *testing.T) {
	s := start(t)
	post(t, s, "/v1/messages",
		`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"be kind"}],"messages":[{"role":"user","content":[
		{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"what?"}]}]}`)
	got := s.Prompts()[0]
	if got.System != "be kind" || got.Prompt != "what?" || len(got.Images) != 1 ||
		got.Images[0] != (modelapi.Image{MIME: "image/png", Data: "AAAA"}) {
		t.Errorf("%+v", got)
	}
}

func TestMessagesRefuses(t *testing.T) {
	const ok = `"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]`
	tests := map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"no key":      {`{` + ok + `}`, []string{"x-api-key", ""}, 401, "invalid x-api-key"},
		"another key": {`{` + ok + `}`, []string{"x-api-key", "no"}, 401, "invalid x-api-key"},
		"no version": {`{` + ok + `}`, []string{"anthropic-version", ""}, 400,
			"anthropic-version: header is required"},
		"no JSON":     {`{`, nil, 400, "not valid JSON"},
		"no model":    {`{"max_tokens":1,"messages":[]}`, nil, 400, "model: Field required"},
		"no limit":    {`{"model":"m","messages":[]}`, nil, 400, "max_tokens: Field required"},
		"no messages": {`{"model":"m","max_tokens":1,"messages":[]}`, nil, 400, "at least one message"},
		"assistant first": {`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}`, nil, 400,
			"first message"},
		"a strange role": {
			`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"boss","content":"x"}]}`,
			nil, 400, "messages.1.role"},
		"empty text": {`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":" "}]}`, nil, 400,
			"non-whitespace"},
		"content of no use": {`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":7}]}`, nil, 400,
			"messages.0.content"},
		"result of nothing": {
			`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}`, nil, 400, "unexpected `tool_use_id`"},
		"tool without end": {
			`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t"}]},{"role":"user","content":"y"}]}`, nil, 400, "without `tool_result`"},
		"tool without name": {`{` + ok + `,"tools":[{"input_schema":{}}]}`, nil, 400, "tools.0.name"},
		"no schema":         {`{` + ok + `,"tools":[{"name":"a"}]}`, nil, 400, "tools.0.input_schema"},
		"image of nothing": {
			`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]}]}`, nil, 400, "image.source"},
	}
	s := start(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := post(t, s, "/v1/messages", tt.body, tt.headers...)
			message, _ := a.object["error"].(map[string]any)["message"].(string)
			if a.status != tt.status || a.object["type"] != "error" || !strings.Contains(message, tt.says) {
				t.Errorf("%d %v", a.status, a.object)
			}
		})
	}
	for _, r := range s.Requests() {
		if r.Status != 400 && r.Status != 401 {
			t.Errorf("recorded as %d", r.Status)
		}
	}
}

func TestMessagesScriptedErrors(t *testing.T) {
	s := start(t)
	for status, kind := range map[string]string{"401": "authentication_error", "403": "permission_error",
		"404": "not_found_error",
		"429": "rate_limit_error", "500": "api_error", "529": "overloaded_error", "400": "invalid_request_error"} {
		a := post(t, s, "/v1/messages", userMessage(t, "[[error "+status+" retry_after=7]]", true))
		if got := a.object["error"].(map[string]any)["type"]; got != kind || a.header.Get("Retry-After") != "7" ||
			a.header.Get("request-id") == "" {
			t.Errorf("%s: %v %v", status, got, a.header)
		}
	}
	t.Run("in mid stream it is an event", func(t *testing.T) {
		a := post(t, s, "/v1/messages", userMessage(t, `[[text "abc"]][[error 529]]`, true))
		if last := a.events[len(a.events)-1]; a.status != 200 || last.name != "error" || a.text() != "abc" {
			t.Errorf("%v", a.events)
		}
	})
	t.Run("it wears off", func(t *testing.T) {
		body := userMessage(t, `[[error 500 times=2]][[text "fine"]]`, true)
		for i, want := range []int{500, 500, 200} {
			if a := post(t, s, "/v1/messages", body); a.status != want {
				t.Errorf("try %d: %d", i, a.status)
			}
		}
		if a := post(t, s, "/v1/messages", body, "X-Claude-Code-Session-Id", "another"); a.status != 500 {
			t.Errorf("another session: %d", a.status)
		}
	})
}

func TestMessagesBreakInMidStream(t *testing.T) {
	s := start(t)
	a := post(t, s, "/v1/messages", userMessage(t, `[[text "abc"]][[drop]]`, true))
	if !a.broken || a.text() != "abc" {
		t.Errorf("broken %v, text %q", a.broken, a.text())
	}
	if a := post(t, s, "/v1/messages", userMessage(t, `[[text "abc"]][[drop]]`, false)); a.status != 200 || a.broken {
		t.Errorf("an answer that is no stream comes whole: %+v", a)
	}
	first := post(t, s, "/v1/messages", userMessage(t, `[[retry-text "half"]][[text "whole"]]`, true))
	second := post(t, s, "/v1/messages", userMessage(t, `[[retry-text "half"]][[text "whole"]]`, true))
	if !first.broken || first.text() != "half" || second.broken || second.text() != "whole" {
		t.Errorf("%q, then %q", first.text(), second.text())
	}
	if a := post(t, s, "/v1/messages", userMessage(t, `[[drop times=1]][[text "x"]]`, true)); !a.broken {
		t.Errorf("%+v", a)
	}
	if a := post(t, s, "/v1/messages", userMessage(t, `[[drop times=1]][[text "x"]]`, true)); a.broken ||
		a.text() != "x" {
		t.Errorf("%+v", a)
	}
}

func TestCountTokens(t *testing.T) {
	s := start(t)
	if a := post(t, s, "/v1/messages/count_tokens", `{"messages":[]}`); a.status != 200 ||
		a.object["input_tokens"].(float64) < 1 {
		t.Errorf("%v", a.object)
	}
	if a := post(t, s, "/v1/messages/count_tokens", `{`); a.status != 400 {
		t.Errorf("%d", a.status)
	}
}
