package acp

import (
	"encoding/json"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
	"ductor/internal/realagent"
)

// failed is an agent's output after a failure of its model's API, with its meaning.
type failed struct {
	script, printed string
	kind            cli.FailureKind
	reason          string
}

const fullScript = `[[error 400 times=60 message="This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."]]`

// These are failures of OpenCode 1.18.33, which does not report the status, and of Qwen Code 0.24.4. After a 429 or 500
// both silently retry for minutes.
var failuresOfUsersAgents = map[cli.Agent][]failed{
	"opencode": {
		{`[[error 401 times=60]]`, `{"code":-32603,"message":"Internal error: Incorrect API key provided.","data":{"service":"session","errorName":"APIError"}}`, cli.NotLoggedIn, "Incorrect API key provided."},
		{`[[error 403 times=60]]`, `{"code":-32603,"message":"Internal error: Country, region, or territory not supported","data":{"service":"session","errorName":"APIError"}}`, cli.Forbidden, "Country, region, or territory not supported"},
		{`[[error 404 times=60]]`, `{"code":-32603,"message":"Internal error: The model does not exist or you do not have access to it.","data":{"service":"session","errorName":"APIError"}}`, cli.UnknownModel, "The model does not exist or you do not have access to it."},
		{fullScript, `{"code":-32603,"message":"Internal error: Session too large to compact - context exceeds model limit even after stripping media","data":{"service":"session","errorName":"ContextOverflowError"}}`, cli.ContextFull, "Session too large to compact - context exceeds model limit even after stripping media"},
		{"", `{"code":-32603,"message":"Internal error: Conversation history too large to compact - exceeds model context limit","data":{"service":"session","errorName":"ContextOverflowError"}}`, cli.ContextFull, "Conversation history too large to compact - exceeds model context limit"},
	},
	"qwen": {
		{`[[error 401 times=60]]`, `{"code":-32603,"message":"Internal error","data":{"details":"401 Incorrect API key provided."}}`, cli.NotLoggedIn, "401 Incorrect API key provided."},
		{`[[error 403 times=60]]`, `{"code":-32603,"message":"Internal error","data":{"details":"403 Country, region, or territory not supported"}}`, cli.Forbidden, "403 Country, region, or territory not supported"},
		{`[[error 404 times=60]]`, `{"code":-32603,"message":"Internal error","data":{"details":"404 The model does not exist or you do not have access to it."}}`, cli.UnknownModel, "404 The model does not exist or you do not have access to it."},
		{fullScript, `{"code":-32603,"message":"Internal error","data":{"details":"400 This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."}}`, cli.ContextFull, "400 This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."},
		{"", `{"code":-32603,"message":"Internal error","data":{"details":"429 Rate limit reached. Please try again later."}}`, cli.LimitReached, "429 Rate limit reached. Please try again later."},
		{"", `{"code":-32603,"message":"Internal error","data":{"details":"500 The server had an error while processing your request."}}`, cli.APIFailed, "500 The server had an error while processing your request."},
	},
}

func TestFailuresOfUsersAgents(t *testing.T) {
	for agent, all := range failuresOfUsersAgents {
		o := Options{Agent: agent}
		for _, f := range all {
			var e rpc.Error
			if err := json.Unmarshal([]byte(f.printed), &e); err != nil {
				t.Fatal(err)
			}
			if got := o.refusal(&e); got.Kind != f.kind || got.Reason != f.reason {
				t.Errorf("%s: %s means %s: %q, want %s: %q", agent, f.printed, got.Kind, got.Reason, f.kind, f.reason)
			}
		}
	}
}

// The same failures with the real agents.
func TestRealFailuresOfUsersAgents(t *testing.T) {
	realagent.LongOnly(t)
	for name, failures := range failuresOfUsersAgents {
		t.Run(string(name), func(t *testing.T) {
			p, dir := usersAgent(t, string(name))
			for _, f := range failures {
				if f.script == "" {
					continue
				}
				req := cli.Request{Dir: dir, Permission: cli.Ask, Turn: cli.TurnID(f.kind), Prompt: f.script}
				r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
				if r.Err == nil || r.Err.Kind != f.kind || r.Err.Reason != f.reason {
					t.Errorf("%s: %+v, want %s: %q", f.script, r, f.kind, f.reason)
				}
			}
		})
	}
}
