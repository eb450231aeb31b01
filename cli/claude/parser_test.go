package claude

import (
	"bytes"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

var update = clitest.UpdateFlag()

// Every folder of testdata has a recording of the real CLI, and the turns in the form that a user sees.
func TestParserRecordings(t *testing.T) {
	clitest.Recordings(t, update, "testdata/*/in.ndjson", func(_ *testing.T, _ string, raw []byte) string {
		return transcript(raw)
	})
}

// transcript passes a recording through one parser per turn and writes down the events.
func transcript(raw []byte) string {
	rec := &recorder{}
	mem := newMemory()
	p := rec.newTurn(mem)
	for _, l := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		reply, end := p.line(l)
		if reply != nil {
			rec.Add("reply %s", bytes.TrimSpace(reply))
		}
		if end {
			p.flow.em.Finish(p.outcome)
			if p.phase == abandoned {
				rec.Add("(the process is stopped)")
				return rec.done(p)
			}
			p = rec.newTurn(mem)
		}
	}
	return rec.done(p)
}

// newTurn starts a turn that rec writes down.
func (r *recorder) newTurn(mem *memory) *parser {
	r.Turn()
	clock := time.Unix(0, 0).UTC()
	p := newParser(turn.NewEmitter(agent, func() time.Time { return clock }, r.Event), mem, "/srv/proj")
	p.observer.garbage = func([]byte) { r.garbage++ }
	p.observer.background = func(res cli.BackgroundResult) { r.Add("background: %q", res.Text) }
	return p
}

// recorder writes turns down and counts lines outside of the protocol.
type recorder struct {
	clitest.Recorder
	garbage int
}

func (r *recorder) done(p *parser) string {
	if r.garbage > 0 {
		r.Add("%d lines of garbage", r.garbage)
	}
	if r.Used() && !p.flow.em.Finished() {
		r.Add("(the recording ends here)")
	}
	return r.String()
}
