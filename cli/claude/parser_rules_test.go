package claude

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

// run passes lines to one turn. It returns the turn's events and the replies.
func run(t *testing.T, mem *memory, setUp func(*parser), lines ...string) (events []cli.Event, replies []string, p *parser) {
	t.Helper()
	clock := time.Unix(1000, 0)
	em := turn.NewEmitter(agent, func() time.Time { return clock }, func(ev cli.Event) { events = append(events, ev) })
	p = newParser(em, mem, "/srv/proj")
	if setUp != nil {
		setUp(p)
	}
	for _, l := range lines {
		reply, end := p.line([]byte(l))
		if reply != nil {
			replies = append(replies, string(reply))
		}
		if end {
			break
		}
	}
	em.Finish(p.outcome)
	return events, replies, p
}

func result(events []cli.Event) cli.Result {
	r, _ := events[len(events)-1].(cli.Result)
	return r
}

const (
	initLine = `{"type":"system","subtype":"init","session_id":"S","model":"M","apiKeySource":"ANTHROPIC_API_KEY"}`
	doneLine = `{"type":"result","subtype":"success","is_error":false,"session_id":"S","result":"","num_turns":1}`
)

func textLines(id, text string) []string {
	return []string{
		`{"type":"stream_event","session_id":"S","event":{"type":"message_start","message":{"id":"` + id + `"}}}`,
		`{"type":"stream_event","session_id":"S","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}`,
		`{"type":"stream_event","session_id":"S","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}}`,
	}
}

func TestFailures(t *testing.T) {
	reset := time.Unix(1_800_000_000, 0)
	tests := []struct {
		name   string
		lines  []string
		want   cli.FailureKind
		reason string
		reset  time.Time
	}{
		{"a subscription's limit, with the time it ends", []string{
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000,"rateLimitType":"five_hour"}}`,
			`{"type":"assistant","message":{"id":"1","model":"<synthetic>","content":[{"type":"text","text":"You've hit your limit"}]},"error":"rate_limit"}`,
			`{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit"}`,
		}, cli.LimitReached, "You've hit your limit", reset},
		{"a limit that is only near is no failure of another turn's kind", []string{
			`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1800000000}}`,
			`{"type":"result","is_error":true,"api_error_status":404,"result":"no such model"}`,
		}, cli.UnknownModel, "no such model", time.Time{}},
		{"overloaded, told by status alone", []string{
			`{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded"}`,
		}, cli.Overloaded, "529 Overloaded", time.Time{}},
		{"the connection was lost until it gave up", []string{
			`{"type":"system","subtype":"api_retry","attempt":10,"max_retries":10,"retry_delay_ms":500,"error_status":null}`,
			`{"type":"result","subtype":"success","is_error":true,"result":"API Error: something"}`,
		}, cli.NetworkDown, "something", time.Time{}},
		{"a log-in refused at the first retry", []string{
			`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":600,"error_status":401}`,
		}, cli.NotLoggedIn, "the model's API did not accept the log-in (401)", time.Time{}},
		{"a log-in that could be refreshed, refused again", []string{
			`{"type":"system","subtype":"init","session_id":"S","model":"M","apiKeySource":"none"}`,
			`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":600,"error_status":401}`,
			`{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":600,"error_status":401}`,
		}, cli.NotLoggedIn, "the model's API did not accept the log-in (401)", time.Time{}},
		{"credit is used up", []string{
			`{"type":"assistant","message":{"id":"1","model":"<synthetic>","content":[]},"error":"billing_error"}`,
			`{"type":"result","is_error":true,"result":"Credit balance is too low"}`,
		}, cli.LimitReached, "Credit balance is too low", time.Time{}},
		{"a session that is gone", []string{
			`{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"other","errors":["No conversation found with session ID: X"]}`,
		}, cli.ResumeFailed, "No conversation found with session ID: X", time.Time{}},
		{"an answer in a session without a name", []string{
			`{"type":"result","subtype":"success","is_error":false,"result":"","num_turns":1}`,
		}, cli.BadOutput, "it did not name its session, so your next message starts a new one", time.Time{}},
		{"notes Claude makes for itself are not shown", []string{
			`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["[ede_diagnostic] x","disk full"]}`,
		}, cli.UnknownFailure, "disk full", time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, _, _ := run(t, newMemory(), nil, tt.lines...)
			got := result(events)
			if got.Err == nil || got.Err.Kind != tt.want || got.Err.Why().String() != tt.reason || !got.Err.ResetAt.Equal(tt.reset) {
				t.Errorf("got %+v, want %s %q %v", got.Err, tt.want, tt.reason, tt.reset)
			}
			if got.Text != "" {
				t.Errorf("an error is no answer, got %q", got.Text)
			}
		})
	}
}

// Claude retries for three minutes, so ending only the turn would not stop it.
func TestRefusedLoginStopsTheProcess(t *testing.T) {
	_, _, p := run(t, newMemory(), nil, initLine,
		`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":600,"error_status":401}`)
	if p.phase != abandoned {
		t.Error("the process is left to retry")
	}
}

// A turn that continued without ductor may have succeeded after Claude tried again.
func TestAPastRefusedLoginDoesNotEndTheTurn(t *testing.T) {
	em := turn.NewEmitter(agent, time.Now, func(cli.Event) {})
	resumed := &turn.Resumed{When: func(int64) time.Time { return time.Now() }}
	turn.New(turn.Loop[string]{Source: turn.Source[string]{Resumed: resumed}, Out: em})
	p := newParser(em, newMemory(), "/srv/proj")
	refused := `{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"error_status":401}`
	if _, over := p.line([]byte(refused)); over {
		t.Error("the turn ended, although its output continues")
	}
	em.Pass(cli.CaughtUp{})
	if _, over := p.line([]byte(refused)); !over {
		t.Error("the turn continues, although the log-in is still refused")
	}
}

func TestNearLimitIsAWarning(t *testing.T) {
	events, _, _ := run(t, newMemory(), nil, initLine,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1800000000}}`, doneLine)
	want := []cli.Event{
		cli.SessionStarted{AgentSessionID: "S", Model: "M"},
		cli.PromptAccepted{},
		cli.RateLimited{ResetAt: time.Unix(1_800_000_000, 0)},
	}
	if diff := cmp.Diff(want, events[:len(events)-1]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestDenials(t *testing.T) {
	const ask = `{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch a"},"tool_use_id":"t1"}}`
	mem := newMemory()
	events, replies, _ := run(t, mem, nil, initLine,
		`{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"touch a"}}]}}`,
		`{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t2","name":"Write","input":{"file_path":"/srv/proj/b"}}]}}`,
		ask,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"not granted"}]}}`,
		`{"type":"result","is_error":false,"permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"touch a"}},{"tool_name":"Write","tool_use_id":"t2","tool_input":{"file_path":"/srv/proj/b"}}]}`)
	want := []cli.Denial{
		{Tool: "Bash", Title: "touch a", Reason: "the permission mode does not let it through"},
		{Tool: "Write", Title: "b", Reason: "not granted"},
	}
	if diff := cmp.Diff(want, result(events).Denials); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
	if len(replies) != 1 || !strings.Contains(replies[0], `"behavior":"deny"`) || !strings.Contains(replies[0], `"request_id":"r1"`) {
		t.Errorf("replies %q", replies)
	}

	t.Run("are told once, even where a later turn lists them again", func(t *testing.T) {
		events, _, _ := run(t, mem, nil, initLine,
			`{"type":"result","is_error":false,"permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{}}]}`)
		if got := result(events).Denials; got != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestUnknownControlRequestIsAnswered(t *testing.T) {
	_, replies, _ := run(t, newMemory(), nil, `{"type":"control_request","request_id":"r9","request":{"subtype":"mcp_message"}}`)
	if len(replies) != 1 || !strings.Contains(replies[0], `"subtype":"error"`) || !strings.HasSuffix(replies[0], "\n") {
		t.Errorf("replies %q: an unanswered request would hang the turn", replies)
	}
}

func TestBackgroundTurn(t *testing.T) {
	backgroundResult := `{"type":"result","is_error":false,"session_id":"S","result":"bg","origin":{"kind":"task-notification"}}`
	echo := `{"type":"user","isReplay":true,"uuid":"E","message":{"role":"user","content":"hi"}}`
	t.Run("before ours is taken up is handed over and taken back", func(t *testing.T) {
		var other []string
		events, _, _ := run(t, newMemory(), func(p *parser) {
			p.echo = "E"
			p.observer.background = func(r cli.BackgroundResult) { other = append(other, r.Text) }
		}, slices.Concat([]string{initLine}, textLines("A", "background"), []string{backgroundResult, initLine, echo}, textLines("B", "mine"), []string{doneLine})...)
		if got := result(events).Text; got != "mine" {
			t.Errorf("answer %q", got)
		}
		if len(other) != 1 || other[0] != "background" {
			t.Errorf("background %q", other)
		}
	})

	t.Run("that ours joined ends ours", func(t *testing.T) {
		events, _, _ := run(t, newMemory(), func(p *parser) {
			p.echo = "E"
			p.observer.background = func(r cli.BackgroundResult) { t.Errorf("handed over %q", r.Text) }
		}, slices.Concat([]string{initLine}, textLines("A", "both"), []string{echo, backgroundResult}, textLines("B", "never"))...)
		if got := result(events).Text; got != "both" {
			t.Errorf("answer %q", got)
		}
	})
}

func TestGivenUpMessage(t *testing.T) {
	t.Run("is replaced when it streams anew", func(t *testing.T) {
		lines := append([]string{initLine}, textLines("A", "The quick")...)
		lines = append(append(lines, textLines("B", "The slow")...), doneLine)
		events, _, _ := run(t, newMemory(), nil, lines...)
		if got := result(events).Text; got != "The slow" {
			t.Errorf("answer %q", got)
		}
	})
	t.Run("keeps what it said when an error is all that follows", func(t *testing.T) {
		lines := append([]string{initLine}, textLines("A", "The quick")...)
		lines = append(lines,
			`{"type":"assistant","message":{"id":"X","model":"<synthetic>","content":[{"type":"text","text":"API Error: 500"}]},"error":"server_error"}`,
			`{"type":"result","is_error":true,"result":"API Error: 500"}`)
		events, _, _ := run(t, newMemory(), nil, lines...)
		if got := result(events); got.Text != "The quick" || got.Err == nil {
			t.Errorf("got %q, %v", got.Text, got.Err)
		}
	})
	t.Run("ends the tools it had begun", func(t *testing.T) {
		lines := append([]string{initLine}, textLines("A", "x")...)
		lines = append(lines,
			`{"type":"stream_event","event":{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}}`,
			`{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}}`,
			`{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}}`,
			`{"type":"stream_event","event":{"type":"content_block_stop","index":1}}`)
		lines = append(append(lines, textLines("B", "y")...), doneLine)
		events, _, _ := run(t, newMemory(), nil, lines...)
		var started, ended int
		for _, ev := range events {
			switch ev := ev.(type) {
			case cli.ToolStarted:
				started++
				if string(ev.Input) != `{"command":"ls"}` || ev.Title != "ls" {
					t.Errorf("assembled %s, title %q", ev.Input, ev.Title)
				}
			case cli.ToolEnded:
				ended++
			}
		}
		if started != 1 || ended != 1 || result(events).Text != "y" {
			t.Errorf("%d started, %d ended, answer %q", started, ended, result(events).Text)
		}
	})
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name, result, structured string
		want                     string
	}{
		{"success", `"content":"hi","is_error":false`, `{"stdout":"hi","interrupted":false}`, "0"},
		{"failure", `"content":"Exit code 3\nboom","is_error":true`, `"Error: Exit code 3"`, "3"},
		{"failure without output", `"content":"Exit code 127","is_error":true`, `null`, "127"},
		{"refused", `"content":"Exit codes are not for you","is_error":true`, `null`, "none"},
		{"background", `"content":"running","is_error":false`, `{"backgroundTaskId":"b"}`, "none"},
		{"interrupted", `"content":"","is_error":false`, `{"interrupted":true}`, "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, _, _ := run(t, newMemory(), nil, initLine,
				`{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"x"}}]}}`,
				`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t",`+tt.result+`}]},"tool_use_result":`+tt.structured+`}`)
			got := "no end"
			for _, ev := range events {
				if end, ok := ev.(cli.ToolEnded); ok {
					got = "none"
					if end.ExitCode != nil {
						got = fmt.Sprint(*end.ExitCode)
					}
				}
			}
			if got != tt.want {
				t.Errorf("exit code %s, want %s", got, tt.want)
			}
		})
	}
}

func TestGarbageIsCountedAndPassedOver(t *testing.T) {
	var garbage []string
	events, _, _ := run(t, newMemory(), func(p *parser) {
		p.observer.garbage = func(raw []byte) { garbage = append(garbage, string(raw)) }
	}, "\x00\xff binary", initLine, "[1,2]", doneLine)
	if diff := cmp.Diff([]string{"\x00\xff binary", "[1,2]"}, garbage); diff != "" {
		t.Errorf("garbage (-want +got):\n%s", diff)
	}
	if r := result(events); r.Err != nil || r.AgentSessionID != "S" {
		t.Errorf("result %+v", r)
	}
}

// Claude counts cost from the start of the process, and again from zero when its context is cleared.
func TestCostIsOfThisTurnAlone(t *testing.T) {
	mem := newMemory()
	for i, tt := range []struct {
		total float64
		in    int
		want  float64
	}{{1, 10, 1}, {3, 30, 2}, {3, 30, 0}, {0.5, 5, 0.5}} {
		events, _, _ := run(t, mem, nil, initLine, fmt.Sprintf(
			`{"type":"result","is_error":false,"total_cost_usd":%g,"modelUsage":{"m":{"inputTokens":%d}}}`, tt.total, tt.in))
		got := result(events)
		if got.Consumed.CostUSD != tt.want || got.Consumed.Usage.Input != int64(tt.want*10) {
			t.Errorf("turn %d: cost %g, %d tokens, want %g", i, got.Consumed.CostUSD, got.Consumed.Usage.Input, tt.want)
		}
	}
}

// If a later message uses the ID of an ended tool for another tool, users see both tools with their outputs.
func TestALaterMessageCanUseTheIDOfAnEndedTool(t *testing.T) {
	call := func(message, command string) string {
		return `{"type":"assistant","message":{"id":"` + message + `","content":[` +
			`{"type":"tool_use","id":"call_0","name":"Bash","input":{"command":"` + command + `"}}]}}`
	}
	ended := func(output string) string {
		return `{"type":"user","message":{"content":[` +
			`{"type":"tool_result","tool_use_id":"call_0","content":"` + output + `"}]}}`
	}
	events, _, _ := run(t, newMemory(), nil, initLine,
		call("m1", "ls a"), call("m1", "ls a"), ended("in a"), call("m1", "ls  a"),
		call("m2", "ls b"), ended("in b"), doneLine)
	clitest.CheckOutputs(t, events, map[string]string{"ls a": "in a", "ls b": "in b"})
}
