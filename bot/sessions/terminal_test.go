package sessions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	screen "ductor/bot/sessions"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

func stored() []cli.StoredSession {
	return []cli.StoredSession{
		{Agent: "codex", ID: "thread-1", Dir: "/src", First: "fix the lexer", Last: "and test it", Used: noon.Add(time.Hour)},
		{Agent: "claude", ID: "1-2-3", Dir: "/src", First: "write docs", Last: "write docs", Used: noon},
	}
}

// A session of the terminal is listed with its prompts. One press continues it, and from then on it is ductor's.
// /terminal leads back.
func TestFromTheTerminalAndBack(t *testing.T) {
	r := newRig(t)
	terminal := func() string {
		t.Helper()
		text, err := r.screen.Terminal(t.Context(), owner, "")
		r.must(err)
		return text.Text
	}
	if said := terminal(); !strings.Contains(said, "There is no session to continue yet") {
		t.Errorf("before a session it says %q", said)
	}
	r.agents.stored = stored()
	r.command("")
	r.press("From the terminal")
	r.shows("Terminal sessions in /src", "1. Codex, 2 h 0 min ago\n    “fix the lexer”\n    … “and test it”", "2. Claude, 3 h 0 min ago\n    “write docs”")
	if strings.Count(r.page.Text, "write docs") != 1 {
		t.Errorf("the only prompt is shown twice: %s", r.page.Text)
	}
	codex := r.data("Codex")
	r.press("Codex")
	r.said("Your next message continues: fix the lexer")
	r.shows("fix the lexer", "2 h 0 min ago, /src", "Codex continues it with your next message")
	if strings.Contains(r.page.Text, "0 messages") {
		t.Errorf("what is not there is counted: %s", r.page.Text)
	}
	conv, err := r.db.Conversation(t.Context(), here)
	r.must(err)
	s, err := r.db.Session(t.Context(), conv.Session)
	r.must(err)
	if own := s.AgentSessions[orchestrator.AgentEnv{Agent: "codex"}]; own.ID != "thread-1" || !own.Terminal || conv.Agent != "codex" || s.Title != "fix the lexer" || s.Totals.Messages != 0 {
		t.Errorf("the session is %+v of %q", s, conv.Agent)
	}
	if said := terminal(); !strings.HasSuffix(said, "cd /src && codex --resume thread-1") || r.agents.released != 1 {
		t.Errorf("it says %q, and released %d", said, r.agents.released)
	}
	r.pressBy(owner, codex)
	r.said("That session no longer exists.")
	r.press("From the terminal")
	if strings.Contains(r.page.Text, "codex") {
		t.Errorf("what is ductor's is listed: %s", r.page.Text)
	}
	member := owner
	member.Role = orchestrator.RoleMember
	_, err = r.screen.Press(t.Context(), member, question, r.data("Claude"))
	if !errors.Is(err, orchestrator.ErrNotAllowed) {
		t.Errorf("a member continues it: %v", err)
	}
	if text, err := r.screen.Terminal(t.Context(), member, ""); err != nil || !strings.Contains(text.Text, "Only") {
		t.Errorf("a member gets %q, %v", text.Text, err)
	}
}

// The button below a terminal's report answers with a message, because the report stays.
func TestAReportStaysAboveItsSession(t *testing.T) {
	r := newRig(t)
	r.agents.stored = stored()
	b, ok := screen.TakeOver(lang.Language("en").Printer(), r.agents.stored[0].Agent, r.agents.stored[0].ID)
	if !ok {
		t.Fatal("there is no button")
	}
	_, data, _ := strings.Cut(b.Data, ":")
	a, err := r.screen.Press(t.Context(), owner, question, data)
	r.must(err)
	if a.Edit.Text != "" || len(a.Messages) != 1 || !strings.Contains(string(a.Messages[0].Content), "continues it with your next message") {
		t.Errorf("the press gives %+v", a)
	}
}

// In a group the user is asked before everyone can read the prompts. If homes are separate or nothing is stored, the
// page explains that.
func TestFromTheTerminalSaysWhatIsNotThere(t *testing.T) {
	r := newRig(t)
	r.command("")
	r.press("From the terminal")
	r.shows("Your agents have no other sessions")
	r.agents.err = errors.ErrUnsupported
	r.press("‹")
	r.press("From the terminal")
	r.shows("Each session has a home folder of its own here")
	r.agents.err, r.agents.stored = nil, stored()
	group := owner
	group.Conversation = orchestrator.ConversationID{Chat: -7}
	r.press("‹")
	r.pressBy(group, r.data("From the terminal"))
	r.shows("Everyone in this group will read")
	if strings.Contains(r.page.Text, "lexer") {
		t.Errorf("it is shown at once: %s", r.page.Text)
	}
	r.pressBy(group, r.data("Show them"))
	r.shows("fix the lexer")
}
