package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ductor/internal/attach/wire"
)

// Whatever order of pieces, tools, reconnects and the end, each line is printed once and in order.
func TestEachLineIsPrintedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p, all, answer := NewPrinter(false), "", ""
		apply := func(m wire.Message) { all += p.Apply(m) }
		var tools []wire.Tool
		e := func(state wire.State) wire.Entry {
			return wire.Entry{Turn: "t", State: state, Prompt: "go", Answer: answer, Tools: tools}
		}
		apply(wire.Message{Snapshot: &wire.Snapshot{}})
		apply(wire.Message{Entry: &wire.Entry{Turn: "t", State: wire.StateRunning, Prompt: "go"}})
		var want []string
		for i := range 20 {
			switch random.IntN(6) {
			case 0:
				tool := wire.Tool{Turn: "t", ID: fmt.Sprint(i), Name: "Bash", Title: fmt.Sprint("tool-", i),
					State: wire.ToolDone, Offset: len(answer)}
				tools = append(tools, tool)
				apply(wire.Message{Tool: &tool})
				want = append(want, tool.Title)
			case 1:
				replayed := wire.Entry{Turn: "t", State: wire.StateRunning, Prompt: "go", Replayed: true}
				apply(wire.Message{Snapshot: &wire.Snapshot{Entries: []wire.Entry{replayed}}})
				apply(wire.Message{Entry: ptr(e(wire.StateRunning))})
			default:
				piece := fmt.Sprintf("word-%d%s", i, []string{" ", "\n", "\n\n"}[random.IntN(3)])
				apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: len(answer), Text: piece}})
				answer += piece
				want = append(want, fmt.Sprint("word-", i))
			}
		}
		done := e(wire.StateDone)
		for i := range done.Tools { // the store has other ids
			done.Tools[i].ID, done.Tools[i].Offset = fmt.Sprint("step", i), 0
		}
		apply(wire.Message{Entry: &done})
		apply(wire.Message{Snapshot: &wire.Snapshot{Entries: []wire.Entry{done}}})
		var got []string
		for _, word := range strings.Fields(all) {
			if strings.Contains(word, "-") {
				got = append(got, word)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("it prints %v, want %v:\n%s", got, want, all)
		}
	}
}

func TestThePrinterSaysWhatTheAgentTakesBack(t *testing.T) {
	p := NewPrinter(false)
	out := p.Apply(wire.Message{Snapshot: &wire.Snapshot{}})
	out += p.Apply(wire.Message{Entry: &wire.Entry{Turn: "t", State: wire.StateRunning, Prompt: "go"}})
	out += p.Apply(wire.Message{Text: &wire.Text{Turn: "t", Text: "one\ntwo\nthr"}})
	out += p.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: 8, Text: "3\n"}})
	out += p.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: 4, Text: "2\n"}})
	out += p.Apply(wire.Message{Entry: &wire.Entry{Turn: "t", State: wire.StateDone, Prompt: "go", Answer: "one\n2\n"}})
	if want := "> go\none\ntwo\n3\n! The agent takes back a part of its answer.\n2\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
}
