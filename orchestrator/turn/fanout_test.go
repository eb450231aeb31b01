package turn

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

const secret = "hunter2-hunter2"

// notes lists the events of observers, in order.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) append(who string, ev cli.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf("%s %+v", who, ev))
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// card is a card that notes its events.
type card struct {
	orchestrator.Card
	notes *notes
}

func (c card) Show(ev cli.Event) { c.notes.append("card", ev) }

// files is a watch of files that notes its events.
type files struct {
	orchestrator.TurnWatch
	notes *notes
}

func (f files) Observe(ev cli.Event) { f.notes.append("files", ev) }

// trace is a trace that notes its events.
type trace struct{ notes *notes }

func (t trace) Observe(ev cli.Event) { t.notes.append("trace", ev) }
func (trace) End(cli.Result)         {}

func observe() (*Fanout, *notes) {
	f, o := NewFanout(time.Now), &notes{}
	f.Redact(NewRedactor(func(f func()) { go f() }, func() *secrets.Set { return secrets.NewSet(secret) }))
	f.WatchFiles(func() orchestrator.TurnWatch { return files{notes: o} })
	f.SetCard(func() orchestrator.Card { return card{notes: o} })
	return f, o
}

// Each event reaches the observers in the documented order, and none of them gets a secret, not even one in pieces.
func TestAFanoutPassesEventsInOrderAndWithoutSecrets(t *testing.T) {
	f, o := observe()
	f.Card()
	f.SetViewers(func(ev cli.Event) { o.append("terminals", ev) })
	f.Trace(trace{o})
	f.Event(cli.TextDelta{Text: "it is hunter2-"})
	f.Event(cli.TextDelta{Text: "hunter2!"})
	f.Show(cli.Status{Kind: cli.StatusIdle})
	f.Event(cli.FileChanged{Path: secret, Kind: cli.FileAdded})
	removed := secrets.Removed
	want := []string{
		"files {Text:it is }", "trace {Text:it is }", "terminals {Text:it is }", "card {Text:it is }",
		"files {Text:" + removed + "!}", "trace {Text:" + removed + "!}", "terminals {Text:" + removed + "!}",
		"card {Text:" + removed + "!}",
		fmt.Sprintf("terminals %+v", cli.Status{Kind: cli.StatusIdle}),
		fmt.Sprintf("card %+v", cli.Status{Kind: cli.StatusIdle}),
		"files {Path:" + removed + " Kind:add Diff:}", "trace {Path:" + removed + " Kind:add Diff:}",
		"terminals {Path:" + removed + " Kind:add Diff:}", "card {Path:" + removed + " Kind:add Diff:}",
	}
	if got := o.all(); !slices.Equal(got, want) {
		t.Errorf("the observers got %q", got)
	}
	if s := f.Steps(); len(s) != 1 || s[0].Title == secret {
		t.Errorf("the steps are %+v", s)
	}
	if ran, tools := f.Ran(); !ran || tools != 0 {
		t.Errorf("the progress is %v, %d tools", ran, tools)
	}
}

// A Fanout holds the events that come before its card is open, joins text, and shows it to the card before anything newer. Without a card it holds
// nothing.
func TestAFanoutHoldsEventsForItsCard(t *testing.T) {
	f, o := observe()
	f.Show(cli.TextDelta{Text: "a"})
	f.Show(cli.TextDelta{Text: "b"})
	if got := o.all(); len(got) != 0 {
		t.Errorf("the card is not open and got %q", got)
	}
	f.Card()
	f.Show(cli.TextDelta{Text: "c"})
	if got, want := o.all(), []string{"card {Text:ab}", "card {Text:c}"}; !slices.Equal(got, want) {
		t.Errorf("the card got %q", got)
	}
	quiet := NewFanout(time.Now)
	quiet.Show(cli.TextDelta{Text: "a"})
	if len(quiet.held) != 0 {
		t.Errorf("a turn without a card holds %v", quiet.held)
	}
}

// nothing is a card that shows nothing.
type nothing struct{ orchestrator.Card }

func (nothing) Show(cli.Event) {}

// A delta of text on its way through a Fanout.
func BenchmarkDelta(b *testing.B) {
	f := NewFanout(time.Now)
	f.Redact(NewRedactor(func(f func()) { go f() }, func() *secrets.Set { return secrets.NewSet(secret) }))
	f.SetCard(func() orchestrator.Card { return nothing{} })
	f.Card()
	ev := cli.Event(cli.TextDelta{Text: "some words of an answer "})
	b.ReportAllocs()
	for b.Loop() {
		f.Event(ev)
	}
}
