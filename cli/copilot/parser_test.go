package copilot

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

var update = clitest.UpdateFlag()

// Every folder of testdata is a recording of the real CLI and what its turns look like to a person: one-shot
// lines, or the messages of a live process.
func TestParserRecordings(t *testing.T) {
	clitest.Recordings(t, update, "testdata/*/in.ndjson", func(_ *testing.T, _ string, raw []byte) string { return transcript(raw) })
}

// transcript runs a recording through a parser, a new one after each end of a turn. Questions and requests for
// leave are put to people, who do not answer.
func transcript(raw []byte) string {
	rec := &clitest.Recorder{}
	var p *parser
	for line := range bytes.Lines(raw) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if p == nil {
			p = recorded(rec)
		}
		if recordedLine(rec, p, line) {
			finish(p)
			p = nil
		}
	}
	if p != nil {
		finish(p)
	}
	return rec.String()
}

func recorded(rec *clitest.Recorder) *parser {
	rec.Turn()
	out := turn.NewEmitter(Agent, func() time.Time { return time.Unix(0, 0) }, rec.Event)
	p := newParser(out, cli.Request{Dir: "/srv/proj", Model: "gpt-test"})
	p.id = "session"
	p.asks = &asks{session: "session", attended: true}
	return p
}

// recordedLine takes a line of either kind and says whether it ended a turn.
func recordedLine(rec *clitest.Recorder, p *parser, line []byte) bool {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(line, &m)
	switch m.Method {
	case "":
		p.begun = true
	case eventMethod:
		var params struct {
			Event json.RawMessage `json:"event"`
		}
		_ = json.Unmarshal(m.Params, &params)
		line = params.Event
	default:
		r := rpc.Message{}
		if json.Unmarshal(line, &r) == nil && asksPeople(r.Method) {
			p.asks.request(p, &r)
		}
		return false
	}
	e, err := decodeEvent(line)
	if err != nil {
		rec.Add("cannot be read: %v", err)
		return false
	}
	p.name()
	over, err := p.event(e)
	if err != nil {
		rec.Add("cannot be read: %v", err)
	}
	return over
}

func finish(p *parser) {
	p.asks.end(p)
	if !p.ended {
		p.out.Finish(p.told(cli.Result{Err: cli.Failf(cli.Crashed, Agent, "the recording ends")}))
		return
	}
	p.out.Finish(p.outcome())
}

// Whatever comes, the events keep their contract.
func FuzzParser(f *testing.F) {
	for _, raw := range clitest.Seeds(f, "testdata/*/in.ndjson") {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var events []cli.Event
		out := turn.NewEmitter(Agent, time.Now, func(ev cli.Event) { events = append(events, ev) })
		p := newParser(out, cli.Request{Dir: "/srv/proj"})
		p.id, p.begun = "session", true
		p.asks = &asks{attended: true}
		p.name()
		for line := range bytes.Lines(raw) {
			e, err := decodeEvent(line)
			if err != nil {
				continue
			}
			if over, _ := p.event(e); over {
				break
			}
		}
		p.asks.end(p)
		out.Finish(p.outcome())
		clitest.Keeps(t, events)
	})
}
