package trace

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
)

// collector records the requests of a Tracer.
type collector struct {
	mu     sync.Mutex
	bodies map[string][]string // by path
	key    string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], string(body))
	c.key = r.Header.Get("Authorization")
	if r.URL.Path == "/elsewhere" || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func traced(t *testing.T, content bool, run func(emit func(cli.Event)) cli.Result) *collector {
	t.Helper()
	c := &collector{bodies: map[string][]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	tracer := New(Options{
		Settings: Settings{URL: server.URL + "/", Content: content}, Key: "k", Version: "1", Now: time.Now,
		Log:  slog.New(slog.DiscardHandler),
		Hide: func(_, text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { tracer.Run(ctx) })
	var shown []cli.Event
	turn := tracer.Begin("claude", cli.Request{Turn: "T", Prompt: "say hunter2", Session: "S"})
	turn.End(run(func(ev cli.Event) {
		shown = append(shown, ev)
		turn.Observe(ev)
	}))
	cancel()
	running.Wait()
	if len(shown) != 3 {
		t.Errorf("%d events are shown", len(shown))
	}
	return c
}

func aTurn(emit func(cli.Event)) cli.Result {
	emit(cli.SessionStarted{Model: "opus"})
	emit(cli.ToolStarted{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
	emit(cli.ToolEnded{ID: "1", Output: "a hunter2", Duration: time.Second, Err: "exit 1"})
	return cli.Result{Text: "it is hunter2", Consumed: cli.Consumption{
		Usage: cli.Usage{Input: 5, Output: 3, CacheRead: 2}, CostUSD: 0.25,
	}}
}

func TestATurnIsASpanWithItsTools(t *testing.T) {
	c := traced(t, false, aTurn)
	var sent spansRequest
	if err := json.Unmarshal([]byte(strings.Join(c.bodies["/v1/traces"], "")), &sent); err != nil {
		t.Fatal(err)
	}
	spans := sent.Resources[0].Scopes[0].Spans
	if len(spans) != 2 || spans[0].Name != "execute_tool Bash" || spans[0].Parent != spans[1].ID ||
		spans[0].Trace != spans[1].Trace || spans[1].Name != "invoke_agent claude" ||
		len(spans[1].Trace) != 32 || len(spans[1].ID) != 16 || spans[0].Status.Code != codeError ||
		c.key != "Bearer k" {
		t.Errorf("%+v", spans)
	}
	all := strings.Join(c.bodies["/v1/traces"], "")
	for _, part := range []string{
		`"gen_ai.usage.input_tokens","value":{"intValue":"7"}`, `"gen_ai.usage.output_tokens","value":{"intValue":"3"}`,
		`"ductor.tool.input.size","value":{"intValue":"16"}`,
		`"ductor.tool.result.size","value":{"intValue":"9"}`, `"gen_ai.conversation.id","value":{"stringValue":"S"}`,
		`"gen_ai.request.model","value":{"stringValue":"opus"}`,
		`"ductor.cost","value":{"doubleValue":0.25}`,
	} {
		if !strings.Contains(all, part) {
			t.Errorf("not sent: %s\n%s", part, all)
		}
	}
	if strings.Contains(all, "hunter2") || strings.Contains(all, "it is") || strings.Contains(all, `"ls"`) ||
		strings.Contains(all, "exit 1") {
		t.Errorf("content is sent: %s", all)
	}
	metrics := strings.Join(c.bodies["/v1/metrics"], "")
	for _, part := range []string{tokenUsage, duration, `"name":"ductor.cost"`,
		`"gen_ai.token.type","value":{"stringValue":"input"}`, `"sum":7`, `"asDouble":0.25`} {
		if !strings.Contains(metrics, part) {
			t.Errorf("not sent: %s\n%s", part, metrics)
		}
	}
}

func TestContentIsSentWithoutSecrets(t *testing.T) {
	all := strings.Join(traced(t, true, aTurn).bodies["/v1/traces"], "")
	if !strings.Contains(all, "it is ***") || !strings.Contains(all, "say ***") || !strings.Contains(all, "a ***") ||
		strings.Contains(all, "hunter2") {
		t.Error(all)
	}
}

// The process that resumes a detached turn sends its span.
func TestADetachedTurnIsNotSent(t *testing.T) {
	c := traced(t, false, func(emit func(cli.Event)) cli.Result { aTurn(emit); return cli.Result{Detached: true} })
	if len(c.bodies) > 0 {
		t.Errorf("%v", c.bodies)
	}
}

// Data that the collector does not accept never blocks and is limited in memory.
func TestACollectorThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	defer server.Close()
	tracer := New(Options{Settings: Settings{URL: server.URL}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	for range 3 {
		tracer.put(make([]span, 1000))
	}
	if len(tracer.spans) != mostSpans || tracer.dropped != 3000-mostSpans {
		t.Errorf("%d spans kept, %d dropped", len(tracer.spans), tracer.dropped)
	}
	if err := tracer.send(t.Context(), "/v1/traces", spansRequest{}); err == nil ||
		!strings.Contains(err.Error(), "307") {
		t.Errorf("a redirect gives %v", err)
	}
	for i := range 2 * mostSeries {
		var a attributes
		a.number("n", int64(i+1))
		tracer.observeLocked(duration, a, 1)
	}
	if len(tracer.series) != mostSeries {
		t.Errorf("%d series", len(tracer.series))
	}
}
