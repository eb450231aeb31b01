package codex

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
	"ductor/internal/sim/hostile"
)

// recorded is a line of a recorded dialog.
type recorded struct {
	From string      `json:"from"` // us or codex
	Msg  rpc.Message `json:"msg"`
}

// Every folder of testdata/live has a recorded dialog with the real app server, and its turns in the form that a user
// sees.
func TestLiveRecordings(t *testing.T) {
	clitest.Recordings(t, update, "testdata/live/*/in.ndjson", func(t *testing.T, _ string, raw []byte) string {
		return liveTranscript(t, raw)
	})
}

// stagedTurn is a turn of a recording.
type stagedTurn struct {
	*liveTurn
	rec *clitest.Recorder
}

// liveTranscript replays a dialog. Each turn/start of ductor's starts a turn of its thread.
func liveTranscript(t *testing.T, raw []byte) string {
	t.Helper()
	var order []*stagedTurn
	turns := map[string]*stagedTurn{}  // by thread
	asking := map[string]*stagedTurn{} // by the id of the request
	for line := range bytes.Lines(raw) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		var a notice
		_ = json.Unmarshal(r.Msg.Params, &a) // some messages have none
		switch {
		case r.From == "us" && r.Msg.Method == "turn/start":
			turn := newStagedTurn(a.ThreadID)
			order = append(order, turn)
			asking[string(r.Msg.ID)] = turn
		case r.From == "us":
		case r.Msg.Method == "" && asking[string(r.Msg.ID)] != nil:
			turn := asking[string(r.Msg.ID)]
			turns[string(turn.s.id)] = turn
			turn.answered(r.Msg)
		case turns[string(a.ThreadID)] != nil:
			turns[string(a.ThreadID)].hears(r.Msg)
		}
	}
	var all string
	for _, turn := range order {
		turn.finish()
		all += turn.rec.String()
	}
	return all
}

func newStagedTurn(id cli.AgentSessionID) *stagedTurn {
	rec := &clitest.Recorder{}
	rec.Turn()
	req := cli.Request{Dir: "/srv/proj", Attended: true}
	zero := func() time.Time { return time.Unix(0, 0) }
	parser := newLiveParser(turn.NewEmitter(Agent, zero, rec.Event), req)
	parser.network.now = zero
	parser.out.Session(id, "gpt-test")
	turn := &liveTurn{Turn: &shared.Turn[news]{Req: req, Out: parser.out}, s: &thread{id: id}, parser: parser}
	return &stagedTurn{turn, rec}
}

func (s *stagedTurn) answered(m rpc.Message) {
	var reply struct{ Turn turnInfo }
	if err := m.Read(Agent, "turn/start", &reply); err != nil {
		s.rec.Add("refused: %v", err)
	}
	s.parser.turn = reply.Turn.ID
}

func (s *stagedTurn) hears(m rpc.Message) {
	if s.Out.Finished() {
		return
	}
	if len(m.ID) > 0 {
		a := newInquiry(m)
		if !askable(m.Method) {
			s.rec.Add("an unknown request: %s", m.Method)
		} else if m.Method == askQuestions {
			s.Out.Pass(cli.QuestionAsked{ID: a.id, Questions: questionsOf(a.params.Questions)})
		} else {
			ev := s.approvalOf(a)
			ev.Input = nil
			s.Out.Pass(ev)
		}
		return
	}
	if tell(s.parser, m) {
		s.finish()
	}
}

// tell passes a notification to a parser.
func tell(p *liveParser, m rpc.Message) (over bool) {
	var n notice
	return json.Unmarshal(m.Params, &n) == nil && p.notification(m.Method, &n)
}

func (s *stagedTurn) finish() {
	if s.Out.Finished() {
		return
	}
	r := s.parser.result()
	r.Consumed.Usage = s.parser.used()
	s.Out.Finish(r)
}

// FuzzLiveParser passes any notifications to the parser: it does not panic, and the events fulfil their contract.
func FuzzLiveParser(f *testing.F) {
	for _, lines := range recordedNotices(f) {
		f.Add(lines)
	}
	f.Add([]byte(`{"method":"item/completed","params":{"item":{"type":"agentMessage"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) { clitest.Keeps(t, readNotices(raw)) })
}

// recordedNotices returns the app server's notifications and requests of each recording, one per line.
func recordedNotices(t testing.TB) (all [][]byte) {
	t.Helper()
	for _, raw := range clitest.Seeds(t, "testdata/live/*/in.ndjson") {
		var lines []byte
		for line := range bytes.Lines(raw) {
			var r recorded
			if json.Unmarshal(line, &r) == nil && r.From == "codex" && r.Msg.Method != "" {
				m, err := json.Marshal(r.Msg)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(append(lines, m...), '\n')
			}
		}
		all = append(all, lines)
	}
	return all
}

// readNotices returns the events of notifications.
func readNotices(raw []byte) (events []cli.Event) {
	p := newLiveParser(turn.NewEmitter(Agent, time.Now, func(ev cli.Event) { events = append(events, ev) }), cli.Request{Dir: "/"})
	p.out.Session("thread", "model")
	for line := range bytes.Lines(raw) {
		var m rpc.Message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		var n notice
		if json.Unmarshal(m.Params, &n) == nil && n.TurnID != "" {
			p.turn = n.TurnID // otherwise every notification would belong to another turn
		}
		if askable(m.Method) {
			_ = newInquiry(m).answer(cli.Decision{Allow: true})
			continue
		}
		if tell(p, m) {
			break
		}
	}
	r := p.result()
	r.Consumed.Usage = p.used()
	p.out.Finish(r)
	return events
}

// The work for notifications is proportional to their number, even if all are about different objects.
func TestTheWorkOverNoticesIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Lines(recordedNotices(t)), func(text string) { readNotices([]byte(text)) })
}

// A message that a failure of the model interrupted, but that still ended, stays when another one starts.
func TestAMessageThatEndsAfterAFailureStays(t *testing.T) {
	out := turn.NewEmitter(Agent, time.Now, func(cli.Event) {})
	p := newLiveParser(out, cli.Request{})
	say := func(id, text string) {
		p.itemNotice("item/completed", &notice{Item: &liveItem{ID: id, Type: itemMessage, Text: text}})
	}
	p.itemNotice("item/started", &notice{Item: &liveItem{ID: "1", Type: itemMessage}})
	p.out.Text("1", "fir")
	p.trouble(&notice{Error: &turnError{Message: "Reconnecting... 1/5"}, WillRetry: true})
	say("1", "first")
	p.itemNotice("item/started", &notice{Item: &liveItem{ID: "2", Type: itemMessage}})
	say("2", "second")
	if got := out.Answer(); got != "first\n\nsecond" {
		t.Errorf("%q", got)
	}
}

// A turn that continued without ductor may have succeeded after Codex tried again.
func TestAPastFailureDoesNotEndTheTurn(t *testing.T) {
	out := turn.NewEmitter(Agent, time.Now, func(cli.Event) {})
	resumed := &turn.Resumed{When: func(int64) time.Time { return time.Now() }}
	turn.New(turn.Loop[string]{Source: turn.Source[string]{Resumed: resumed}, Out: out})
	const why = "Reconnecting... 1/5 (unexpected status 401 Unauthorized: no)"
	live, once := newLiveParser(out, cli.Request{}), New(Options{}).parser(out, cli.Request{})
	fail := func() (ended []bool) {
		live.trouble(&notice{Error: &turnError{Message: why}, WillRetry: true})
		return []bool{live.verdict.hopeless != nil, once.line([]byte(`{"type":"error","message":"` + why + `"}`))}
	}
	if ended := fail(); slices.Contains(ended, true) {
		t.Errorf("the turn ended, although its output continues: %v", ended)
	}
	out.Pass(cli.CaughtUp{})
	if ended := fail(); slices.Contains(ended, false) {
		t.Errorf("the turn continues, although the log-in is still refused: %v", ended)
	}
}

// The tools of a sub-agent count as those of the tool that started it. Its text is not part of the answer.
func TestToolsOfASubAgent(t *testing.T) {
	var events []cli.Event
	out := turn.NewEmitter(Agent, time.Now, func(ev cli.Event) { events = append(events, ev) })
	p := newLiveParser(out, cli.Request{})
	p.itemNotice("item/started", &notice{Item: &liveItem{ID: "spawn", Type: itemCollab, Tool: "spawnAgent"}})
	p.subAgentItem("item/completed", &liveItem{ID: "said", Type: itemMessage, Text: "words of its own"})
	p.subAgentItem("item/started", &liveItem{ID: "run", Type: itemCommand, Command: "echo sub"})
	p.subAgentItem("item/completed", &liveItem{ID: "run", Type: itemCommand, Command: "echo sub", Output: "sub"})
	out.Finish(cli.Result{})
	var begun []cli.ToolStarted
	for _, ev := range events {
		if started, ok := ev.(cli.ToolStarted); ok {
			begun = append(begun, started)
		}
	}
	if len(begun) != 2 || begun[1].Parent != "spawn" || begun[1].Title != "echo sub" || out.Answer() != "" {
		t.Errorf("tools %+v, answer %q", begun, out.Answer())
	}
}

// If Codex uses the ID of an ended tool for another tool, users see both tools with their outputs.
func TestAnotherToolCanUseTheIDOfAnEndedTool(t *testing.T) {
	var events []cli.Event
	out := turn.NewEmitter(Agent, time.Now, func(ev cli.Event) { events = append(events, ev) })
	p := newLiveParser(out, cli.Request{})
	out.Session("thread", "model")
	for _, command := range []string{"ls a", "ls b"} {
		started := &notice{Item: &liveItem{ID: "0", Type: itemCommand, Command: command}}
		p.itemNotice("item/started", started)
		p.itemNotice("item/started", started)
		ended := liveItem{ID: "0", Type: itemCommand, Command: command, Output: "of " + command}
		p.itemNotice("item/completed", &notice{Item: &ended})
	}
	for _, command := range []string{"ls c", "ls d"} {
		ended := liveItem{ID: "1", Type: itemCommand, Command: command, Output: "of " + command}
		p.subAgentItem("item/completed", &ended)
	}
	out.Finish(cli.Result{})
	clitest.CheckOutputs(t, events,
		map[string]string{"ls a": "of ls a", "ls b": "of ls b", "ls c": "of ls c", "ls d": "of ls d"})
}

// A search and a picture are described once they have ended. The output of a tool never contains a picture.
func TestToolsThatAreDescribedAtTheirEnd(t *testing.T) {
	for _, c := range []struct{ start, end, title, output string }{
		{`"type":"webSearch","query":""`, `"type":"webSearch","query":"telegram bot api","action":{"type":"search"}`,
			"telegram bot api", ""},
		{`"type":"imageGeneration","status":"inProgress"`, `"type":"imageGeneration","status":"completed",` +
			`"revisedPrompt":"a red duck","savedPath":"/home/me/.codex/duck.png","result":"iVBORw0KGgo="`,
			"a red duck", "/home/me/.codex/duck.png"},
		{`"type":"mcpToolCall","server":"browser","tool":"screenshot","arguments":{}`,
			`"type":"mcpToolCall","server":"browser","tool":"screenshot","arguments":{},` +
				`"result":{"content":[{"type":"text","text":"the page"},{"type":"image","data":"iVBORw0KGgo="}]}`,
			"{}", "the page\n[image]"},
	} {
		var title, output string
		out := turn.NewEmitter(Agent, time.Now, func(ev cli.Event) {
			switch ev := ev.(type) {
			case cli.ToolStarted:
				title = ev.Title
			case cli.ToolChanged:
				title = ev.Title
			case cli.ToolEnded:
				output = ev.Output
			}
		})
		p := newLiveParser(out, cli.Request{})
		p.itemNotice("item/started", &notice{Item: itemOf(t, c.start)})
		p.itemNotice("item/completed", &notice{Item: itemOf(t, c.end)})
		if title != c.title || output != c.output {
			t.Errorf("%s: the title is %q and the output %q", c.end, title, output)
		}
	}
}

func itemOf(t *testing.T, fields string) *liveItem {
	var it liveItem
	if err := json.Unmarshal([]byte(`{"id":"i",`+fields+`}`), &it); err != nil {
		t.Fatal(err)
	}
	return &it
}
