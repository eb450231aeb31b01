package copilot

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
	"ductor/cli/turn"
	"ductor/internal/sim/hostile"
)

var update = clitest.UpdateFlag()

// Every folder of testdata has a recording of the real CLI, and its turns in the form that a user sees. A recording has
// one-shot lines, or the messages of a live process.
func TestParserRecordings(t *testing.T) {
	clitest.Recordings(t, update, "testdata/*/in.ndjson", func(_ *testing.T, _ string, raw []byte) string { return transcript(raw) })
}

// transcript passes a recording through parsers, a new one for each turn. Users are asked, but do not answer.
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
	p.session.AgentSessionID = "session"
	p.asks = newAsks(p.out, nil, "session", policy{attended: true})
	return p
}

// recordedLine handles a line of either kind. It reports whether the line ended a turn.
func recordedLine(rec *clitest.Recorder, p *parser, line []byte) bool {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(line, &m)
	switch m.Method {
	case "":
		if p.phase == awaited {
			p.phase = begun
		}
	case eventMethod:
		var params struct {
			Event json.RawMessage `json:"event"`
		}
		_ = json.Unmarshal(m.Params, &params)
		line = params.Event
	default:
		r := rpc.Message{}
		if json.Unmarshal(line, &r) == nil && forUser(r.Method) {
			p.asks.request(&r)
		}
		return false
	}
	e, err := decodeEvent(line)
	if err != nil {
		rec.Add("cannot be read: %v", err)
		return false
	}
	p.name()
	if err := p.event(e); err != nil {
		rec.Add("cannot be read: %v", err)
	}
	return p.phase == ended
}

func finish(p *parser) {
	p.asks.Close(false)
	end := turn.EndTurn
	if p.phase != ended {
		end = turn.EndStalled
	}
	p.out.Finish(p.outcome(end, func() cli.Result { return cli.Result{Err: cli.Failf(cli.Crashed, Agent, "the recording ends")} }))
}

// Whatever comes, the events fulfil their contract.
func FuzzParser(f *testing.F) {
	for _, raw := range clitest.Seeds(f, "testdata/*/in.ndjson") {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { clitest.Keeps(t, readOutput(raw)) })
}

// readOutput returns the events of Copilot's output about one session.
func readOutput(raw []byte) (events []cli.Event) {
	out := turn.NewEmitter(Agent, time.Now, func(ev cli.Event) { events = append(events, ev) })
	p := newParser(out, cli.Request{Dir: "/srv/proj"})
	p.session.AgentSessionID, p.phase = "session", begun
	p.asks = newAsks(p.out, nil, "session", policy{attended: true})
	p.name()
	for line := range bytes.Lines(raw) {
		e, err := decodeEvent(line)
		if err != nil {
			continue
		}
		if _ = p.event(e); p.phase == ended { // unreadable events are ignored
			break
		}
	}
	p.asks.Close(false)
	out.Finish(p.outcome(turn.EndTurn, func() cli.Result { return cli.Result{} }))
	return events
}

// A message that ended before a tool stays if the model fails after the tool.
func TestAFailureBehindAToolTakesNothingBack(t *testing.T) {
	var shown strings.Builder
	for _, ev := range readOutput([]byte(`
{"type":"assistant.message_delta","data":{"messageId":"1","deltaContent":"first"}}
{"type":"assistant.message","data":{"messageId":"1","content":"first"}}
{"type":"tool.execution_start","data":{"toolCallId":"a","toolName":"bash"}}
{"type":"tool.execution_complete","data":{"toolCallId":"a","success":true}}
{"type":"assistant.turn_retry","data":{"reason":"rate_limit"}}
{"type":"assistant.message","data":{"messageId":"2","content":"second"}}`)) {
		switch ev := ev.(type) {
		case cli.TextDelta:
			shown.WriteString(ev.Text + "|")
		case cli.TextRetracted:
			shown.WriteString("retracted|")
		}
	}
	if got := shown.String(); strings.Contains(got, "retracted") || !strings.HasSuffix(got, "second|") {
		t.Errorf("%q", got)
	}
}

// The work for events is proportional to their number, even if all are about different objects.
func TestTheWorkOverEventsIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Lines(clitest.Seeds(t, "testdata/*/in.ndjson")), func(text string) { readOutput([]byte(text)) })
}

// If Copilot uses the ID of an ended tool for another tool, users see both tools with their outputs.
func TestAnotherToolCanUseTheIDOfAnEndedTool(t *testing.T) {
	var lines string
	for _, command := range []string{"ls a", "ls b"} {
		started := `{"type":"tool.execution_start","data":{"toolCallId":"0","toolName":"bash",` +
			`"arguments":{"command":"` + command + `"}}}` + "\n"
		lines += started + started + `{"type":"tool.execution_complete","data":{"toolCallId":"0","success":true,` +
			`"result":{"content":"out of ` + command + `"}}}` + "\n"
	}
	events := readOutput([]byte(lines))
	clitest.CheckOutputs(t, events, map[string]string{"ls a": "out of ls a", "ls b": "out of ls b"})
}
