package changes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// fake implements the changes with two turns and a checkpoint in two chats, and counts the changes of files.
type fake struct {
	state map[string]*orchestrator.TurnChanges
	done  []string
	diff  string
	store map[int]orchestrator.Message
	ids   map[string]int // IDs of sent messages, by key
	cards orchestrator.CardStore
	err   error

	changed bool // the last turn changed files

	rebuttoned []string // chat, message and new buttons
}

func newFake() *fake {
	b := &fake{state: map[string]*orchestrator.TurnChanges{}, diff: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n", store: map[int]orchestrator.Message{}, ids: map[string]int{}}
	b.cards = bottest.NewJournal()
	for chat := range 2 {
		in := orchestrator.ConversationID{Chat: int64(chat + 1)}
		turn, point := fmt.Sprintf("turn-%d", chat+1), fmt.Sprintf("point-%d", chat+1)
		b.state[turn] = &orchestrator.TurnChanges{ID: turn, Conversation: in, Title: "of " + turn, Changed: orchestrator.Changed{Files: 2, Ignored: true}}
		b.state[point] = &orchestrator.TurnChanges{ID: point, Conversation: in, Title: "of " + point, Checkpoint: true, At: time.Unix(0, 0)}
	}
	return b
}

func (b *fake) find(in orchestrator.ConversationID, id string) (*orchestrator.TurnChanges, error) {
	c := b.state[id]
	switch {
	case b.err != nil:
		return nil, b.err
	case c == nil:
		return nil, orchestrator.ErrNoChanges
	case c.Conversation != in:
		return nil, orchestrator.ErrElsewhere
	}
	return c, nil
}

// change applies the change of a press, once.
func (b *fake) change(by orchestrator.Press, id, what string, do func(c *orchestrator.TurnChanges) error) (orchestrator.TurnChanges, error) {
	if !by.May(orchestrator.ReachFiles) {
		return orchestrator.TurnChanges{}, orchestrator.ErrNotAllowed
	}
	c, err := b.find(by.Conversation, id)
	if err != nil {
		return orchestrator.TurnChanges{}, err
	}
	if err := do(c); err != nil {
		return *c, err
	}
	b.done = append(b.done, what+" "+id)
	return *c, nil
}

func (b *fake) Undo(_ context.Context, by orchestrator.Press, turn cli.TurnID) (orchestrator.TurnChanges, error) {
	return b.change(by, string(turn), "undo", func(c *orchestrator.TurnChanges) error {
		if c.Undone {
			return orchestrator.ErrUndone
		}
		c.Undone = true
		return nil
	})
}

func (b *fake) Redo(_ context.Context, by orchestrator.Press, turn cli.TurnID) (orchestrator.TurnChanges, error) {
	return b.change(by, string(turn), "redo", func(c *orchestrator.TurnChanges) error {
		if !c.Undone {
			return orchestrator.ErrNotUndone
		}
		c.Undone = false
		return nil
	})
}

func (b *fake) Commit(_ context.Context, by orchestrator.Press, turn cli.TurnID, text string) (orchestrator.TurnChanges, error) {
	return b.change(by, string(turn), "commit "+text, func(c *orchestrator.TurnChanges) error {
		switch {
		case text == "":
			return orchestrator.ErrBadChoice
		case c.Commit != "":
			return orchestrator.ErrCommitted
		}
		c.Commit = "0123456789abcdef"
		return nil
	})
}

func (b *fake) Changes(_ context.Context, in orchestrator.ConversationID, id string) (orchestrator.TurnChanges, error) {
	c, err := b.find(in, id)
	if err != nil {
		return orchestrator.TurnChanges{}, err
	}
	return *c, nil
}

func (b *fake) Diff(_ context.Context, in orchestrator.ConversationID, turn cli.TurnID) (string, error) {
	_, err := b.find(in, string(turn))
	return b.diff, err
}

func (b *fake) DiffSince(_ context.Context, by orchestrator.Press, since orchestrator.DiffSince, path string) (string, error) {
	if since != orchestrator.SinceTurn && !by.May(orchestrator.ReachFiles) {
		return "", orchestrator.ErrNotAllowed
	}
	if since == orchestrator.SinceTurn && !b.changed {
		return "", orchestrator.ErrNoChanges
	}
	if path == "nothere.txt" {
		return "", orchestrator.ErrNoFile
	}
	return strings.ReplaceAll(b.diff, "two", fmt.Sprint(since, path, by.Conversation.Chat)), b.err
}

func (b *fake) Checkpoint(_ context.Context, by orchestrator.Press, name string) (orchestrator.TurnChanges, error) {
	return orchestrator.TurnChanges{ID: "new", Conversation: by.Conversation, Title: name, Checkpoint: true}, b.err
}

func (b *fake) Checkpoints(_ context.Context, in orchestrator.ConversationID) (all []orchestrator.TurnChanges, err error) {
	for _, id := range []string{"turn-1", "turn-2", "point-1", "point-2"} {
		if c := b.state[id]; c.Conversation == in {
			all = append(all, *c)
		}
	}
	return all, b.err
}

func (b *fake) SessionChanges(ctx context.Context, in orchestrator.ConversationID, _ orchestrator.SessionID) ([]orchestrator.TurnChanges, error) {
	return b.Checkpoints(ctx, in)
}

func (b *fake) Return(_ context.Context, by orchestrator.Press, id string, _ orchestrator.ReturnTo) (to, before orchestrator.TurnChanges, err error) {
	to, err = b.change(by, id, "return", func(*orchestrator.TurnChanges) error { return nil })
	return to, orchestrator.TurnChanges{ID: "before", Changed: orchestrator.Changed{Files: 3}}, err
}

func (b *fake) FindMessage(_ context.Context, key string) (orchestrator.Message, error) {
	return orchestrator.Message{ID: b.ids[key]}, nil
}
func (b *fake) MessageAt(_ context.Context, _ orchestrator.ConversationID, id int) (orchestrator.Message, error) {
	return b.store[id], nil
}

func (b *fake) screen() *Screen {
	return New(Options{
		Changes: b, Store: b, Journal: b.cards, Names: &tgapi.ChatNames{}, Now: time.Now,
		Rebutton: func(in orchestrator.ConversationID, message int, k tgapi.Keyboard) {
			b.rebuttoned = append(b.rebuttoned, fmt.Sprint(in.Chat, message, k))
		},
	})
}

func by(chat int64) orchestrator.Press {
	return orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: chat}, Person: 1, Updates: []int64{5}, Role: orchestrator.RoleUser}
}

// shown returns all texts of an answer.
func shown(a tgapi.Answer) string {
	all := a.Text + "\n" + a.Edit.Text
	for _, m := range a.Messages {
		all += "\n" + string(m.Content)
	}
	return all
}

// Users press buttons in any order, chat and role, after restarts and with invented data. Nothing happens twice in a
// row, nothing of another chat is shown or changed, and a member changes nothing.
func TestAnySequenceOfPresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newFake()
		for range rapid.IntRange(1, 15).Draw(t, "presses") {
			who := by(rapid.Int64Range(1, 2).Draw(t, "chat"))
			if rapid.Bool().Draw(t, "member") {
				who.Role = orchestrator.RoleMember
			}
			data := rapid.SampledFrom([]string{"u", "r", "d", "D", "c", "C", "x", "t", "T", "A", "h", "p", "s", "?", ""}).Draw(t, "op") + ":" +
				rapid.SampledFrom([]string{"turn-1", "turn-2", "point-1", "point-2", "none", "0", "7", "sl", "cdpath", "tl", "", ":"}).Draw(t, "on")
			before := len(b.done)
			a, err := b.screen().Press(context.Background(), who, tgapi.Pressed{Message: 9}, data)
			if err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			other := fmt.Sprint(3 - who.Conversation.Chat)
			if text := shown(a); strings.Contains(text, "of turn-"+other) || strings.Contains(text, "of point-"+other) {
				t.Errorf("%s shows another chat: %s", data, text)
			}
			for _, did := range b.done[before:] {
				if who.Role == orchestrator.RoleMember || strings.HasSuffix(did, other) {
					t.Errorf("%s by %+v did %s", data, who, did)
				}
			}
			if render.Len(a.Text) > 200 || a.Text == "" && a.Edit.Text == "" && len(a.Messages) == 0 {
				t.Errorf("%s answers %q", data, a.Text)
			}
			for _, m := range a.Messages {
				if m.Conversation != who.Conversation {
					t.Errorf("%s sends to %v", data, m.Conversation)
				}
			}
		}
		last := map[string]string{}
		for _, did := range b.done {
			what, id, _ := strings.Cut(did, " ")
			if what != "return" && last[id] == what {
				t.Errorf("it did %v", b.done)
			}
			if what == "undo" || what == "redo" {
				last[id] = what
			}
		}
	})
}

// After a press of Undo or Redo, the answer and the newest report have the same button, wherever it was pressed. Older
// reports have none.
func TestUndoAndRedoChangeBothMessages(t *testing.T) {
	b := newFake()
	row := Buttons(lang.Printer{}, "turn-1", orchestrator.Changed{Files: 2})
	undo, redo := row[1], button(lang.Printer{}.Text("changes.redo"), opRedo, "turn-1")
	shows, newest := map[int]tgapi.Keyboard{9: {row}}, 9
	for _, press := range []struct {
		on       int
		was, now tgapi.Button
	}{{9, undo, redo}, {10, redo, undo}, {9, undo, redo}, {9, redo, undo}, {13, undo, redo}} {
		screen := b.screen()
		screen.o.Rebutton = func(_ orchestrator.ConversationID, message int, k tgapi.Keyboard) { shows[message] = k }
		pressed := tgapi.Pressed{Message: press.on, Buttons: shows[press.on]}
		a, err := screen.Press(t.Context(), by(1), pressed, strings.TrimPrefix(press.was.Data, Action+":"))
		if err != nil || a.Instead == nil || len(a.Messages) != 1 {
			t.Fatalf("a press on %d: %+v, %v", press.on, a, err)
		}
		if shows[press.on] = pressed.Buttons.Replaced(press.was.Data, *a.Instead); *a.Instead == (tgapi.Button{}) {
			shows[press.on] = nil
		}
		newest++
		b.ids[a.Messages[0].Key], shows[newest] = newest, tgapi.Keyboard{{press.now}}
		for id, k := range shows {
			var want tgapi.Keyboard
			switch id {
			case 9:
				want = tgapi.Keyboard{{row[0], press.now, row[2]}}
			case newest:
				want = tgapi.Keyboard{{press.now}}
			}
			if fmt.Sprint(k) != fmt.Sprint(want) {
				t.Errorf("after a press on %d the message %d has %v, want %v", press.on, id, k, want)
			}
		}
	}
}

// The user accepts the proposed message of a commit, or replies with another one. Then the answer has no button for a
// commit any more, also if ductor restarted in between.
func TestACommitAsksForItsMessage(t *testing.T) {
	b := newFake()
	row := Buttons(lang.Printer{}, "turn-1", orchestrator.Changed{Files: 2})
	answer := tgapi.Pressed{Message: 9, Buttons: tgapi.Keyboard{row}}
	a, err := b.screen().Press(t.Context(), by(1), answer, "c:turn-1")
	if err != nil || !strings.Contains(shown(a), "Commit 2 files with this message?") || !strings.Contains(shown(a), "of turn-1") {
		t.Fatalf("it asks %s, %v", shown(a), err)
	}
	b.store[44] = a.Messages[0]
	if _, ok, err := b.screen().Replied(t.Context(), Reply{By: by(1), To: 43, Text: "x"}); ok || err != nil {
		t.Errorf("a reply to another message: %v, %v", ok, err)
	}
	text, ok, err := b.screen().Replied(t.Context(), Reply{By: by(1), To: 44, Text: "My words"})
	if err != nil || !ok || text != "✅ Committed 2 files as 0123456789: My words" || fmt.Sprint(b.done) != "[commit My words turn-1]" {
		t.Errorf("it says %q, %v, %v and did %v", text, ok, err, b.done)
	}
	without := tgapi.Keyboard{row[:2]}
	if want := fmt.Sprint([]string{fmt.Sprint(1, 9, without)}); fmt.Sprint(b.rebuttoned) != want {
		t.Errorf("it changed the buttons %v, want %s", b.rebuttoned, want)
	}
	a, err = b.screen().Press(t.Context(), by(1), answer, "c:turn-1")
	if err != nil || a.Instead == nil || *a.Instead != (tgapi.Button{}) ||
		a.Text != "These changes are committed already." {
		t.Errorf("another button for the commit: %+v, %v", a, err)
	}
	again := Reply{By: by(1), To: 44, Text: "My words"}
	if text, ok, _ = b.screen().Replied(t.Context(), again); !ok || text != "These changes are committed already." {
		t.Errorf("the same message after a crash: %q, %v", text, ok)
	}
	if err := b.screen().Withdraw(t.Context(), by(1).Conversation, 44, text); err != nil {
		t.Error(err)
	}
	again.Text = "Again"
	if text, _, _ = b.screen().Replied(t.Context(), again); text != "These changes are committed already." {
		t.Errorf("once more: %q", text)
	}
}

// If the agent or a user has committed the changes with Git, the answer has no button for a commit either.
func TestACommitThatIsThereAlready(t *testing.T) {
	b := newFake()
	row := Buttons(lang.Printer{}, "turn-1", orchestrator.Changed{Files: 2})
	answer := tgapi.Pressed{Message: 9, Buttons: tgapi.Keyboard{row}}
	if _, err := b.screen().Press(t.Context(), by(1), answer, "c:turn-1"); err != nil {
		t.Fatal(err)
	}
	b.state["turn-1"].Commit = "by hand"
	a, err := b.screen().Press(t.Context(), by(1), tgapi.Pressed{Message: 10}, "C:turn-1")
	if err != nil || a.Text != "These changes are committed already." || len(b.rebuttoned) != 1 {
		t.Errorf("%+v, %v, new buttons %v", a, err, b.rebuttoned)
	}
}

// A commit message ends with a whole word and without an ellipsis.
func TestTheProposedCommitMessage(t *testing.T) {
	for title, want := range map[string]string{
		"Fix the test.": "Fix the test", "": "",
		"Rename the method Open to OpenFile in all packages, and update the documentation"://
		"Rename the method Open to OpenFile in all packages, and update the",
		strings.Repeat("a", 71) + " b":  strings.Repeat("a", 71),
		strings.Repeat("a", 72) + " b":  strings.Repeat("a", 71), // one unit less than possible
		strings.Repeat("修", 66) + "…":   strings.Repeat("修", 66),
		"修复 " + strings.Repeat("修", 80): "修复 " + strings.Repeat("修", 68),
	} {
		if got := proposal(orchestrator.TurnChanges{Title: title}); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

// A short diff is a picture in light or dark. A diff that is long, or that the font cannot show, is a file.
func TestADiffIsAPictureOrAFile(t *testing.T) {
	b := newFake()
	spool, err := message.OpenSpool(t.Context(), t.TempDir(), noMessages{})
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	screen := b.screen()
	screen.o.Spool = spool
	for data, want := range map[string]string{"d:turn-1": "Dark", "D:turn-1": "Light", "scl": ""} {
		if want == "" {
			data = "s:cl"
		}
		a, err := screen.Press(t.Context(), by(1), tgapi.Pressed{Message: 9}, data)
		if err != nil || len(a.Messages) != 1 || !strings.Contains(shown(a), `"picture":true`) || !strings.Contains(shown(a), want) {
			t.Errorf("%s shows %s, %v", data, shown(a), err)
		}
	}
	for name, diff := range map[string]string{"long": b.diff + strings.Repeat("+x\n", 100), "not in the font": b.diff + "+漢\n"} {
		b.diff = diff
		a, err := screen.Diff(t.Context(), by(1), "")
		if err != nil || !strings.Contains(shown(a), `changes.diff`) {
			t.Errorf("%s: %s, %v", name, shown(a), err)
		}
	}
}

// The answer names a path that does not exist, and has the buttons for other states, in which it may exist.
func TestADiffOfAMissingPath(t *testing.T) {
	a, err := newFake().screen().Diff(t.Context(), by(1), "nothere.txt")
	if err != nil || len(a.Messages) != 1 || !strings.Contains(shown(a), "There is no nothere.txt in the project") ||
		!strings.Contains(shown(a), "nothere.txt\"") {
		t.Errorf("it shows %s, %v", shown(a), err)
	}
}

// A viewer sees only the changes of the last turn. Those since the start of the session and since the last commit may
// be of anyone.
func TestAViewerSeesTheChangesOfTurns(t *testing.T) {
	b := newFake()
	viewer := by(1)
	viewer.Role = orchestrator.RoleViewer
	if a, err := b.screen().Diff(t.Context(), viewer, ""); err != nil || len(a.Messages) > 0 || a.Text == "" {
		t.Errorf("/diff shows %q, %v", shown(a), err)
	}
	for _, data := range []string{"s:cl", "s:cd", "s:clx", "s:sl", "s:sdx"} {
		a, err := b.screen().Press(t.Context(), viewer, tgapi.Pressed{Message: 9}, data)
		if err != nil || len(a.Messages) > 0 || !strings.HasPrefix(a.Text, "You may read this chat, but not change anything.") {
			t.Errorf("%s shows %q, %v", data, shown(a), err)
		}
	}
	b.changed = true
	for _, who := range []orchestrator.Press{viewer, by(1)} {
		a, err := b.screen().Diff(t.Context(), who, "")
		buttons := strings.Contains(shown(a), "✓ ")
		if err != nil || len(a.Messages) != 1 || buttons != (who.Role == orchestrator.RoleUser) {
			t.Errorf("the last turn's changes for a %s: %q, %v", who.Role, shown(a), err)
		}
	}
}

// A viewer cannot close the question of another user.
func TestAttackTheQuestionOfACommitByAViewer(t *testing.T) {
	b := newFake()
	row := Buttons(lang.Printer{}, "turn-1", orchestrator.Changed{Files: 2})
	answer := tgapi.Pressed{Message: 9, Buttons: tgapi.Keyboard{row}}
	a, err := b.screen().Press(t.Context(), by(1), answer, "c:turn-1")
	if err != nil || len(a.Messages) != 1 {
		t.Fatalf("it asks %s, %v", shown(a), err)
	}
	b.store[44] = a.Messages[0]
	viewer := by(1)
	viewer.Role = orchestrator.RoleViewer
	a, err = b.screen().Press(t.Context(), viewer, tgapi.Pressed{Message: 44}, "x:turn-1")
	if err != nil || a.Edit.Text != "" || !strings.HasPrefix(a.Text, "Only users whom the owner listed") {
		t.Errorf("a viewer's Cancel: %q, %v", shown(a), err)
	}
	if a, err = b.screen().Press(t.Context(), by(1), tgapi.Pressed{Message: 44}, "C:turn-1"); err != nil ||
		fmt.Sprint(b.done) != "[commit of turn-1 turn-1]" {
		t.Errorf("the commit after it: %q, %v, did %v", shown(a), err, b.done)
	}
}

type noMessages struct{ orchestrator.MessageStore }

func (noMessages) OwedMessages(context.Context) ([]orchestrator.Message, error) { return nil, nil }

// Each refusal explains its reason.
func TestRefusalsSayWhy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&orchestrator.ChangedSince{Paths: []string{"a", "b", "c", "d"}}, "these files have changed since: a, b, c …"},
		{fmt.Errorf("%w: %s", orchestrator.ErrInTheWay, "ignored files are in the way: x.o"), "in the way: x.o"},
		{fmt.Errorf("%w: a.bin", orchestrator.ErrGitFilter), "with LFS: a.bin"},
		{fmt.Errorf("git add: %w: /a/b", orchestrator.ErrBlocking), "it's a pipe: /a/b. Delete"},
		{orchestrator.ErrOtherPlace, "leads to another folder"},
		{&orchestrator.TurnWrites{In: orchestrator.ConversationID{Chat: -5}}, "A turn in another group is changing these files now"}, {orchestrator.ErrNoIdentity, "user.name"}, {orchestrator.ErrMerging, "in progress"},
		{orchestrator.ErrNoRepository, "no Git repository"}, {orchestrator.ErrDiffTooLong, "/diff PATH"},
	} {
		b := newFake()
		b.err = c.err
		a, err := b.screen().Press(t.Context(), by(1), tgapi.Pressed{Message: 9}, "u:turn-1")
		if err != nil || !strings.Contains(a.Text, c.want) {
			t.Errorf("%v says %q, %v", c.err, a.Text, err)
		}
	}
}
