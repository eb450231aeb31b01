package modelapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ductor/internal/sim/modelapi"
)

var bearer = []string{"x-api-key", "", "Authorization", "Bearer " + key}

// input returns a request with one message of the user.
func input(t *testing.T, prompt, tools string) string {
	t.Helper()
	return `{"model":"m","stream":true,"prompt_cache_key":"s","tools":[` + tools +
		`],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":` + quote(t, prompt) +
		`}]}]}`
}

func TestResponsesStream(t *testing.T) {
	a := post(t, start(t), "/v1/responses", input(t,
		`[[think "hm"]][[text "Hello «é»" chunk=2]][[usage in=7 out=3 cached=2]]`, ""), bearer...)
	want := "response.created response.output_item.added response.reasoning_summary_part.added " +
		"response.reasoning_summary_text.delta " +
		"response.reasoning_summary_text.done response.output_item.done response.output_item.added " +
		"response.content_part.added " +
		"response.output_text.delta response.output_text.done response.output_item.done response.completed"
	if a.names() != want || a.text() != "Hello «é»" {
		t.Errorf("events %s, text %q", a.names(), a.text())
	}
	for i, e := range a.events {
		if e.data["sequence_number"] != float64(i) {
			t.Errorf("event %d has number %v", i, e.data["sequence_number"])
		}
	}
	usage := a.events[len(a.events)-1].data["response"].(map[string]any)["usage"].(map[string]any)
	if usage["input_tokens"] != 7.0 || usage["total_tokens"] != 10.0 ||
		usage["input_tokens_details"].(map[string]any)["cached_tokens"] != 2.0 {
		t.Errorf("usage %v", usage)
	}
}

func TestResponsesWhole(t *testing.T) {
	a := post(t, start(t), "/v1/responses", `{"model":"m","input":"[[text \"abc\"]]"}`, bearer...)
	out := a.object["output"].([]any)[0].(map[string]any)
	if a.object["status"] != "completed" || out["content"].([]any)[0].(map[string]any)["text"] != "abc" {
		t.Errorf("%v", a.object)
	}
}

func TestResponsesCallsTheToolThatIsOffered(t *testing.T) {
	const patch = "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n"
	tests := map[string]struct{ tools, prompt, kind, name, input string }{
		"exec_command": {`{"type":"function","name":"exec_command"}`, `[[tool "ls"]]`, "function_call", "exec_command",
			`{"cmd":"ls"}`},
		"escalated": {`{"type":"function","name":"exec_command"}`, `[[ask "ls"]]`, "function_call", "exec_command",
			`{"cmd":"ls","justification":"The script asks for it","sandbox_permissions":"require_escalated"}`},
		"shell_command": {`{"type":"function","name":"shell_command"}`, `[[tool "ls"]]`, "function_call",
			"shell_command", `{"command":"ls"}`},
		"shell": {`{"type":"function","name":"shell"}`, `[[tool "ls"]]`, "function_call", "shell",
			`{"command":["bash","-lc","ls"]}`},
		"code": {`{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}`,
			`[[tool "ls"]]`, "custom_tool_call", "exec",
			"const r = await tools.exec_command({cmd: \"ls\"});\ntext(r.output);\n"},
		"a patch": {`{"type":"custom","name":"apply_patch"}`, `[[write path=a text=b]]`, "custom_tool_call",
			"apply_patch", patch},
	}
	s := start(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := post(t, s, "/v1/responses", input(t, tt.prompt, tt.tools), bearer...)
			response := a.events[len(a.events)-1].data["response"].(map[string]any)
			item := response["output"].([]any)[0].(map[string]any)
			got, _ := item["arguments"].(string)
			if tt.kind == "custom_tool_call" {
				got, _ = item["input"].(string)
			}
			if item["type"] != tt.kind || item["name"] != tt.name || got != tt.input {
				t.Errorf("%v", item)
			}
		})
	}
	a := post(t, s, "/v1/responses", input(t, `[[tool "ls"]]`, ""), bearer...)
	if !strings.Contains(a.text(), "no shell tool") {
		t.Errorf("without a tool: %q", a.text())
	}
}

func TestResponsesGoOnAfterTools(t *testing.T) {
	s := start(t)
	const head = `{"model":"m","stream":true,"input":[{"type":"message","role":"developer","content":"rules"},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"go [[tool \"ls\"]][[text \"two\"]]"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},` +
		`{"type":"reasoning"},{"type":"function_call","call_id":"c1","name":"exec_command"},{"type":"function_call_output","call_id":"c1","output":"x"}`
	if a := post(t, s, "/v1/responses", head+`]}`, bearer...); a.text() != "two" {
		t.Errorf("%q", a.text())
	}
	next := `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two"}]},{"type":"message","role":"user","content":"[[history]]"}`
	if a := post(t, s, "/v1/responses", head+next+`]}`, bearer...); a.text() != "1. go" {
		t.Errorf("%q", a.text())
	}
	got := s.Prompts()
	if got[0].Position != 1 || got[0].System != "rules" || len(got[0].Images) != 1 ||
		got[0].Images[0] != (modelapi.Image{MIME: "image/png", Data: "AAAA"}) ||
		len(got[1].Images) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestResponsesRefuses(t *testing.T) {
	tests := map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"no key":            {`{"model":"m","input":"x"}`, []string{"x-api-key", ""}, 401, "Incorrect API key"},
		"no JSON":           {`nonsense`, bearer, 400, "not valid JSON"},
		"no model":          {`{"input":"x"}`, bearer, 400, "'model'"},
		"no input":          {`{"model":"m"}`, bearer, 400, "'input'"},
		"input of no use":   {`{"model":"m","input":7}`, bearer, 400, "'input'"},
		"a strange role":    {`{"model":"m","input":[{"role":"boss","content":"x"}]}`, bearer, 400, "'boss'"},
		"content of no use": {`{"model":"m","input":[{"role":"user","content":7}]}`, bearer, 400, "input[0].content"},
		"result of nothing": {`{"model":"m","input":[{"type":"function_call_output","call_id":"c"}]}`, bearer, 400,
			"No tool call found"},
		"call without end": {`{"model":"m","input":[{"type":"function_call","call_id":"c"}]}`, bearer, 400,
			"No tool output found"},
		"tool of no type": {`{"model":"m","input":"x","tools":[{"name":"a"}]}`, bearer, 400, "tools[0].type"},
		"tool of no name": {`{"model":"m","input":"x","tools":[{"type":"function"}]}`, bearer, 400, "tools[0].name"},
	}
	s := start(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := post(t, s, "/v1/responses", tt.body, tt.headers...)
			message, _ := a.object["error"].(map[string]any)["message"].(string)
			if a.status != tt.status || !strings.Contains(message, tt.says) {
				t.Errorf("%d %v", a.status, a.object)
			}
		})
	}
}

func TestResponsesScriptedErrors(t *testing.T) {
	s := start(t)
	for status, code := range map[string]any{"401": "invalid_api_key", "404": "model_not_found",
		"429": "rate_limit_exceeded",
		"500": "server_error", "529": "server_is_overloaded", "400": nil} {
		a := post(t, s, "/v1/responses", input(t, "[[error "+status+" retry_after=2]]", ""), bearer...)
		if got := a.object["error"].(map[string]any)["code"]; got != code || a.header.Get("Retry-After") != "2" {
			t.Errorf("%s: %v", status, got)
		}
	}
	a := post(t, s, "/v1/responses", input(t, `[[text "abc"]][[error 529]]`, ""), bearer...)
	last := a.events[len(a.events)-1]
	b, err := json.Marshal(last.data)
	if err != nil || last.name != "response.failed" || !strings.Contains(string(b), "server_is_overloaded") {
		t.Errorf("%s %s %v", last.name, b, err)
	}
}
