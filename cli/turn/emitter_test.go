package turn

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/clitest"
)

// recorded returns an Emitter and its events.
func recorded(now func() time.Time) (*Emitter, *[]cli.Event) {
	events := &[]cli.Event{}
	return NewEmitter("fake", now, func(ev cli.Event) { *events = append(*events, ev) }), events
}

func TestEmitterText(t *testing.T) {
	for _, tc := range []struct {
		name string
		play func(*Emitter)
		want []cli.Event
	}{
		{"deltas of one message", func(e *Emitter) { e.Text("a", "He"); e.Text("a", ""); e.Text("a", "llo") },
			[]cli.Event{cli.TextDelta{Text: "He"}, cli.TextDelta{Text: "llo"}}},
		{"two messages are parted", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two") },
			[]cli.Event{cli.TextDelta{Text: "One"}, cli.TextDelta{Text: "\n\n"}, cli.TextDelta{Text: "Two"}}},
		{"the whole repeats the deltas", func(e *Emitter) { e.Text("a", "Hello"); e.FullText("a", "Hello") },
			[]cli.Event{cli.TextDelta{Text: "Hello"}}},
		{"the whole goes further", func(e *Emitter) { e.Text("a", "Hel"); e.FullText("a", "Hello") },
			[]cli.Event{cli.TextDelta{Text: "Hel"}, cli.TextDelta{Text: "lo"}}},
		{"the whole differs", func(e *Emitter) { e.Text("a", "Help"); e.FullText("a", "Hello") },
			[]cli.Event{cli.TextDelta{Text: "Help"}, cli.TextRetracted{Bytes: 1}, cli.TextDelta{Text: "lo"}}},
		{"common bytes of different characters", func(e *Emitter) { e.Text("a", "xé"); e.FullText("a", "xè") },
			[]cli.Event{cli.TextDelta{Text: "xé"}, cli.TextRetracted{Bytes: 2}, cli.TextDelta{Text: "è"}}},
		{"the whole without deltas", func(e *Emitter) { e.FullText("a", "Hello") },
			[]cli.Event{cli.TextDelta{Text: "Hello"}}},
		{"the whole of an earlier message", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two"); e.FullText("a", "Uno") },
			[]cli.Event{cli.TextDelta{Text: "One"}, cli.TextDelta{Text: "\n\n"}, cli.TextDelta{Text: "Two"}}},
		{"a message given up", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two"); e.GiveUp("b"); e.Text("c", "2") },
			[]cli.Event{cli.TextDelta{Text: "One"}, cli.TextDelta{Text: "\n\n"}, cli.TextDelta{Text: "Two"}, cli.TextRetracted{Bytes: 3}, cli.TextDelta{Text: "2"}}},
		{"a message given up, and another one that begins with its letters",
			func(e *Emitter) { e.Text("a", "One two"); e.GiveUp("a"); e.Text("b", "One three") },
			[]cli.Event{cli.TextDelta{Text: "One two"}, cli.TextRetracted{Bytes: 3}, cli.TextDelta{Text: "three"}}},
		{"a message given up and said again", func(e *Emitter) {
			e.Text("a", "One. Two")
			for _, again := range []string{"b", "c"} {
				e.GiveUp("a")
				e.GiveUp("b")
				e.Text(again, "One.")
			}
			e.FullText("c", "One. Two. Three")
		}, []cli.Event{cli.TextDelta{Text: "One. Two"}, cli.TextRetracted{Bytes: 3},
			cli.TextDelta{Text: "Two. Three"}}},
		{"a message given up and said again in fewer words", func(e *Emitter) {
			e.Text("a", "One. Two")
			e.GiveUp("a")
			e.FullText("b", "One.")
			e.ToolStart(cli.ToolStarted{ID: "1"})
		},
			[]cli.Event{cli.TextDelta{Text: "One. Two"}, cli.TextRetracted{Bytes: 4}, cli.ToolStarted{ID: "1"}}},
		{"the only message given up", func(e *Emitter) { e.Text("a", "One"); e.GiveUp("x"); e.GiveUp("a"); e.GiveUp("a") },
			[]cli.Event{cli.TextDelta{Text: "One"}}},
		{"emptied by the whole", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two"); e.FullText("b", "") },
			[]cli.Event{cli.TextDelta{Text: "One"}, cli.TextDelta{Text: "\n\n"}, cli.TextDelta{Text: "Two"}, cli.TextRetracted{Bytes: 5}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, events := recorded(time.Now)
			tc.play(e)
			if diff := cmp.Diff(tc.want, *events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEmitterSessionAndTools(t *testing.T) {
	now := time.Unix(0, 0)
	e, events := recorded(func() time.Time { return now })
	e.Session("s", "m")
	e.Session("s", "m")
	e.Session("s", "n")
	e.ToolStart(cli.ToolStarted{ID: "1", Name: "Bash"})
	e.ToolStart(cli.ToolStarted{ID: "1", Name: "Bash"})
	e.ToolStart(cli.ToolStarted{ID: "2", Name: "Read"})
	if e.OpenTools() != 2 {
		t.Errorf("%d tools open", e.OpenTools())
	}
	now = now.Add(3 * time.Second)
	e.ToolEnd(cli.ToolEnded{ID: "1", Output: "ok"})
	e.ToolEnd(cli.ToolEnded{ID: "1", Output: "again"})
	e.ToolStart(cli.ToolStarted{ID: "1", Name: "Bash"})
	e.ToolStart(cli.ToolStarted{Name: "Bash"})
	e.ToolEnd(cli.ToolEnded{ID: "9"})
	e.Pass(cli.Status{Kind: cli.StatusCompacting})
	e.Finish(cli.Result{Err: &cli.Failure{Kind: cli.Crashed, Reason: "gone"}})
	e.Finish(cli.Result{})
	e.Text("a", "late")
	e.FullText("a", "late")
	e.GiveUp("a")
	e.Thinking("late")
	e.ToolStart(cli.ToolStarted{ID: "3"})
	e.Session("late", "")
	e.Pass(cli.Status{})
	want := []cli.Event{
		cli.SessionStarted{AgentSessionID: "s", Model: "m"}, cli.SessionStarted{AgentSessionID: "s", Model: "n"},
		cli.ToolStarted{ID: "1", Name: "Bash"}, cli.ToolStarted{ID: "2", Name: "Read"},
		cli.ToolEnded{ID: "1", Output: "ok", Duration: 3 * time.Second},
		cli.Status{Kind: cli.StatusCompacting},
		cli.ToolEnded{ID: "2", Duration: 3 * time.Second, Err: cli.ToolCutShort},
		cli.Result{AgentSessionID: "s", Model: "n", Duration: 3 * time.Second, Err: &cli.Failure{Kind: cli.Crashed, Agent: "fake", Reason: "gone"}},
	}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Error(diff)
	}
	if !e.Finished() {
		t.Error("not finished")
	}
}

// Tools of a turn that continues without ductor are running: no event ends them.
func TestEmitterLeavesToolsOfADetachedTurnOpen(t *testing.T) {
	e, events := recorded(time.Now)
	e.ToolStart(cli.ToolStarted{ID: "1", Name: "Bash"})
	e.Finish(cli.Result{Detached: true, Duration: time.Second})
	want := []cli.Event{cli.ToolStarted{ID: "1", Name: "Bash"}, cli.Result{Detached: true, Duration: time.Second}}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Error(diff)
	}
}

// A model may use the ID of an ended tool for another tool: both are shown, each with its own output.
func TestAnEndedToolsIDCanStandForAnotherTool(t *testing.T) {
	e, events := recorded(func() time.Time { return time.Time{} })
	read := cli.ToolStarted{ID: "0", Name: "Read", Input: json.RawMessage(`{"path":"a"}`)}
	agent := cli.ToolStarted{ID: "0", Name: "Task"}
	for _, told := range []func(){
		func() { e.ToolStart(read) },
		func() { e.ToolStart(agent) }, // ignored: the ID stands for a running tool
		func() { e.ToolEnd(cli.ToolEnded{ID: "0", Output: "the file"}) },
		func() { e.ToolStart(read) }, // repeated
		func() { e.Pass(cli.ApprovalAsked{ID: "early", Started: "0"}) },
		func() { e.ToolStart(agent) },
		func() { e.ToolStart(agent) }, // repeated
		func() { e.Pass(cli.QuestionAsked{ID: "late", Started: "0"}) },
		func() { e.ToolStart(cli.ToolStarted{ID: "1", Name: "Bash", Parent: "0"}) },
		func() { e.ToolChange(cli.ToolStarted{ID: "0", Name: "Agent"}) },
		func() { e.ToolEnd(cli.ToolEnded{ID: "0", Output: "done"}) },
		func() { e.Finish(cli.Result{}) },
	} {
		told()
	}
	want := []cli.Event{
		read, cli.ToolEnded{ID: "0", Output: "the file"},
		cli.ApprovalAsked{ID: "early", Started: "0#2"},
		cli.ToolStarted{ID: "0#2", Name: "Task"},
		cli.QuestionAsked{ID: "late", Started: "0#2"},
		cli.ToolStarted{ID: "1", Name: "Bash", Parent: "0#2"},
		cli.ToolChanged{ToolStarted: cli.ToolStarted{ID: "0#2", Name: "Agent"}},
		cli.ToolEnded{ID: "0#2", Output: "done"},
		cli.ToolEnded{ID: "1", Err: cli.ToolCutShort}, cli.Result{},
	}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Error(diff)
	}
}

// Law: after any calls in any order, the events fulfil the contract of a turn, and no retraction or addition splits a
// character that was whole.
func TestEmitterLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var answer cli.Answer
		var events []cli.Event
		e := NewEmitter("fake", time.Now, func(ev cli.Event) {
			events = append(events, ev)
			answer.Add(ev)
			if !utf8.ValidString(answer.String()) {
				t.Fatalf("a character was cut: %q", answer.String())
			}
		})
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab é日è\n🎉🎊")))
		key, tool := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]cli.ToolID{"", "1", "2", "1#2"})
		id := rapid.SampledFrom([]cli.AgentSessionID{"", "s", "t"})
		finish := func() { e.Finish(cli.Result{Aborted: !e.Named()}) }
		t.Repeat(map[string]func(*rapid.T){
			"name": func(t *rapid.T) {
				if len(events) == 0 || e.Named() { // providers name a session before its other events
					e.Session(id.Draw(t, "id"), "m")
				}
			},
			"accept": func(*rapid.T) { e.Accepted() },
			"text":   func(t *rapid.T) { e.Text(key.Draw(t, "key"), text.Draw(t, "text")) },
			"full":   func(t *rapid.T) { e.FullText(key.Draw(t, "key"), text.Draw(t, "text")) },
			"drop":   func(t *rapid.T) { e.GiveUp(key.Draw(t, "key")) },
			"start": func(t *rapid.T) {
				e.ToolStart(cli.ToolStarted{ID: tool.Draw(t, "tool"), Name: key.Draw(t, "name")})
			},
			"change": func(t *rapid.T) { e.ToolChange(cli.ToolStarted{ID: tool.Draw(t, "tool")}) },
			"end":    func(t *rapid.T) { e.ToolEnd(cli.ToolEnded{ID: tool.Draw(t, "tool")}) },
			"think":  func(t *rapid.T) { e.Thinking(text.Draw(t, "text")) },
			"finish": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					finish()
				}
			},
			"": func(t *rapid.T) {
				// Text that was given up stays for a while
				if answer.String() != e.Answer() && (e.confirmed < 0 ||
					!strings.HasPrefix(answer.String(), e.Answer())) {
					t.Fatalf("deltas make %q, the answer is %q", answer.String(), e.Answer())
				}
			},
		})
		finish()
		clitest.Keeps(t, events)
	})
}

// The whole answer comes in thousands of deltas: the work must not grow quadratically.
func BenchmarkEmitter(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		e := NewEmitter("fake", time.Now, func(cli.Event) {})
		for range 5000 {
			e.Text("a", "twenty characters go ")
		}
		e.FullText("a", strings.Repeat("twenty characters go ", 5000))
		e.Finish(cli.Result{})
	}
}

// A model appears with its own name in a chat; if the agent chose the models, it is the one that wrote most.
func TestModelsHaveTheirNames(t *testing.T) {
	for _, c := range []struct {
		said cli.ModelID
		used map[cli.ModelID]cli.Usage
		want cli.ModelID
	}{
		{"opus", nil, "opus"},
		{"$runtime|openai|gpt-5.2(openai)", nil, "gpt-5.2"},
		{"auto", nil, ""},
		{"auto-gemini-3", map[cli.ModelID]cli.Usage{"small": {Output: 2}, "large": {Output: 9}}, "large"},
		{"auto", map[cli.ModelID]cli.Usage{"small": {Output: 2}, "auto": {Output: 9}}, "small"},
		{"auto", map[cli.ModelID]cli.Usage{"auto": {Output: 9}}, ""},
	} {
		var result cli.Result
		e := NewEmitter("x", time.Now, func(ev cli.Event) {
			if r, ok := ev.(cli.Result); ok {
				result = r
			}
		})
		e.Session("s", c.said)
		e.Finish(cli.Result{Consumed: cli.Consumption{ByModel: c.used}})
		if result.Model != c.want {
			t.Errorf("%s is %q", c.said, result.Model)
		}
	}
}

func TestAPromptIsAcceptedAfterItsSessionHasAName(t *testing.T) {
	named, accepted := cli.SessionStarted{AgentSessionID: "s"}, cli.PromptAccepted{}
	for _, tc := range []struct {
		name string
		play func(*Emitter)
		want []cli.Event
	}{
		{"in order, twice", func(e *Emitter) { e.Session("s", ""); e.Accepted(); e.Accepted() },
			[]cli.Event{named, accepted}},
		{"before the name", func(e *Emitter) { e.Accepted(); e.Session("s", ""); e.Accepted() },
			[]cli.Event{named, accepted}},
		{"without a name", func(e *Emitter) { e.Accepted() }, nil},
		{"before the ID", func(e *Emitter) { e.Session("", "m"); e.Accepted(); e.Session("s", "") },
			[]cli.Event{named, accepted}},
		{"with the name once", func(e *Emitter) { e.Session("s", ""); e.Session("", "m"); e.Accepted() },
			[]cli.Event{named, cli.SessionStarted{AgentSessionID: "s", Model: "m"}, accepted}},
	} {
		e, events := recorded(time.Now)
		tc.play(e)
		if diff := cmp.Diff(tc.want, *events, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}
