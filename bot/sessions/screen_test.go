package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/bot/message"
	screen "ductor/bot/sessions"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/sessions"
)

var (
	here  = orchestrator.ConversationID{Chat: 7}
	there = orchestrator.ConversationID{Chat: 8}
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner = orchestrator.Press{Conversation: here, Person: 1, Role: orchestrator.RoleUser}
)

// question is the ID of the message with the buttons.
const question = 5

// rig is a Screen over a real store.
type rig struct {
	t      testing.TB
	db     *store.DB
	screen *screen.Screen
	page   tgapi.Page // of the message
	answer tgapi.Answer
	ids    int
	agents agents
}

// engine implements conversations as far as sessions need them.
type engine struct{ db *store.DB }

func (e engine) Status(ctx context.Context, in orchestrator.ConversationID) (st orchestrator.Status, err error) {
	c, err := e.db.Conversation(ctx, in)
	if err == nil && c.Session != "" {
		st.Session, err = e.db.Session(ctx, c.Session)
	}
	st.Agent, st.Dir, st.Settings = c.Agent, "/src", c.Settings
	return st, err
}

func (e engine) Move(ctx context.Context, s orchestrator.Session, to orchestrator.ConversationID) error {
	return e.db.MoveSession(ctx, s.ID, to)
}

func (engine) Directory(path string) (string, error) {
	if path != "/src" {
		return "", orchestrator.ErrOutsideRoot
	}
	return path, nil
}

func (e engine) Resume(ctx context.Context, s orchestrator.Session, as orchestrator.AgentEnv) error {
	c, err := e.db.Conversation(ctx, s.Conversation)
	if err != nil {
		return err
	}
	if c.Session = s.ID; as.Agent != "" {
		c.Agent, c.Settings.Accounts = as.Agent, c.Settings.Accounts.With(as.Agent, as.Account)
	}
	return e.db.SaveConversation(ctx, c)
}

func (e engine) Begin(ctx context.Context, s orchestrator.Session) error {
	if err := e.db.CreateSession(ctx, s); err != nil {
		return err
	}
	c, err := e.db.Conversation(ctx, s.Conversation)
	if err != nil {
		return err
	}
	for of := range s.AgentSessions {
		c.Agent = of.Agent
	}
	return e.db.SaveConversation(ctx, c)
}

// agents has the agents of an environment and their stored sessions.
type agents struct {
	stored   []cli.StoredSession
	err      error
	released int
}

func (a *agents) StoredSessions(_ context.Context, in cli.Sandbox, _ cli.Accounts,
	dir string) ([]cli.StoredSession, error) {
	if in != "" || dir != "/src" {
		return nil, errors.New("another place")
	}
	return a.stored, a.err
}

func (a *agents) ResumeCommand(_ context.Context, agent cli.Agent, req cli.Request) (string, error) {
	return fmt.Sprintf("cd %s && %s --resume %s", req.Dir, agent, req.Resume), a.err
}

func (a *agents) Release(cli.Conversation) { a.released++ }

func newRig(t testing.TB) *rig {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &rig{t: t, db: db}
	book := sessions.New(sessions.Options{
		Store: db, Now: func() time.Time { return noon.Add(time.Hour) },
		NewID: func() string { r.ids++; return "fork" + strings.Repeat("x", r.ids) },
	})
	book.Attach(engine{db}, &r.agents)
	r.screen = screen.New(screen.Options{
		Sessions: book, Journal: db, Now: func() time.Time { return noon.Add(3 * time.Hour) },
		Status: engine{db}.Status,
	})
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// session stores a session with turns, each a prompt and its answer.
func (r *rig) session(in orchestrator.ConversationID, id orchestrator.SessionID, title string, turns ...[2]string) {
	r.t.Helper()
	r.must(r.db.CreateSession(r.t.Context(),
		orchestrator.Session{ID: id, Conversation: in, Person: 1, Title: title, Dir: "/src", Created: noon, Used: noon}))
	for i, said := range turns {
		r.turn(orchestrator.Turn{
			ID: cli.TurnID(string(id) + "-" + string(rune('1'+i))), Session: id,
			Prompt: orchestrator.Prompt{Conversation: in, Person: 1, Text: said[0]},
		}, said[1])
	}
}

// turn stores a turn that ended with an answer.
func (r *rig) turn(t orchestrator.Turn, answer string) {
	r.t.Helper()
	ctx := r.t.Context()
	t.State, t.Queued = orchestrator.TurnQueued, noon
	if t.Agent == "" {
		t.Agent = "claude"
	}
	r.must(r.db.EnqueueTurn(ctx, t))
	t.Started = noon
	if ok, err := r.db.StartTurn(ctx, t, cli.Start{}); err != nil || !ok {
		r.t.Fatal(ok, err)
	}
	r.must(r.db.FinishTurn(ctx, t.ID, noon, orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer, Model: "opus"}))
	r.must(r.db.MarkDelivered(ctx, t.ID))
}

func (r *rig) command(args string) {
	r.t.Helper()
	page, err := r.screen.Command(r.t.Context(), owner, args)
	r.must(err)
	r.page = page
}

// press presses the first button whose label contains part.
func (r *rig) press(part string) { r.t.Helper(); r.pressBy(owner, r.data(part)) }

func (r *rig) pressBy(by orchestrator.Press, data string) {
	r.t.Helper()
	a, err := r.screen.Press(r.t.Context(), by, question, data)
	r.must(err)
	r.answer = a
	if a.Edit.Text != "" {
		r.page = a.Edit
	}
}

func (r *rig) data(part string) string {
	r.t.Helper()
	for _, row := range r.page.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, part) {
				return strings.TrimPrefix(b.Data, screen.Action+":")
			}
		}
	}
	r.t.Fatalf("no button %q below\n%s\n%v", part, r.page.Text, r.page.Keyboard)
	return ""
}

func (r *rig) shows(parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.page.Text, part) {
			r.t.Errorf("%q is not in\n%s", part, r.page.Text)
		}
	}
}

func (r *rig) said(part string) {
	r.t.Helper()
	if !strings.Contains(r.answer.Text, part) {
		r.t.Errorf("the press is answered %q, want %q", r.answer.Text, part)
	}
}

func TestAWalkThroughTheSessions(t *testing.T) {
	r := newRig(t)
	r.command("")
	r.shows("There are no sessions here yet")
	r.session(here, "s1", "Fix the parser", [2]string{"Fix the parser", "It reads runes now."}, [2]string{"And the docs?", "**Written**, see `docs`."})
	r.session(here, "s2", "", [2]string{"", "hello"})
	r.session(there, "s3", "Elsewhere", [2]string{"parser", "x"})
	r.command("")
	r.shows("(no text) ✓", "Fix the parser", "3 h 0 min ago, 2 messages, /src")
	if strings.Contains(r.page.Text, "Elsewhere") {
		t.Errorf("it lists a session of another chat: %s", r.page.Text)
	}
	r.command("runes")
	r.shows(`Sessions with "runes":`, "Fix the parser", "“It reads runes now.”")
	r.command("nothing like it")
	r.shows(`No session contains "nothing like it"`)
	r.press("From other chats")
	r.shows("Elsewhere")

	r.command("parser")
	r.press("Fix the parser")
	r.shows("Fix the parser", "Last:", "> And the docs?", "Written, see docs.")
	r.press("Pin")
	r.said("Pinned.")
	r.shows("📌 Fix the parser")
	r.press("Continue")
	r.said("Your next message continues with Claude: Fix the parser")
	r.shows("Your next message continues it.")
	page, err := r.screen.Rename(t.Context(), owner, "  A better\nparser ")
	r.must(err)
	if page.Text != "This session is now called: A better parser" {
		t.Errorf("/rename says %q", page.Text)
	}

	r.press("Fork")
	r.press("Fix the parser")
	r.said("New session with all that was said up to there.")
	r.shows("⑂ A better parser", "1 message", "> Fix the parser")
}

// A continued session goes on with the agent that answered last in it. The page and the notice name the agents.
func TestAContinuedSessionGoesOnWithItsAgent(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "The parser", [2]string{"begin", "by Claude"})
	prompt := orchestrator.Prompt{Conversation: here, Person: 1}
	r.turn(orchestrator.Turn{ID: "s1-2", Session: "s1", Agent: "codex", Prompt: prompt,
		Entry: orchestrator.Entry{Account: "work"}}, "by Codex")
	r.turn(orchestrator.Turn{ID: "s1-3", Session: "s1", Agent: "gemini", Prompt: prompt,
		Wants: orchestrator.Wants{Agent: "gemini"}}, "by Gemini")
	r.session(here, "s2", "The docs", [2]string{"begin", "by Claude"})
	r.command("")
	r.press("The parser")
	r.shows("With Gemini, Codex, Claude")
	r.press("Continue")
	r.said("Your next message continues with Codex (work): The parser")
	c, err := r.db.Conversation(t.Context(), here)
	r.must(err)
	if c.Session != "s1" || c.Agent != "codex" || c.Settings.Accounts["codex"] != "work" {
		t.Errorf("the chat uses %s with %v in %s", c.Agent, c.Settings.Accounts, c.Session)
	}
}

// forgetful is a store that cannot read the history of a session.
type forgetful struct{ orchestrator.SessionStore }

func (forgetful) History(context.Context, orchestrator.SessionID, int) ([]orchestrator.Turn, error) {
	return nil, errors.New("the disk")
}

// A session continues with the agent of the chat if ductor cannot find out which agent answered last.
func TestASessionContinuesWithoutItsHistory(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "The parser", [2]string{"begin", "by Claude"})
	c, err := r.db.Conversation(t.Context(), here)
	r.must(err)
	c.Session, c.Agent = "", "codex"
	r.must(r.db.SaveConversation(t.Context(), c))
	book := sessions.New(sessions.Options{Store: forgetful{r.db}, Now: func() time.Time { return noon.Add(time.Hour) }})
	book.Attach(engine{r.db}, &r.agents)
	_, err = book.Continue(t.Context(), here, "s1")
	r.must(err)
	if s, err := r.db.Session(t.Context(), "s1"); err != nil || !s.Used.Equal(noon.Add(time.Hour)) {
		t.Errorf("the session was used at %v, %v", s.Used, err) // an old session could end at the next turn
	}
	if c, err = r.db.Conversation(t.Context(), here); err != nil || c.Session != "s1" || c.Agent != "codex" {
		t.Errorf("the chat uses %s in %q, %v", c.Agent, c.Session, err)
	}
}

// Prompts without text have a label in the language of the chat.
func TestPromptsWithoutText(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "")
	for id, turn := range map[cli.TurnID]orchestrator.Turn{
		"compact": {Wants: orchestrator.Wants{Purpose: orchestrator.Purpose{Task: cli.TaskCompact}}},
		"files":   {Prompt: orchestrator.Prompt{Attachments: []orchestrator.Attachment{{Path: "/a.png", Name: "a.png"}}}},
		"voice":   {},
	} {
		turn.ID, turn.Session, turn.Prompt.Conversation, turn.Prompt.Person = id, "s1", here, 1
		r.turn(turn, "")
	}
	r.command("")
	r.press("(no text)")
	r.press("Fork")
	for _, want := range []string{"🗜 Compact the context", "📎 a.png", "(no text)"} {
		r.data(want)
	}
}

// The page of a session that is not the current one asks for its title, and a reply renames that session.
func TestRenameOnThePageOfASession(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "Old", [2]string{"first?", "one"})
	r.session(here, "s2", "Current", [2]string{"second?", "two"})
	r.command("")
	r.press("Old")
	r.press("Rename")
	r.shows(`Reply to this message with the new title of "Old".`)
	if _, ok, err := r.screen.Replied(t.Context(), owner, question+1, "another message"); ok || err != nil {
		t.Errorf("a reply to another message is taken, %v", err)
	}
	member := owner
	member.Role = orchestrator.RoleMember
	if _, ok, err := r.screen.Replied(t.Context(), member, question, "by a member"); ok || err != nil {
		t.Errorf("a reply of a member is taken, %v", err)
	}
	renamed, ok, err := r.screen.Replied(t.Context(), owner, question, "New")
	says, shows := renamed.Answer, renamed.Page.Text
	if !ok || err != nil || !renamed.Done || says != "This session is now called: New" ||
		!strings.HasPrefix(shows, "New\n") {
		t.Errorf("it says %q, %v, and shows %q, %v", says, ok, shows, err)
	}
	// If ductor dies before the reply is marked as handled, the same reply comes again. It must not become a prompt.
	if _, ok, err := r.screen.Replied(t.Context(), owner, question, "New"); !ok || err != nil {
		t.Errorf("the repeated reply is taken: %v, %v", ok, err)
	}
	r.must(r.screen.Settle(t.Context(), here, question, renamed))
	if _, ok, err := r.screen.Replied(t.Context(), owner, question, "once more"); ok || err != nil {
		t.Errorf("a second reply is taken, %v", err)
	}
	r.press("Back")
	r.press("Rename")
	r.must(r.db.DeleteSession(t.Context(), "s1"))
	renamed, ok, err = r.screen.Replied(t.Context(), owner, question, "too late")
	if !ok || err != nil || renamed.Done {
		t.Errorf("a title for a deleted session: %+v, %t, %v", renamed, ok, err)
	}
	r.press("Back")
	if _, ok, err := r.screen.Replied(t.Context(), owner, question, "after Back"); ok || err != nil {
		t.Errorf("a reply after Back is taken, %v", err)
	}
}

// A session gets back the title that a text replaced, unless it was renamed again or deleted since.
func TestUndoRename(t *testing.T) {
	for name, c := range map[string]struct {
		since func(r *rig) error
		role  orchestrator.UserRole
		says  string
		title string
	}{
		"restored":    {nil, orchestrator.RoleUser, "This session has its old title again: Old", "Old"},
		"by a member": {nil, orchestrator.RoleMember, "", "New"},
		"renamed since": {func(r *rig) error {
			s, err := r.db.Session(t.Context(), "s1")
			s.Title = "Newer"
			return errors.Join(err, r.db.SaveSession(t.Context(), s))
		}, orchestrator.RoleUser, "This session is now called: Newer", "Newer"},
		"deleted since": {func(r *rig) error { return r.db.DeleteSession(t.Context(), "s1") },
			orchestrator.RoleUser, "no longer exists", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.session(here, "s1", "Old", [2]string{"first?", "one"})
			r.session(here, "s2", "Current", [2]string{"second?", "two"})
			r.command("")
			r.press("Old")
			r.press("Rename")
			sent := owner
			sent.Updates = []int64{4}
			renamed, ok, err := r.screen.Replied(t.Context(), sent, question, "New")
			if !ok || err != nil {
				t.Fatal(renamed, ok, err)
			}
			r.must(r.screen.Settle(t.Context(), here, question, renamed))
			if c.since != nil {
				r.must(c.since(r))
			}
			by := owner
			by.Role = c.role
			if got, err := r.screen.Undo(t.Context(), by, question, 5); got != "" || err != nil {
				t.Errorf("another text changed it: %q, %v", got, err)
			}
			for range 2 {
				got, err := r.screen.Undo(t.Context(), by, question, 4)
				if !strings.Contains(got, c.says) || (got == "") != (c.says == "") || err != nil {
					t.Errorf("it says %q, %v", got, err)
				}
			}
			if s, _ := r.db.Session(t.Context(), "s1"); s.Title != c.title {
				t.Errorf("the title is %q", s.Title)
			}
		})
	}
}

// After a tap on another button, the user's next message is no title.
func TestAnotherButtonEndsTheWaitForATitle(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "Old", [2]string{"first?", "one"})
	expected := func() int {
		t.Helper()
		id, _, err := message.Expected(t.Context(), r.db, owner)
		r.must(err)
		return id
	}
	r.command("")
	r.press("Old")
	r.press("Rename")
	if got := expected(); got != question {
		t.Errorf("message %d expects the title", got)
	}
	if _, err := r.screen.Press(t.Context(), owner, question+1, "l::"); err != nil {
		t.Fatal(err)
	}
	if got := expected(); got != 0 {
		t.Errorf("after a tap on another message, message %d expects the title", got)
	}
}

func TestExport(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "Fix it", [2]string{"first?", "one"}, [2]string{"second?", "two"})
	r.command("")
	r.press("Fix it")
	r.press("📄 Export")
	want := "# Fix it\n\n/src, 2026-03-01T12:00:00Z\n\n## 2026-03-01T12:00:00Z\n\nfirst?\n\n### claude opus\n\none\n\n## 2026-03-01T12:00:00Z\n\nsecond?\n\n### claude opus\n\ntwo\n"
	if d := cmp.Diff(message.File{Name: "session.md", Content: want}, fileOf(t, r.answer)); d != "" {
		t.Error(d)
	}
	r.pressBy(owner, "j:s1:") // a button of an older message
	r.said("JSON files of sessions are gone")
}

func TestPutAsideAndDelete(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "Old one", [2]string{"a", "b"})
	r.session(here, "s2", "Current one", [2]string{"c", "d"})
	r.command("")
	r.press("Old one")
	old := r.data("🗑")
	r.press("🗄")
	r.said("Archived.")
	r.command("")
	if strings.Contains(r.page.Text, "Old one") {
		t.Errorf("it is still listed: %s", r.page.Text)
	}
	r.command("archived")
	r.shows("Old one")
	r.press("Old one")
	r.press("🗑")
	r.shows(`Delete "Old one" and all that was said in it?`)
	member := owner
	member.Role = orchestrator.RoleMember
	if _, err := r.screen.Press(t.Context(), member, question, r.data("🗑")); err == nil {
		t.Error("a member deleted it")
	}
	r.press("🗑")
	r.said("Deleted.")
	r.pressBy(owner, old)
	r.said("That session no longer exists.")
	r.command("")
	r.press("Current one")
	r.press("🗑")
	r.said("Your next message continues this session.")
	if strings.Contains(r.page.Text, "Delete") {
		t.Errorf("it asks before it refuses: %s", r.page.Text)
	}
}

// The answer to a press of Delete names the fork that needs the session, unless it is in another chat. A press of an
// older question gets the same answer.
func TestAForkPreventsItsDeletion(t *testing.T) {
	r := newRig(t)
	r.session(here, "s1", "Old one", [2]string{"a", "b"})
	r.session(here, "s2", "Current one", [2]string{"c", "d"})
	r.command("")
	r.press("Old one")
	r.press("🗑")
	asked := r.data("🗑")
	turns, err := r.db.History(t.Context(), "s1", 1)
	r.must(err)
	fork := orchestrator.Session{ID: "s3", Conversation: here, Title: "My fork"}
	r.must(r.db.ForkSession(t.Context(), fork, turns[0].ID))
	r.pressBy(owner, asked)
	r.said(`The session "My fork" was forked from this one`)
	r.must(r.db.MoveSession(t.Context(), "s3", there))
	r.pressBy(owner, asked)
	r.said("A session in another chat was forked from this one")
	r.must(r.db.DeleteSession(t.Context(), "s3"))
	r.pressBy(owner, asked)
	r.said("Deleted.")
}

// Whatever data a button has, and whoever presses it, it neither changes nor shows another chat.
func TestNoButtonReachesAnotherChat(t *testing.T) {
	r := newRig(t)
	r.session(there, "s3", "Elsewhere", [2]string{"secret", "hidden"})
	before, err := r.db.Session(t.Context(), "s3")
	r.must(err)
	rapid.Check(t, func(rt *rapid.T) {
		data := rapid.SampledFrom(strings.Split("lorpamjntfdD?", "")).Draw(rt, "op") + ":" +
			rapid.SampledFrom([]string{"s3", "s3-1", "", "x"}).Draw(rt, "key") + ":" + rapid.SampledFrom([]string{"", "n0 ", "a9 secret", "1", "n0 \"*"}).Draw(rt, "arg")
		a, err := r.screen.Press(t.Context(), owner, question, data)
		if err != nil {
			rt.Fatalf("%s: %v", data, err)
		}
		if all := a.Text + a.Edit.Text + fileOf(t, a).Content; strings.Contains(all, "hidden") || strings.Contains(all, "Elsewhere") {
			rt.Fatalf("%s shows %q", data, all)
		}
		now, err := r.db.Session(t.Context(), "s3")
		if d := cmp.Diff(before, now); err != nil || d != "" {
			rt.Fatalf("%s changed it: %v %s", data, err, d)
		}
	})
}

// A viewer sees only the sessions of the conversation.
func TestAViewerListsNoSessionsOfOtherPlaces(t *testing.T) {
	r := newRig(t)
	viewer := owner
	viewer.Role = orchestrator.RoleViewer
	for _, data := range []string{"e:0:", "x:s1:", "X:s1:", "T::", "R:claude:x"} {
		if a, err := r.screen.Press(t.Context(), viewer, question, data); !errors.Is(err, orchestrator.ErrNotAllowed) {
			t.Errorf("%s: %+v, %v", data, a, err)
		}
	}
}

// fileOf returns the file that an answer sends, or the zero value.
func fileOf(t testing.TB, a tgapi.Answer) message.File {
	if len(a.Messages) == 0 {
		return message.File{}
	}
	var c message.Content
	if err := json.Unmarshal(a.Messages[0].Content, &c); err != nil {
		t.Fatal(err)
	}
	return c.Files[0]
}

// The button that continues the newest session in a folder ignores other folders, other chats and archived sessions. A
// pinned session does not count as newer.
func TestTheNewestSessionOfAFolder(t *testing.T) {
	r := newRig(t)
	if b, ok := r.screen.ContinueButton(t.Context(), here, "/src"); ok {
		t.Errorf("without sessions: %+v", b)
	}
	for i, s := range []orchestrator.Session{
		{ID: "newest", Conversation: here, Title: "Fix the login " + strings.Repeat("page ", 20), Dir: "/src",
			Used: noon.Add(2 * time.Hour)},
		{ID: "pinned", Conversation: here, Title: "Pinned", Dir: "/src", Used: noon, Pinned: true},
		{ID: "archived", Conversation: here, Title: "Archived", Dir: "/src", Archived: true,
			Used: noon.Add(3 * time.Hour)},
		{ID: "folder", Conversation: here, Title: "Folder", Dir: "/src/docs", Used: noon.Add(4 * time.Hour)},
		{ID: "chat", Conversation: there, Title: "Chat", Dir: "/src", Used: noon.Add(5 * time.Hour)},
	} {
		s.Person, s.Created = 1, noon.Add(time.Duration(i)*time.Minute)
		r.must(r.db.CreateSession(t.Context(), s))
		r.must(r.db.SaveSession(t.Context(), s))
	}
	b, ok := r.screen.ContinueButton(t.Context(), here, "/src")
	if !ok || b.Text != "▶ Continue “Fix the login page page page page page p […]”" {
		t.Fatalf("%+v, %v", b, ok)
	}
	r.pressBy(owner, strings.TrimPrefix(b.Data, screen.Action+":"))
	r.said("Your next message continues with the agent: Fix the login page")
	if c, err := r.db.Conversation(t.Context(), here); err != nil || c.Session != "newest" {
		t.Errorf("the conversation continues %q, %v", c.Session, err)
	}
}
