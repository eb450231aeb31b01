package gemini

import (
	"bytes"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
	"ductor/internal/sim/hostile"
)

var update = clitest.UpdateFlag()

func still() time.Time { return time.Unix(0, 0) }

// These are runs of the real CLI with their events.
func TestRecordings(t *testing.T) {
	clitest.Recordings(t, update, "testdata/*/in.ndjson", func(t *testing.T, _ string, raw []byte) string {
		var rec clitest.Recorder
		var events []cli.Event
		rec.Turn()
		out := turn.NewEmitter(Agent, still, func(ev cli.Event) { rec.Event(ev); events = append(events, ev) })
		p := newParser(out, cli.Request{Dir: "/srv/proj"})
		p.garbage = func(line []byte) { rec.Add("garbage %q", line) }
		for line := range bytes.Lines(raw) {
			if p.line(line) {
				break
			}
		}
		r := p.result
		r.Denials = p.denials
		out.Finish(r)
		clitest.Keeps(t, events)
		return rec.String()
	})
}

// Whatever line comes, the events fulfil their contract.
func FuzzParser(f *testing.F) {
	for _, raw := range clitest.Seeds(f, "testdata/*/in.ndjson") {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { clitest.Keeps(t, readOutput(raw)) })
}

// readOutput returns the events of the output of one process.
func readOutput(raw []byte) (events []cli.Event) {
	out := turn.NewEmitter(Agent, still, func(ev cli.Event) { events = append(events, ev) })
	p := newParser(out, cli.Request{Dir: "/srv/proj"})
	out.Session("s", "m")
	for line := range bytes.Lines(raw) {
		p.line(line)
	}
	out.Finish(cli.Result{})
	return events
}

// The work for events is proportional to their number, even if all are about different objects.
func TestTheWorkOverEventsIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Lines(clitest.Seeds(t, "testdata/*/in.ndjson")), func(text string) { readOutput([]byte(text)) })
}

// If Gemini uses the ID of an ended tool for another tool, users see both tools with their outputs.
func TestAnotherToolCanUseTheIDOfAnEndedTool(t *testing.T) {
	var lines string
	for _, file := range []string{"a", "b"} {
		started := `{"type":"tool_use","tool_name":"read_file","tool_id":"0",` +
			`"parameters":{"file_path":"` + file + `"}}` + "\n"
		lines += started + started +
			`{"type":"tool_result","tool_id":"0","status":"success","output":"in ` + file + `"}` + "\n"
	}
	events := readOutput([]byte(lines))
	clitest.CheckOutputs(t, events, map[string]string{"a": "in a", "b": "in b"})
}

// A turn whose session has no name fails, because the next prompt cannot continue it. The output of a resumed turn may
// lack its beginning, which contains the name.
func TestATurnFailsIfItsSessionHasNoName(t *testing.T) {
	answered := func(left *cli.LeftRun) *cli.Failure {
		out := turn.NewEmitter(Agent, still, func(cli.Event) {})
		p := newParser(out, cli.Request{})
		p.line([]byte(`{"type":"message","role":"assistant","content":"done"}`))
		p.line([]byte(`{"type":"result","status":"success"}`))
		return p.finish(turn.Once{Out: out, Left: left}, turn.EndTurn).Err
	}
	if f := answered(nil); f == nil || f.Kind != cli.BadOutput {
		t.Errorf("the turn ended with %v", f)
	}
	if f := answered(&cli.LeftRun{}); f != nil {
		t.Errorf("the resumed turn failed: %v", f)
	}
}
