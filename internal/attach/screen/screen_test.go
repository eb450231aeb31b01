package screen

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"ductor/internal/attach/wire"
	"ductor/internal/sim/hostile"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)

// fresh returns a screen whose requests have the ids r1, r2 and so on.
func fresh() *Screen {
	n := 0
	s := New("7/0", func() string { n++; return fmt.Sprint("r", n) })
	s.Connected()
	s.Apply(wire.Message{Conversations: []wire.Conversation{
		{Key: "7/0", Title: "Shop"}, {Key: "7/3", Title: "Blog", Approvals: 1}}})
	return s
}

func ptr[T any](v T) *T { return &v }

// story is a conversation with everything that a screen shows.
func story() wire.Snapshot {
	return wire.Snapshot{
		Conversation: "7/0", Title: "fix the login", Agent: "claude", Model: "opus", Mode: "ask", Dir: "/home/you/shop",
		Entries: []wire.Entry{
			{Turn: "t1", State: wire.StateDone, Files: []string{"log.txt"},
				Prompt: "Fix the login test.\nIt fails since Monday, 从周一开始 😀",
				Agent:  "claude", Model: "opus", Queued: noon, DurationMS: 12_300, CostUSD: 0.12,
				Answer: "I'll read the test first.\n\nThe clock was wrong: `time.Now()` is not UTC. " +
					"时钟错了，所以登录测试从周一开始失败。 👩‍👩‍👧 done",
				Tools: []wire.Tool{
					{Turn: "t1", ID: "a", Name: "Bash", Title: "go test ./auth", State: wire.ToolFailed,
						Input:    json.RawMessage(`{"command":"go test ./auth","timeout":60}`),
						ExitCode: ptr(1), DurationMS: 3000, Offset: 25,
						Output: "--- FAIL: TestLogin (0.01s)\n\x1b[31mauth_test.go:12\x1b[0m: expired\n" +
							strings.Repeat("goroutine 1 [running]:\n", 20) + "FAIL"},
					{Turn: "t1", ID: "b", Parent: "a", Name: "Read", Title: "auth/login.go", State: wire.ToolDone,
						Offset: 25},
				},
				Changes: []wire.Change{{Turn: "t1", Path: "auth/login.go", Kind: "update", Offset: 25,
					Diff: "@@ -1,2 +1,2 @@\n func now() time.Time {\n" +
						"-\treturn time.Now()\n+\treturn time.Now().UTC()\n"}}},
			{Turn: "t2", State: wire.StateRunning, Prompt: "Now the README", Terminal: true,
				Agent: "claude", Model: "opus", Queued: noon.Add(time.Minute), Answer: "Reading it",
				Plan: []wire.Step{{Text: "read", State: "done"}, {Text: "write", State: "active"},
					{Text: "check", State: "open"}}},
			{Turn: "t3", State: wire.StateQueued, Prompt: "and push", Queued: noon.Add(2 * time.Minute)},
		},
		Notices: []wire.Notice{
			{ID: "n1", Text: "Your next message goes to Claude · opus.", At: noon.Add(30 * time.Second)}},
	}
}

func request() *wire.Approval {
	return &wire.Approval{ID: "ap", Turn: "t2", Agent: "claude", Dir: "/home/you/shop", Same: 1,
		Decision: wire.Decision{State: wire.ApprovalOpen},
		Asks: &wire.Asks{Tool: "Bash", Title: "rm -rf build", Reason: "clean up",
			Fields: []wire.Field{{Name: "run_in_background", Value: "true"},
				{Name: "dangerouslyDisableSandbox", Value: "true", Wider: true},
				{Name: "id", Value: "x1", Label: true}}},
		Choices: []wire.Offer{{Choice: wire.AllowOnce}, {Choice: wire.AllowPattern, Rule: "Bash(rm -rf build)"},
			{Choice: wire.Deny}}}
}

// at returns the rows of a screen, and checks that they fit.
func at(t *testing.T, s *Screen, look Look) string {
	t.Helper()
	v := s.View(look)
	if len(v.Rows) != look.Height {
		t.Errorf("%d rows on a terminal of %d", len(v.Rows), look.Height)
	}
	if v.Y >= look.Height || v.X > look.Width {
		t.Errorf("the cursor is at %d, %d on %+v", v.X, v.Y, look)
	}
	for _, r := range v.Rows {
		if w := ansi.StringWidth(r); w > look.Width {
			t.Errorf("a row has %d columns on %+v: %q", w, look, r)
		}
		if bad := controls(r, look); bad != "" {
			t.Errorf("a row has %q: %q", bad, r)
		}
	}
	return strings.Join(v.Rows, "\n") + "\n"
}

// controls returns a character of a row that a terminal would obey, apart from codes for colours.
func controls(row string, look Look) string {
	for _, code := range []style{bold, faint, reverse, red, green, yellow, blue, cyan, ""} {
		if !look.Plain {
			row = strings.ReplaceAll(row, "\x1b["+string(code)+"m", "")
		}
	}
	for _, r := range row {
		direction := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
		if r < ' ' || r >= 0x7f && r < 0xa0 || direction || look.ASCII && r > 0x7f {
			return string(r)
		}
	}
	return ""
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got = strings.ReplaceAll(got, "\x1b", "^")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestScreensOfEachSize(t *testing.T) {
	for name, look := range map[string]Look{
		"20": {Width: 20, Height: 60, Plain: true}, "80": {Width: 80, Height: 60},
		"200":      {Width: 200, Height: 60, Plain: true},
		"80-ascii": {Width: 80, Height: 60, ASCII: true, Plain: true}, "80-low": {Width: 80, Height: 12, Plain: true},
	} {
		s := fresh()
		s.Apply(wire.Message{Snapshot: ptr(story())})
		s.Key("", "grüße, 世界")
		golden(t, "story-"+name, at(t, s, look))
		s.Apply(wire.Message{Approval: request()})
		golden(t, "asked-"+name, at(t, s, look))
		s.Key("tab", "")
		golden(t, "deciding-"+name, at(t, s, look))
		s.Key("ctrl+o", "")
		s.Key("esc", "")
		golden(t, "open-"+name, at(t, s, look))
	}
}

// The error of a tool that its output contains is shown once, another error after the output.
func TestTheErrorOfAToolIsShownOnce(t *testing.T) {
	s, entry := fresh(), going("")
	entry.Tools = []wire.Tool{
		{Turn: "t", ID: "1", Name: "Bash", State: wire.ToolDone, Output: "Exit code 1\nno module",
			Error: "Exit code 1 no module"},
		{Turn: "t", ID: "2", Name: "Bash", State: wire.ToolDone, Output: "half of it", Error: "the turn ended"},
	}
	s.Apply(opened(entry))
	if shown := at(t, s, wide); strings.Count(shown, "no module") != 1 || strings.Count(shown, "Exit code 1") != 1 ||
		!strings.Contains(shown, "the turn ended") {
		t.Errorf("it shows:\n%s", shown)
	}
}

// Whatever an agent prints, the terminal gets nothing that it would obey.
func TestNoTextOfOthersReachesTheTerminalRaw(t *testing.T) {
	texts := hostile.Printed(300)
	for name, text := range hostile.Markdown(300) {
		texts["md "+name] = text
	}
	texts["clipboard"] = "a\x1b]52;c;cm0gLXJmIC8=\x07b\x1b]52;c;cm0gLXJmIC8=\x1b\\c"
	texts["cursor"] = "\x1b[2J\x1b[1;1H\x1b[?1049l\x1b[6n\x1b]0;owned\x07\x1bc\x1b[20t\x1bP$q\x1b\\"
	texts["8 bit"] = "\u009b31m\u009d52;c;YQ==\u009c\x9b2J\x90q\x9c"
	texts["directions"] = "user\u202enimda\u2066 \u200e\u2069"
	texts["cut"] = "\x1b"
	texts["cut link"] = "\x1b]8;;https://evil"
	for name, text := range texts {
		for _, look := range []Look{{Width: 20, Height: 60}, {Width: 80, Height: 60, ASCII: true, Plain: true}} {
			s := fresh()
			s.Apply(wire.Message{Conversations: []wire.Conversation{{Key: "7/0", Title: text}}})
			s.Apply(wire.Message{Snapshot: &wire.Snapshot{
				Conversation: "7/0", Title: text, Agent: text, Model: text, Dir: text,
				Entries: []wire.Entry{
					{Turn: "t", State: wire.StateRunning, Prompt: text, Answer: text, Agent: text, Job: text,
						Files: []string{text}, Plan: []wire.Step{{Text: text}},
						Tools: []wire.Tool{{Turn: "t", ID: "1", Name: text, Title: text, Output: text, Error: text,
							Input: json.RawMessage(fmt.Sprintf(`{"a":%s}`, quoted(text)))}},
						Changes: []wire.Change{{Path: text, Kind: text, Diff: text}}},
					{Turn: "q", State: wire.StateQueued, Prompt: text}},
				Notices: []wire.Notice{{ID: "n", Text: text}}}})
			s.Apply(wire.Message{Status: &wire.Status{Turn: "t", Sentence: text}})
			s.Apply(wire.Message{Thought: &wire.Thought{Turn: "t", Text: text}})
			for _, r := range text { // one character at a time
				s.Apply(wire.Message{Text: &wire.Text{Turn: "t", Offset: 1 << 20, Text: string(r)}})
			}
			s.Paste(text)
			s.Key("ctrl+o", "")
			at(t, s, look)
			a := request()
			a.Agent, a.Asks.Title, a.Asks.Tool, a.Choices[1].Rule = text, text, text, text
			a.Asks.Fields[0] = wire.Field{Name: text, Value: text}
			s.Apply(wire.Message{Approval: a})
			s.Key("tab", "")
			at(t, s, look)
			a = ptr(*a)
			a.State, a.Reason = wire.ApprovalDenied, text
			s.Apply(wire.Message{Approval: a})
			s.Apply(wire.Message{Approval: &wire.Approval{
				ID: "q", Agent: text, Decision: wire.Decision{State: wire.ApprovalOpen},
				Questions: []wire.Question{{Header: text, Text: text, Free: true,
					Options: []wire.Option{{Label: text, Description: text}}}},
				Choices: []wire.Offer{{Choice: wire.Answer}, {Choice: wire.Deny}}}})
			s.Key("tab", "")
			at(t, s, look)
			s.Link = text
			at(t, s, look)
			if t.Failed() {
				t.Fatalf("%s at %+v", name, look)
			}
		}
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}
