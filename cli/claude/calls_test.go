package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/cli/host"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

// toolCalls wraps the simulated model. It answers a prompt with <<NAME {…}>> by that tool call. The prompt's script
// continues after it, as after its first tool. It answers a prompt with <<HOLD {}>> by some text, and by the rest when
// hold is closed.
type toolCalls struct {
	next http.Handler
	hold chan struct{}
}

var callMark = regexp.MustCompile(`(?s)<<(\w+) (\{.*\})>>`)

func (c toolCalls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if name, input := calledFor(body); name == "HOLD" {
		sendHeld(r.Context(), w, c.hold)
		return
	} else if name != "" {
		sendCall(w, name, input)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.next.ServeHTTP(w, r)
}

// calledFor returns the tool call that the last message of a request wants, or none if the message is a tool's result.
func calledFor(body []byte) (name, input string) {
	var in struct {
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(body, &in) != nil || !in.Stream || len(in.Messages) == 0 {
		return "", ""
	}
	for i := len(in.Messages) - 1; i >= 0 && in.Messages[i].Role != "assistant"; i-- {
		m := message{Content: in.Messages[i].Content}
		for _, b := range m.blocks() {
			if b.Type == "tool_result" {
				return "", ""
			}
			if found := callMark.FindStringSubmatch(b.Text); found != nil {
				return found[1], found[2]
			}
		}
	}
	return "", ""
}

func sendCall(w http.ResponseWriter, name, input string) {
	w.Header().Set("Content-Type", "text/event-stream")
	sendEvents(w,
		startEvent,
		fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_call_%d","name":%q,"input":{}}}`, len(input), name),
		fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%s}}`, strings.TrimSpace(string(jsonLine(input)))),
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":1}}`,
		`{"type":"message_stop"}`,
	)
}

const startEvent = `{"type":"message_start","message":{"id":"msg_call","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`

func sendHeld(ctx context.Context, w http.ResponseWriter, hold <-chan struct{}) {
	const delta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`
	w.Header().Set("Content-Type", "text/event-stream")
	sendEvents(w, startEvent, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, fmt.Sprintf(delta, "held "))
	select {
	case <-hold:
	case <-ctx.Done():
	}
	sendEvents(w, fmt.Sprintf(delta, "back."), `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`)
}

func sendEvents(w http.ResponseWriter, all ...string) {
	for _, ev := range all {
		var kind struct{ Type string }
		_ = json.Unmarshal([]byte(ev), &kind) // from this file
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind.Type, ev)
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// realCalls is real with a model that calls any tool.
func realCalls(t *testing.T) (*Provider, realagent.CLI, *modelapi.Server) {
	t.Helper()
	p, c, api, _ := realHeld(t)
	return p, c, api
}

// realHeld is realCalls with the channel for which the model holds back its answers.
func realHeld(t *testing.T) (*Provider, realagent.CLI, *modelapi.Server, chan struct{}) {
	t.Helper()
	p, c, api := real(t, nil)
	hold := make(chan struct{})
	to, err := url.Parse(api.URL())
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(toolCalls{httputil.NewSingleHostReverseProxy(to), hold})
	t.Cleanup(front.Close)
	c.Vars["ANTHROPIC_BASE_URL"] = front.URL
	o := p.opts
	o.Env = c.Environ
	o.Grace = time.Minute // a turn interrupted through the protocol is not stopped, however busy the machine
	return New(o), c, api, hold
}

// lastAsked returns the model's last request.
func lastAsked(api *modelapi.Server) string {
	all := api.Prompts()
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1].Body)
}

// again returns a provider like p in another process of ductor.
func again(t *testing.T, p *Provider, dir string) (*Provider, *host.Launcher) {
	t.Helper()
	h := clitest.OpenHost(t, host.Options{Dir: dir})
	o := p.opts
	o.Launcher = h
	return New(o), h
}
