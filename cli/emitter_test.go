package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// recorded makes an Emitter that keeps what it emits.
func recorded(now func() time.Time) (*Emitter, *[]Event) {
	events := &[]Event{}
	return NewEmitter("fake", now, func(ev Event) { *events = append(*events, ev) }), events
}

func TestEmitterText(t *testing.T) {
	for _, tc := range []struct {
		name string
		play func(*Emitter)
		want []Event
	}{
		{"deltas of one message", func(e *Emitter) { e.Text("a", "He"); e.Text("a", ""); e.Text("a", "llo") },
			[]Event{TextDelta{"He"}, TextDelta{"llo"}}},
		{"two messages are parted", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two") },
			[]Event{TextDelta{"One"}, TextDelta{"\n\n"}, TextDelta{"Two"}}},
		{"the whole repeats the deltas", func(e *Emitter) { e.Text("a", "Hello"); e.FullText("a", "Hello") },
			[]Event{TextDelta{"Hello"}}},
		{"the whole goes further", func(e *Emitter) { e.Text("a", "Hel"); e.FullText("a", "Hello") },
			[]Event{TextDelta{"Hel"}, TextDelta{"lo"}}},
		{"the whole differs", func(e *Emitter) { e.Text("a", "Help"); e.FullText("a", "Hello") },
			[]Event{TextDelta{"Help"}, TextRetracted{1}, TextDelta{"lo"}}},
		{"common bytes of different characters", func(e *Emitter) { e.Text("a", "xé"); e.FullText("a", "xè") },
			[]Event{TextDelta{"xé"}, TextRetracted{2}, TextDelta{"è"}}},
		{"the whole without deltas", func(e *Emitter) { e.FullText("a", "Hello") },
			[]Event{TextDelta{"Hello"}}},
		{"the whole of an earlier message", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two"); e.FullText("a", "Uno") },
			[]Event{TextDelta{"One"}, TextDelta{"\n\n"}, TextDelta{"Two"}}},
		{"a message given up", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two"); e.DropText("b"); e.Text("c", "2") },
			[]Event{TextDelta{"One"}, TextDelta{"\n\n"}, TextDelta{"Two"}, TextRetracted{5}, TextDelta{"\n\n"}, TextDelta{"2"}}},
		{"the only message given up", func(e *Emitter) { e.Text("a", "One"); e.DropText("x"); e.DropText("a"); e.DropText("a") },
			[]Event{TextDelta{"One"}, TextRetracted{3}}},
		{"emptied by the whole", func(e *Emitter) { e.Text("a", "One"); e.Text("b", "Two"); e.FullText("b", "") },
			[]Event{TextDelta{"One"}, TextDelta{"\n\n"}, TextDelta{"Two"}, TextRetracted{5}}},
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
	e.ToolStart(ToolStarted{ID: "1", Name: "Bash"})
	e.ToolStart(ToolStarted{ID: "1", Name: "Bash"})
	e.ToolStart(ToolStarted{ID: "2", Name: "Read"})
	if e.OpenTools() != 2 || !e.Shown() {
		t.Errorf("%d tools open, shown %v", e.OpenTools(), e.Shown())
	}
	now = now.Add(3 * time.Second)
	e.ToolEnd(ToolEnded{ID: "1", Output: "ok"})
	e.ToolEnd(ToolEnded{ID: "1", Output: "again"})
	e.ToolEnd(ToolEnded{ID: "9"})
	e.Pass(Status{Kind: StatusCompacting})
	e.Finish(Result{Err: Failf(Crashed, "", "gone")})
	e.Finish(Result{})
	e.Text("a", "late")
	e.FullText("a", "late")
	e.DropText("a")
	e.Thinking("late")
	e.ToolStart(ToolStarted{ID: "3"})
	e.Session("late", "")
	e.Pass(Status{})
	want := []Event{
		SessionStarted{"s", "m"}, SessionStarted{"s", "n"},
		ToolStarted{ID: "1", Name: "Bash"}, ToolStarted{ID: "2", Name: "Read"},
		ToolEnded{ID: "1", Output: "ok", Duration: 3 * time.Second},
		Status{Kind: StatusCompacting},
		ToolEnded{ID: "2", Duration: 3 * time.Second, Err: ToolCutShort},
		Result{AgentSessionID: "s", Model: "n", Duration: 3 * time.Second, Err: &Failure{Kind: Crashed, Agent: "fake", Reason: "gone"}},
	}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Error(diff)
	}
	if !e.Finished() {
		t.Error("not finished")
	}
}

// Law: under any calls in any order, what was emitted is a turn by the contract, the deltas make the
// Result's text, and no retraction or addition cuts a character that was whole.
func TestEmitterLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var answer Answer
		results, open := 0, map[ToolID]bool{}
		var last Result
		e := NewEmitter("fake", time.Now, func(ev Event) {
			if results > 0 {
				t.Fatalf("%T after the Result", ev)
			}
			switch ev := ev.(type) {
			case TextRetracted:
				if have := len(answer.String()); ev.Bytes <= 0 || ev.Bytes > have {
					t.Fatalf("%d of %d bytes retracted", ev.Bytes, have)
				}
			case ToolStarted:
				open[ev.ID] = true
			case ToolEnded:
				if !open[ev.ID] {
					t.Fatalf("tool %q ended and was not open", ev.ID)
				}
				delete(open, ev.ID)
			case Result:
				results++
				last = ev
			}
			answer.Add(ev)
			if !utf8.ValidString(answer.String()) {
				t.Fatalf("a character was cut: %q", answer.String())
			}
		})
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab é日è\n🎉🎊")))
		key, tool := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]ToolID{"1", "2"})
		t.Repeat(map[string]func(*rapid.T){
			"text":  func(t *rapid.T) { e.Text(key.Draw(t, "key"), text.Draw(t, "text")) },
			"full":  func(t *rapid.T) { e.FullText(key.Draw(t, "key"), text.Draw(t, "text")) },
			"drop":  func(t *rapid.T) { e.DropText(key.Draw(t, "key")) },
			"start": func(t *rapid.T) { e.ToolStart(ToolStarted{ID: tool.Draw(t, "tool")}) },
			"end":   func(t *rapid.T) { e.ToolEnd(ToolEnded{ID: tool.Draw(t, "tool")}) },
			"think": func(t *rapid.T) { e.Thinking(text.Draw(t, "text")) },
			"finish": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					e.Finish(Result{})
				}
			},
			"": func(t *rapid.T) {
				if answer.String() != e.Answer() {
					t.Fatalf("deltas make %q, the answer is %q", answer.String(), e.Answer())
				}
			},
		})
		e.Finish(Result{})
		if results != 1 || last.Text != answer.String() || len(open) > 0 {
			t.Fatalf("%d results, text %q of %q, open %v", results, last.Text, answer.String(), open)
		}
	})
}

// The whole answer comes in thousands of deltas: the work must not grow with its square.
func BenchmarkEmitter(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		e := NewEmitter("fake", time.Now, func(Event) {})
		for range 5000 {
			e.Text("a", "twenty characters go ")
		}
		e.FullText("a", strings.Repeat("twenty characters go ", 5000))
		e.Finish(Result{})
	}
}
