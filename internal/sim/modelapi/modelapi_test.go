package modelapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ductor/internal/sim/modelapi"
	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m) }

const key = "sk-test"

func start(t *testing.T) *modelapi.Server {
	t.Helper()
	s := modelapi.New(modelapi.Options{Key: key})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// answer is a response: a status, and an object or events.
type answer struct {
	status int
	header http.Header
	object map[string]any
	events []sse
	broken bool // the connection broke
}

type sse struct {
	name string
	data map[string]any
}

func post(t *testing.T, s *modelapi.Server, path, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", key)
	req.Header.Set("anthropic-version", "2023-06-01")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Del(headers[i])
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return answer{broken: true}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a.readEvents(t, resp.Body)
		return a
	}
	if err := json.NewDecoder(resp.Body).Decode(&a.object); err != nil {
		t.Fatalf("status %d, no JSON: %v", resp.StatusCode, err)
	}
	return a
}

func (a *answer) readEvents(t *testing.T, r io.Reader) {
	t.Helper()
	br := bufio.NewReader(r)
	var e sse
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			a.broken = !errors.Is(err, io.EOF)
			return
		}
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), &e.data); err != nil {
				t.Fatalf("event with no JSON: %q", line)
			}
		case line == "":
			if e.data["type"] != e.name {
				t.Errorf("event %s has type %v", e.name, e.data["type"])
			}
			a.events = append(a.events, e)
			e = sse{}
		}
	}
}

// names returns the names of the events in order, without direct repetitions.
func (a answer) names() string {
	var names []string
	for _, e := range a.events {
		if n := len(names); n == 0 || names[n-1] != e.name {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, " ")
}

// text joins the text deltas of either API.
func (a answer) text() string {
	var b strings.Builder
	for _, e := range a.events {
		if e.name == "response.output_text.delta" {
			b.WriteString(e.data["delta"].(string))
		}
		if d, ok := e.data["delta"].(map[string]any); ok && d["type"] == "text_delta" {
			b.WriteString(d["text"].(string))
		}
	}
	return b.String()
}

func quote(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProbes(t *testing.T) {
	s := start(t)
	for path, want := range map[string]int{"HEAD /": 200, "GET /v1/models": 200, "GET /v1/nonsense": 404,
		"GET /v1/messages": 404} {
		method, p, _ := strings.Cut(path, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+p, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	if len(s.Requests()) != 4 || len(s.Prompts()) != 0 {
		t.Errorf("recorded %v", s.Requests())
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	s := modelapi.New(modelapi.Options{})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan answer, 1)
	go func() {
		defer close(done)
		done <- post(t, s, "/v1/messages", userMessage(t, "[[hang]]", true))
	}()
	if err := s.Await(t.Context(), func(all []modelapi.Request) bool { return len(all) == 1 }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if a := <-done; !a.broken || len(a.events) != 0 {
		t.Errorf("it ended with %+v", a)
	}
}

func TestAwaitGivesUp(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Await(ctx, func([]modelapi.Request) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"[[tool x]]"}],"tools":[{"name":"Bash","input_schema":{}}]}`,
		`{"model":"m","input":[{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a"}],"stream":true}`,
		`{"model":"m","input":"[[write path=a text=b]]","tools":[{"type":"custom","name":"apply_patch"}]}`,
		`{"messages":[{"content":[{"type":"image"}]}]}`, `[`,
		`{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[{}]}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h := modelapi.New(modelapi.Options{}).Handler()
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the requests return at once
		for _, path := range []string{"/v1/messages", "/v1/responses", "/v1/messages/count_tokens"} {
			serve(ctx, t, h, path, body)
		}
	})
}
