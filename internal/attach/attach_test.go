package attach

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

func home() orchestrator.ConversationID { return orchestrator.ConversationID{Chat: owner} }

func turnOf(id cli.TurnID, state orchestrator.TurnState) orchestrator.Turn {
	return orchestrator.Turn{ID: id, State: state, Prompt: orchestrator.Prompt{Conversation: home(), Text: "do it"}}
}

// A terminal that opens a conversation gets its ended, running and waiting turns, and then every change once.
func TestATerminalGetsTheStateAndEveryChange(t *testing.T) {
	s := serve(t)
	ended := turnOf("t1", orchestrator.TurnDone)
	ended.Outcome = orchestrator.Outcome{State: orchestrator.TurnDone, Text: "done"}
	s.turns["t1"], s.turns["t2"] = ended, turnOf("t2", orchestrator.TurnRunning)
	emit := s.hub.Follow(s.turns["t2"], false)
	emit(cli.TextDelta{Text: "so "})
	emit(cli.ToolStarted{ID: "a", Name: "Bash", Title: "ls", Input: json.RawMessage(`{"command":"ls"}`)})
	c, shown := s.open("")
	if len(shown.Entries) != 2 || shown.Entries[0].Answer != "done" || shown.Entries[0].Tools[0].Output != "b.go" ||
		len(shown.Entries[0].Changes) != 1 || shown.Entries[1].Answer != "so " || len(shown.Entries[1].Tools) != 1 {
		t.Errorf("the snapshot: %+v", shown)
	}
	emit(cli.TextDelta{Text: "far"})
	emit(cli.TextRetracted{Bytes: 3})
	emit(cli.ToolEnded{ID: "a", Output: "b.go"})
	s.hub.Ended(orchestrator.Turn{ID: "t2", Prompt: s.turns["t2"].Prompt,
		Outcome: orchestrator.Outcome{State: orchestrator.TurnDone, Text: "so it is"}})
	if m := c.next(); m.Text == nil || m.Text.Offset != 3 || m.Text.Text != "far" {
		t.Errorf("the text: %+v", m)
	}
	if m := c.next(); m.Text == nil || m.Text.Offset != 3 || m.Text.Text != "" {
		t.Errorf("the retraction: %+v", m)
	}
	if m := c.next(); m.Tool == nil || m.Tool.Output != "b.go" || m.Tool.State != wire.ToolDone {
		t.Errorf("the tool: %+v", m)
	}
	if m := c.next(); m.Entry == nil || m.Entry.Answer != "so it is" || m.Entry.State != wire.StateDone ||
		string(m.Entry.Tools[0].Input) != `{"command":"ls"}` {
		t.Errorf("the end: %+v", m.Entry)
	}
}

// Events that are repeated after a restart are shown at their end, all at once.
func TestAReplayIsShownAtItsEnd(t *testing.T) {
	s := serve(t)
	s.turns["t"] = turnOf("t", orchestrator.TurnRunning)
	c, shown := s.open("")
	if !shown.Entries[0].Replayed { // this process does not know it yet
		t.Errorf("the entry: %+v", shown.Entries[0])
	}
	emit := s.hub.Follow(s.turns["t"], true)
	emit(cli.TextDelta{Text: "one "})
	emit(cli.TextDelta{Text: "two"})
	emit(cli.CaughtUp{})
	emit(cli.TextDelta{Text: " three"})
	if m := c.next(); m.Entry == nil || !m.Entry.Replayed {
		t.Errorf("the start: %+v", m)
	}
	if m := c.next(); m.Entry == nil || m.Entry.Replayed || m.Entry.Answer != "one two" {
		t.Errorf("the entry: %+v", m)
	}
	if m := c.next(); m.Text == nil || m.Text.Offset != 7 {
		t.Errorf("the text: %+v", m)
	}
}

// Requests with wrong fields get a sentence, and change nothing.
func TestRequestsAreChecked(t *testing.T) {
	s := serve(t)
	a := orchestrator.Approval{ID: "a", Nonce: "n", ApprovalRequest: orchestrator.ApprovalRequest{Conversation: home(),
		Request: &cli.ApprovalAsked{Tool: "Bash", Missing: "the command"}},
		Decision:      orchestrator.Decision{State: orchestrator.ApprovalOpen},
		ApprovalTerms: orchestrator.ApprovalTerms{Expires: time.Now().Add(time.Hour)}}
	s.approvals = []orchestrator.Approval{a}
	c, _ := s.open("")
	long := strings.Repeat("x", wire.MaxPrompt+1)
	for _, r := range []struct {
		wire.Request
		want string
	}{
		{wire.Request{Prompt: &wire.Prompt{ID: "../x", Text: "hello"}}, "The id of a request"},
		{wire.Request{Prompt: &wire.Prompt{ID: strings.Repeat("x", 65), Text: "hello"}}, "The id of a request"},
		{wire.Request{Prompt: &wire.Prompt{ID: "p", Text: " "}}, "A prompt has between"},
		{wire.Request{Prompt: &wire.Prompt{ID: "p", Text: long}}, "A prompt has between"},
		{wire.Request{Prompt: &wire.Prompt{ID: "p", Text: "too much"}}, "queue of this conversation is full"},
		{wire.Request{Command: &wire.Command{ID: "c", Text: "/nonsense"}}, "No such command"},
		{wire.Request{Decide: &wire.Decide{ID: "d", Approval: "other", Choice: wire.Deny}}, "no such request"},
		{wire.Request{Decide: &wire.Decide{ID: "d", Approval: "a", Choice: wire.AllowOnce}}, "not offered"},
		{wire.Request{Abort: &wire.Abort{ID: "x", Turn: "t"}}, "It is over"},
		{wire.Request{Cancel: &wire.Cancel{ID: "x", Turn: "t"}}, "no longer waits"},
		{wire.Request{Prompt: &wire.Prompt{ID: "p2", Text: "hello"}}, ""},
		{wire.Request{Abort: &wire.Abort{ID: "x"}}, ""},
	} {
		c.send(r.Request)
		m := c.next()
		if m.Reply == nil || (m.Reply.Error == "") != (r.want == "") || !strings.Contains(m.Reply.Error, r.want) {
			t.Errorf("%+v: %+v", r.Request, m)
		}
	}
	want := []string{"show p too much", "submit attach-p too much", "command c /nonsense", "stop t", "show p2 hello",
		"submit attach-p2 hello", "abort"}
	if got := s.done(); !slices.Equal(got, want) {
		t.Errorf("it did %q", got)
	}
}

// A terminal opens the private chat of its user and groups that ductor serves, and no other conversation.
func TestATerminalOpensOnlyWhatItsUserMay(t *testing.T) {
	s := serve(t)
	c, _ := s.open("-5/0")
	c.send(wire.Request{List: &wire.List{}})
	var keys []string
	for _, one := range c.next().Conversations {
		keys = append(keys, one.Key)
	}
	if !slices.Equal(keys, []string{"7/0", "-5/0"}) {
		t.Errorf("it lists %q", keys)
	}
	for _, key := range []string{"8/0", "-6/0", "7/0 ", "7", "x", "8/0\n7/0"} {
		c := s.dial("secret")
		c.next()
		c.send(wire.Request{Open: &wire.Open{Conversation: key}})
		if m := c.next(); m.Bye == nil || m.Bye.Reason != wire.ReasonRefused {
			t.Errorf("%q: %+v", key, m)
		}
	}
	if m := s.dial("guess").next(); m.Bye == nil || m.Bye.Reason != wire.ReasonRefused {
		t.Errorf("a wrong secret: %+v", m)
	}
}

// A terminal whose user is no longer an owner is disconnected, whether it sends something or not.
func TestATerminalOfARemovedUserIsDisconnected(t *testing.T) {
	s := serve(t)
	idle, _ := s.open("")
	busy, _ := s.open("")
	s.mu.Lock()
	s.role = orchestrator.RoleUser
	s.mu.Unlock()
	busy.send(wire.Request{Prompt: &wire.Prompt{ID: "p", Text: "hello"}})
	if m := busy.next(); m.Bye == nil || m.Bye.Reason != wire.ReasonRemoved {
		t.Errorf("a request: %+v", m)
	}
	s.s.Recheck()
	if m := idle.next(); m.Bye == nil || m.Bye.Reason != wire.ReasonRemoved {
		t.Errorf("an idle terminal: %+v", m)
	}
	if got := s.done(); len(got) != 0 {
		t.Errorf("it did %q", got)
	}
	if m := s.dial("secret").next(); m.Bye == nil {
		t.Errorf("a new terminal: %+v", m)
	}
}

// A terminal that does not read is disconnected when too much waits for it. Nothing waits for it meanwhile.
func TestATerminalThatDoesNotReadIsDisconnected(t *testing.T) {
	h := serve(t).hub
	ours, theirs := net.Pipe()
	defer theirs.Close()
	slow := newTerminal(ours, owner)
	h.join(slow)
	in := home()
	slow.in = &in
	emit := h.Follow(turnOf("t", orchestrator.TurnRunning), false)
	piece := strings.Repeat("x", 1<<20)
	for range mostQueued>>20 + 2 {
		emit(cli.TextDelta{Text: piece})
	}
	if _, err := ours.Write([]byte("x")); err == nil || !slow.over || slow.waiting != nil {
		t.Errorf("it is still connected: %v", err)
	}
}

// The owner decides in a terminal and in the chat at the same moment. The terminals show where the decision was made
// that counts.
func TestTheHubKnowsWhereADecisionWasMade(t *testing.T) {
	for _, won := range []bool{true, false} {
		s := serve(t)
		c, _ := s.open("")
		a := orchestrator.Approval{ID: "a", ApprovalRequest: orchestrator.ApprovalRequest{Conversation: home()},
			Decision: orchestrator.Decision{State: orchestrator.ApprovalDenied, By: owner}}
		var deciding sync.WaitGroup
		deciding.Go(func() {
			s.hub.decide(home(), "a", func() bool {
				s.hub.Approval(a) // by whoever was first
				return won
			})
		})
		deciding.Wait()
		if m := c.next(); m.Approval == nil || m.Approval.Terminal != won || m.Approval.Chat == won {
			t.Errorf("the terminal won: %v; it was told %+v", won, m.Approval)
		}
		s.hub.Approval(a)
		if m := c.next(); m.Approval == nil || m.Approval.Terminal || !m.Approval.Chat {
			t.Errorf("the chat decided, and the terminal was told %+v", m.Approval)
		}
	}
}

// Outputs are shortened, so that a turn of many tools needs little memory.
func TestOutputsOfATurnAreLimited(t *testing.T) {
	of := newTurn(turnOf("t", orchestrator.TurnRunning), false)
	for i := range 100 {
		id := cli.ToolID(string(rune('a' + i)))
		of.observe(cli.ToolStarted{ID: id, Name: "Bash"})
		of.observe(cli.ToolEnded{ID: id, Output: strings.Repeat("x", 2*mostOutput)})
	}
	size := 0
	for _, tool := range of.entry.Tools {
		size += len(tool.Output)
		if tool.Lost+len(tool.Output) != 2*mostOutput {
			t.Errorf("a tool lost %d bytes and has %d", tool.Lost, len(tool.Output))
		}
	}
	if last := of.entry.Tools[99]; size > mostOfTurn || len(last.Output) != mostOutput {
		t.Errorf("the outputs have %d bytes, the last one %d", size, len(last.Output))
	}
}

// A delta of text on its way to a terminal.
func BenchmarkDelta(b *testing.B) {
	h := NewHub(time.Now, nil)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	fast := newTerminal(ours, owner)
	h.join(fast)
	in := home()
	fast.in = &in
	emit := h.Follow(turnOf("t", orchestrator.TurnRunning), false)
	b.ReportAllocs()
	for b.Loop() {
		emit(cli.TextDelta{Text: "some words of an answer "})
		fast.mu.Lock()
		fast.waiting, fast.bytes = fast.waiting[:0], 0
		fast.mu.Unlock()
	}
}

// A message that is too long for a line comes without parts.
func TestALongMessageIsShortened(t *testing.T) {
	s := serve(t)
	for i := range 20 {
		id := cli.TurnID(string(rune('a' + i)))
		ended := turnOf(id, orchestrator.TurnDone)
		ended.Outcome = orchestrator.Outcome{State: orchestrator.TurnDone, Text: strings.Repeat("\x01", mostAnswer)}
		s.turns[id] = ended
	}
	_, shown := s.open("")
	if len(shown.Entries) == 0 || len(shown.Entries[0].Answer) < leanAnswer/2 {
		t.Errorf("the snapshot has %d entries", len(shown.Entries))
	}
	big := orchestrator.Approval{ApprovalRequest: orchestrator.ApprovalRequest{Conversation: home(),
		Request: &cli.ApprovalAsked{Tool: "Bash", Title: strings.Repeat("x", mostRequest+1)}},
		Decision:      orchestrator.Decision{State: orchestrator.ApprovalOpen},
		ApprovalTerms: orchestrator.ApprovalTerms{Expires: time.Now().Add(time.Hour)}}
	a := approvalOf(big, time.Now())
	if len(a.Choices) != 1 || a.Choices[0].Choice != wire.Deny || a.Asks.Missing == "" {
		t.Errorf("a request that is too long: %+v", a.Choices)
	}
}
