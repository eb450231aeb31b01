package modelapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"ductor/internal/sim/modelapi"
)

const chatBash = `,"tools":[{"type":"function","function":{"name":"bash","parameters":{}}}]`

// chat posts a request and returns its status and its raw body, since the events of this API have no name.
func chat(t *testing.T, s *modelapi.Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestChatCompletions(t *testing.T) {
	const ask = `{"role":"user","content":"[[tool cmd=\"ls\"]] [[think \"hm\"]] [[text \"listed\"]]"}`
	const called = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
	tests := map[string]struct {
		messages, rest string
		status         int
		has            []string
		lacks          string
	}{
		"a tool is called": {messages: ask, rest: `,"stream":true` + chatBash, status: 200,
			has: []string{`"name":"bash"`, `"finish_reason":"tool_calls"`, "data: [DONE]"}, lacks: `"usage"`},
		"the script goes on after its result": {messages: ask + "," + called +
			`,{"role":"tool","tool_call_id":"call_1","content":"a.txt"}`,
			rest: `,"stream":true,"stream_options":{"include_usage":true}` + chatBash, status: 200,
			has: []string{`"reasoning_content":"hm"`, `"content":"listed"`, `"finish_reason":"stop"`, `"usage"`}},
		"an answer that is no stream": {messages: ask, rest: chatBash, status: 200,
			has: []string{`"object":"chat.completion"`, `"tool_calls"`, `"usage"`}, lacks: "data:"},
		"a call without a result": {messages: ask + "," + called, rest: chatBash, status: 400,
			has: []string{"No tool output found"}},
		"a result without a call": {messages: ask + `,{"role":"tool","tool_call_id":"call_1","content":"a.txt"}`,
			status: 400, has: []string{"must be a response"}},
		"a role that is none": {messages: `{"role":"robot","content":"hi"}`, status: 400,
			has: []string{"Invalid value: 'robot'"}},
		"an error of the script": {messages: `{"role":"user","content":"[[error 429]]"}`, status: 429,
			has: []string{"rate_limit_exceeded"}},
		"a title beside the prompt": {messages: `{"role":"system","content":"You are a title generator."},` + ask,
			status: 200,
			has:    []string{"Scripted title"}, lacks: "listed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := chat(t, start(t), `{"model":"sim-1","messages":[`+test.messages+`]`+test.rest+`}`)
			if status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, body)
			}
			for _, want := range test.has {
				if !strings.Contains(body, want) {
					t.Errorf("lacks %s: %s", want, body)
				}
			}
			if test.lacks != "" && strings.Contains(body, test.lacks) {
				t.Errorf("has %s: %s", test.lacks, body)
			}
		})
	}
}
