package claude

import (
	"bytes"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
	"ductor/internal/sim/hostile"
)

// FuzzParser parses any bytes as the output of one process: it does not panic, each turn has one Result and nothing
// after it, every tool ends, and the deltas add up to the answer.
func FuzzParser(f *testing.F) {
	for _, raw := range clitest.Seeds(f, "testdata/*/in.ndjson") {
		f.Add(raw)
	}
	f.Add([]byte("{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\"}}\n\xff\xfe[]\n{}"))
	f.Fuzz(func(t *testing.T, raw []byte) { readOutput(t, raw) })
}

// readOutput parses the output of one process, with all its turns.
func readOutput(t clitest.Test, raw []byte) {
	mem := newMemory()
	turn := func() *heardTurn { return newHeardTurn(t, mem) }
	k := turn()
	for _, l := range bytes.Split(raw, []byte("\n")) {
		if _, end := k.p.line(l); end {
			k.finish()
			k = turn()
		}
	}
	k.finish()
}

// The work for events is proportional to their number, even if all are about different objects.
func TestTheWorkOverEventsIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Lines(clitest.Seeds(t, "testdata/*/in.ndjson")), func(text string) { readOutput(t, []byte(text)) })
}

// heardTurn is a turn with its recorded events.
type heardTurn struct {
	t      clitest.Test
	p      *parser
	events []cli.Event
}

func newHeardTurn(t clitest.Test, mem *memory) *heardTurn {
	k := &heardTurn{t: t}
	k.p = newParser(turn.NewEmitter(agent, time.Now, func(ev cli.Event) { k.events = append(k.events, ev) }), mem, "/srv/proj")
	k.p.flow.em.Session("S", "M")
	k.p.echo = "E"
	k.p.observer.background = func(cli.BackgroundResult) {}
	return k
}

func (k *heardTurn) finish() {
	r := k.p.outcome
	if !k.p.phase.over() {
		r.Err = cli.Failf(cli.Crashed, agent, "nothing more is said")
	}
	k.p.flow.em.Finish(r)
	clitest.Keeps(k.t, k.events)
}
