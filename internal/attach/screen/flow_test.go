package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/internal/attach/wire"
)

var wide = Look{Width: 80, Height: 40, Plain: true}

// opened is the state of the conversation 7/0 with entries.
func opened(entries ...wire.Entry) wire.Message {
	return wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/0", Entries: entries}}
}

// going is the running turn t.
func going(answer string) wire.Entry {
	return wire.Entry{Turn: "t", State: wire.StateRunning, Prompt: "go", Answer: answer}
}

// keys presses keys one after another, and returns the requests.
func keys(s *Screen, names ...string) (all []wire.Request) {
	for _, name := range names {
		text := ""
		if len([]rune(name)) == 1 {
			text = name
		}
		requests, _ := s.Key(name, text)
		all = append(all, requests...)
		s.View(wide)
	}
	return all
}

func typed(s *Screen, text string) []wire.Request {
	s.Paste(text)
	return keys(s, "enter")
}

func shows(t *testing.T, s *Screen, parts ...string) {
	t.Helper()
	shown := at(t, s, wide)
	for _, part := range parts {
		if !strings.Contains(shown, part) {
			t.Errorf("%q is not shown:\n%s", part, shown)
		}
	}
}

func lacks(t *testing.T, s *Screen, parts ...string) {
	t.Helper()
	shown := at(t, s, wide)
	for _, part := range parts {
		if strings.Contains(shown, part) {
			t.Errorf("%q is shown:\n%s", part, shown)
		}
	}
}

// Text that streams while the terminal changes its size and the agent takes words back ends as if it came at once.
func TestTextStreamsWhileTheTerminalIsResized(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"word ", "世界", "😀", "e\u0301", "\n", "\n\n", "x", "\x1b[31mred", "\x1b", "[0m ", "\t", "\r",
		strings.Repeat("long", 40), "- - - "}
	for range 40 {
		s := fresh()
		answer := ""
		s.Apply(opened(going("")))
		var tools []wire.Tool
		for range 60 {
			if random.IntN(8) == 0 {
				tool := wire.Tool{Turn: "t", ID: fmt.Sprint(len(tools)), Name: "Bash", Title: "ls",
					State: wire.ToolDone, Offset: len(answer)}
				tools = append(tools, tool)
				s.Apply(wire.Message{Tool: &tool})
			}
			offset := len(answer)
			if random.IntN(5) == 0 && len(tools) == 0 {
				offset -= random.IntN(min(len(answer), 30) + 1)
			}
			piece := pieces[random.IntN(len(pieces))]
			answer = answer[:offset] + piece
			s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: offset, Text: piece}})
			if random.IntN(3) == 0 {
				at(t, s, Look{Width: 10 + random.IntN(90), Height: 5 + random.IntN(40), ASCII: random.IntN(2) == 0})
			}
		}
		streamed := at(t, s, wide)
		once := fresh()
		e := going(answer)
		e.Tools = tools
		once.Apply(opened(e))
		if at, want := streamed, at(t, once, wide); at != want {
			t.Fatalf("streamed (-) and at once (+):\n%s", cmp.Diff(at, want))
		}
	}
}

// A restart neither loses nor doubles text, and repeats what ductor did not acknowledge with the same id.
func TestTheScreenContinuesAfterARestart(t *testing.T) {
	s := fresh()
	s.Apply(opened(going("one ")))
	s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: 4, Text: "two "}})
	sent := typed(s, "and then this")
	s.Link = "reconnecting"
	shows(t, s, "reconnecting", "one two", "sending: and then this")
	later := typed(s, "/model opus")
	again := s.Connected()
	if len(again) != 4 || again[1].Open.Conversation != "7/0" || again[2] != sent[0] || again[3] != later[0] {
		t.Errorf("after the restart it sends %+v", again)
	}
	s.Apply(wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/0", Entries: []wire.Entry{
		{Turn: "t", State: wire.StateRunning, Prompt: "go", Replayed: true},
		{Turn: wire.TurnOf("r1"), State: wire.StateQueued, Prompt: "and then this", Ahead: 1}}}})
	s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Text: "one "}})
	s.Apply(wire.Message{Reply: &wire.Reply{ID: "r1"}})
	shows(t, s, "one two", "next: and then this")
	lacks(t, s, "sending: and then", "reconnecting")
	s.Apply(wire.Message{Entry: ptr(going("one two three "))})
	s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: 14, Text: "four"}})
	shows(t, s, "one two three four")
	done := going("one two three four")
	done.State = wire.StateDone
	s.Apply(wire.Message{Entry: &done})
	s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: 14, Text: "four"}})
	s.Apply(opened(done))
	if shown := at(t, s, wide); strings.Count(shown, "four") != 1 || strings.Contains(shown, "next:") {
		t.Errorf("it shows:\n%s", shown)
	}
}

// After a crash ductor may read a message again, as another turn.
func TestATurnThatDuctorForgotIsNotShown(t *testing.T) {
	s := fresh()
	s.Apply(opened(going("")))
	again := going("the answer")
	again.Turn = "again"
	s.Apply(opened(again))
	if shown := at(t, s, wide); strings.Count(shown, "▌ go") != 1 || !strings.Contains(shown, "the answer") {
		t.Errorf("it shows:\n%s", shown)
	}
}

func TestAFailedPromptReturnsToTheUser(t *testing.T) {
	s := fresh()
	s.Apply(wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/0"}})
	typed(s, "a prompt")
	typed(s, "another one")
	s.Apply(wire.Message{Reply: &wire.Reply{ID: "r1", Error: "The queue is full."}})
	s.Apply(wire.Message{Reply: &wire.Reply{ID: "r2", Error: "The queue is full."}})
	shows(t, s, "The queue is full.", "> a prompt", "another one")
}

// The screen shows the state of the conversation after a command, and the model of the running turn.
func TestTheHeaderIsRefreshed(t *testing.T) {
	s := fresh()
	s.Apply(opened())
	typed(s, "/model codex")
	sent := s.Apply(wire.Message{Reply: &wire.Reply{ID: "r1"}})
	if len(sent) != 1 || sent[0].Open.Conversation != "7/0" {
		t.Errorf("after a command it sends %+v", sent)
	}
	s.Apply(wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/0", Agent: "codex"}})
	shows(t, s, "Shop · codex")
	e := going("")
	e.Agent, e.Model = "gemini", "flash"
	s.Apply(wire.Message{Entry: &e})
	shows(t, s, "Shop · gemini flash")
}

// What a text means: prompts may begin with a slash, too.
func TestSubmit(t *testing.T) {
	for text, kind := range map[string]string{"/model opus": "command", "/new": "command", "/abort": "abort",
		"/abort now": "abort", "/etc/hosts is wrong": "prompt", "fix /model": "prompt", "-v": "prompt", "/": "prompt",
		" ": "", "": ""} {
		got := ""
		for _, r := range fresh().Submit(text) {
			switch {
			case r.Prompt != nil:
				got = "prompt"
			case r.Command != nil:
				got = "command"
			case r.Abort != nil:
				got = "abort"
			}
		}
		if got != kind {
			t.Errorf("%q is a %s", text, got)
		}
	}
}

// asking returns a screen with an open approval.
func asking(a *wire.Approval) *Screen {
	s := fresh()
	s.Apply(wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/0"}})
	s.Apply(wire.Message{Approval: a})
	return s
}

func TestAnApprovalIsDecidedHere(t *testing.T) {
	for choice, press := range map[string][]string{
		"once": {"tab", "enter"}, "pattern": {"tab", "down", "enter"},
		"deny":         {"tab", "down", "down", "down", "up", "enter"},
		"deny because": {"tab", "down", "down", "down", "enter", "b", "e", "enter"},
	} {
		s := asking(request())
		sent := keys(s, press...)
		if len(sent) != 1 || sent[0].Decide == nil || !strings.HasPrefix(choice, string(sent[0].Decide.Choice)) ||
			(sent[0].Decide.Reason == "be") != strings.HasSuffix(choice, "because") || sent[0].Decide.Approval != "ap" {
			t.Errorf("%s: it sends %+v", choice, sent)
		}
		lacks(t, s, "claude asks") // ductor answers soon
		s.Apply(wire.Message{Reply: &wire.Reply{ID: "r1", Error: "It was decided already."}})
		a := request()
		a.State, a.Chat, a.Choices = wire.ApprovalDenied, true, nil
		s.Apply(wire.Message{Approval: a})
		shows(t, s, "It was decided already.", "Denied in the chat: claude: Bash rm -rf build")
		lacks(t, s, "claude asks")
	}
}

// The decision of the other end shows at once, also while the user is about to decide. Then keys are for the prompt.
func TestTheOtherEndDecidesFirst(t *testing.T) {
	s := asking(request())
	keys(s, "tab", "down", "down", "down", "enter", "w")
	a := request()
	a.State, a.Chat, a.Choices = wire.ApprovalAllowed, true, nil
	s.Apply(wire.Message{Approval: a})
	shows(t, s, "Allowed in the chat: claude: Bash rm -rf build")
	if sent := typed(s, "next"); len(sent) != 1 || sent[0].Prompt == nil || sent[0].Prompt.Text != "next" {
		t.Errorf("it sends %+v", sent)
	}
}

// Typed text never decides: an approval that comes while the user types needs a key that types nothing.
func TestTypingDecidesNothing(t *testing.T) {
	s := asking(request())
	if sent := keys(s, "y", "a", "1", "space", "enter"); len(sent) != 1 || sent[0].Prompt == nil {
		t.Errorf("it sends %+v", sent)
	}
}

// An approval can be allowed only after all of it was on the screen, and not at all if it has a part that cannot be.
func TestAnApprovalIsAllowedOnlyAfterItWasShown(t *testing.T) {
	low := Look{Width: 40, Height: 16, Plain: true}
	long := request()
	long.Asks.Detail = strings.Repeat("echo line\n", 40) + "rm -rf /"
	s := asking(long)
	press := func(name string) []wire.Request {
		requests, _ := s.Key(name, "")
		s.View(low)
		return requests
	}
	s.View(low)
	for press("tab"); !strings.Contains(at(t, s, low), "rm -rf /"); press("pgdown") {
		if sent := press("enter"); sent != nil {
			t.Fatalf("it allows what it did not show: %+v", sent)
		}
	}
	for range 10 {
		press("pgdown")
	}
	if sent := press("enter"); len(sent) != 1 || sent[0].Decide.Choice != wire.AllowOnce {
		t.Errorf("it sends %+v", sent)
	}

	for name, change := range map[string]func(a *wire.Asks){
		"missing":  func(a *wire.Asks) { a.Missing = "the command" },
		"too long": func(a *wire.Asks) { a.Detail = strings.Repeat("x", mostAsked+1) },
	} {
		a := request()
		change(a.Asks)
		s = asking(a)
		for _, press := range [][]string{{"tab", "enter"}, {"up", "up", "up", "enter"}} {
			for _, r := range keys(s, press...) {
				if r.Decide.Choice != wire.Deny {
					t.Errorf("%s: it sends %+v", name, r.Decide)
				}
			}
		}
	}
	other := request()
	s = asking(request())
	keys(s, "tab")
	other.Asks.Title = strings.Repeat("another command\n", 100)
	s.Apply(wire.Message{Approval: other})
	if sent, _ := s.Key("enter", ""); sent != nil {
		t.Errorf("it allows a request that changed: %+v", sent)
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	questions := func() *wire.Approval {
		return &wire.Approval{ID: "q", Agent: "claude", Decision: wire.Decision{State: wire.ApprovalOpen},
			Questions: []wire.Question{
				{Header: "Database", Text: "Which one?",
					Options: []wire.Option{{Label: "SQLite", Description: "a file"}, {Label: "Postgres"}}},
				{Text: "Which checks?", Multi: true, Free: true,
					Options: []wire.Option{{Label: "lint"}, {Label: "test"}}},
				{Text: "The password?", Secret: true}},
			Choices: []wire.Offer{{Choice: wire.Answer}, {Choice: wire.Deny}}}
	}
	s := asking(questions())
	keys(s, "tab")
	shows(t, s, "Which one?", "SQLite - a file", "Don't answer")
	keys(s, "down", "enter")
	shows(t, s, "Which checks?", "[ ] lint")
	keys(s, "space", "down", "space")
	shows(t, s, "[x] lint", "[x] test")
	keys(s, "up", "enter", "down", "down", "down", "enter") // lint is out again, and Done
	shows(t, s, "The password?")
	keys(s, "enter", "h", "i", "d")
	lacks(t, s, "hid")
	shows(t, s, "answer: ***")
	sent := keys(s, "enter")
	if len(sent) != 1 || fmt.Sprint(sent[0].Decide.Answers) != "[[Postgres] [test] [hid]]" {
		t.Errorf("it sends %+v", sent)
	}
	s = asking(questions())
	if sent := keys(s, "tab", "down", "down", "enter"); len(sent) != 1 || sent[0].Decide.Choice != wire.Deny {
		t.Errorf("it sends %+v", sent)
	}
}

// A prompt that waits can be edited: it is out of the queue before its text returns.
func TestAWaitingPromptIsEdited(t *testing.T) {
	s := fresh()
	s.Apply(wire.Message{Snapshot: ptr(story())})
	sent := keys(s, "ctrl+r")
	if len(sent) != 1 || sent[0].Cancel == nil || sent[0].Cancel.Turn != "t3" || s.input.text() != "" {
		t.Fatalf("it sends %+v", sent)
	}
	s.Apply(wire.Message{Entry: &wire.Entry{Turn: "t3", State: wire.StateCancelled, Prompt: "and push"}})
	s.Apply(wire.Message{Reply: &wire.Reply{ID: "r1"}})
	shows(t, s, "> and push")
	lacks(t, s, "next: and push")
	if sent := keys(s, "ctrl+x"); len(sent) != 1 || sent[0].Abort.Turn != "t2" {
		t.Errorf("it sends %+v", sent)
	}
}

func TestConversationsAreSwitched(t *testing.T) {
	s := fresh()
	s.Apply(wire.Message{Snapshot: ptr(story())})
	shows(t, s, "(!) 1 in other chats", "Shop")
	typed(s, "for the shop")
	if sent := keys(s, "ctrl+n"); len(sent) != 2 || sent[0].Open.Conversation != "7/3" {
		t.Fatalf("it sends %+v", sent)
	}
	// before the other one is open
	s.Apply(wire.Message{Text: &wire.Text{Turn: "t2", Offset: 10, Text: " of the shop"}})
	blog := []wire.Notice{{ID: "1", Text: "of the blog", At: noon}}
	s.Apply(wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/3", Notices: blog}})
	s.Apply(wire.Message{Activity: &wire.Activity{Conversation: "7/0", Running: true}})
	shows(t, s, "Blog", "of the blog")
	lacks(t, s, "of the shop", "sending", "(!)")
	typed(s, "for the blog")
	var got []string
	for _, r := range s.Connected()[1:] {
		if r.Open != nil {
			got = append(got, "open "+r.Open.Conversation)
		} else {
			got = append(got, r.Prompt.Text)
		}
	}
	if want := "[open 7/0 for the shop open 7/3 for the blog]"; fmt.Sprint(got) != want {
		t.Errorf("after a reconnect it sends %v, want %s", got, want)
	}
	keys(s, "ctrl+p")
	shows(t, s, "Shop", "Reading it of the shop")
}

func TestScrolling(t *testing.T) {
	s := fresh()
	var answer strings.Builder
	for i := range 200 {
		fmt.Fprintf(&answer, "line %d.\n", i)
	}
	s.Apply(wire.Message{Snapshot: &wire.Snapshot{Conversation: "7/0", Entries: []wire.Entry{
		{Turn: "t", State: wire.StateRunning, Prompt: "go", Answer: answer.String()}}}})
	shows(t, s, "line 199.")
	keys(s, "pgup", "pgup")
	lacks(t, s, "line 199.")
	before := at(t, s, wide)
	s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: answer.Len(), Text: strings.Repeat("more\n", 50)}})
	keys(s, "up", "down")
	if after := at(t, s, wide); after != before {
		t.Errorf("text that streams moves the rows that the user reads:\n%s\n%s", before, after)
	}
	for range 20 {
		keys(s, "pgup")
	}
	shows(t, s, "▌ go", "line 0.")
	for range 20 {
		keys(s, "pgdown")
	}
	shows(t, s, "more")
}

// A megabyte in one turn costs little memory, and each piece little time.
func TestAMegabyteOfOutput(t *testing.T) {
	for name, piece := range map[string]string{
		"lines": "0123456789\n", "one line": "0123456789", "codes": "\x1b[31m0\x1b[m世",
	} {
		s := fresh()
		s.Apply(opened(going("")))
		began, size, pieces, most := time.Now(), 0, 0, 3*mostText
		if name == "lines" {
			most = 1 << 20
		}
		for ; size < most; pieces++ {
			s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: size, Text: strings.Repeat(piece, 800)}})
			s.View(wide)
			size += 800 * len(piece)
		}
		t.Logf("%s: %v for each of %d pieces", name, time.Since(began)/time.Duration(pieces), pieces)
		if held := len(s.shown().turn("t").items[0].body.text); held > 2*mostText+mostLine {
			t.Errorf("%s: it holds %d bytes", name, held)
		}
		if rows := len(s.shown().turn("t").items[0].body.rows); rows > mostText {
			t.Errorf("%s: it holds %d rows", name, rows)
		}
		s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: size, Text: "\nthe end"}})
		shows(t, s, "the end")
	}
}
