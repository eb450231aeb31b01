package sessions_test

import (
	"errors"
	"strings"
	"testing"

	"ductor/orchestrator"
)

// A user moves a session from another chat, after a confirmation. It is in one chat at a time, and no other user can
// access it.
func TestASessionIsTakenOver(t *testing.T) {
	r := newRig(t)
	r.session(there, "s1", "Away", [2]string{"where is the parser?", "elsewhere"})
	r.session(here, "s2", "At home", [2]string{"a", "b"})
	r.command("")
	if strings.Contains(r.page.Text, "Away") {
		t.Errorf("it is listed at once: %s", r.page.Text)
	}
	r.press("From other chats")
	r.shows("Your sessions in other chats", "Away")
	if strings.Contains(r.page.Text, "At home") {
		t.Errorf("a session of this chat is among others: %s", r.page.Text)
	}
	r.press("Away")
	r.shows(`Move "Away" here?`)
	if conv, err := r.db.Conversation(t.Context(), there); err != nil || conv.Session != "s1" {
		t.Errorf("before the answer the other chat has %q, %v", conv.Session, err)
	}
	other := owner
	other.Person = 2
	take := r.data("Move here")
	r.pressBy(other, take)
	r.said("no longer exists")
	member := owner
	member.Role = orchestrator.RoleMember
	if _, err := r.screen.Press(t.Context(), member, question, take); !errors.Is(err, orchestrator.ErrNotAllowed) {
		t.Errorf("a member takes it over: %v", err)
	}
	r.pressBy(owner, take)
	r.said("Your next message continues with Claude: Away")
	r.shows("Away", "where is the parser?")
	if conv, err := r.db.Conversation(t.Context(), there); err != nil || conv.Session != "" {
		t.Errorf("the other chat has %q, %v", conv.Session, err)
	}
	r.command("parser")
	r.shows("Away", "“")
	r.pressBy(other, r.data("Away")) // now it belongs to this chat, whose users share it
	r.shows("Away", "Your next message continues it.")
	r.command("")
	r.press("From other chats")
	r.shows("You have no sessions in other chats.")
}

// A session with a running turn stays where it is. In a group the user is asked before others can read titles.
func TestATakeOverThatIsRefused(t *testing.T) {
	r := newRig(t)
	r.session(there, "s1", "Away", [2]string{"x", "y"})
	waiting := orchestrator.Turn{ID: "w", Session: "s1", State: orchestrator.TurnQueued, Queued: noon, Prompt: orchestrator.Prompt{Conversation: there, Person: 1, Text: "z"}}
	r.must(r.db.EnqueueTurn(t.Context(), waiting))
	group := owner
	group.Conversation = orchestrator.ConversationID{Chat: -9}
	r.command("")
	r.pressBy(group, r.data("From other chats"))
	r.shows("Everyone in this group will see the titles")
	if strings.Contains(r.page.Text, "Away") {
		t.Errorf("it is shown at once: %s", r.page.Text)
	}
	r.pressBy(group, r.data("Show them"))
	r.pressBy(group, r.data("Away"))
	r.shows("everyone in this group can read and export")
	r.pressBy(group, r.data("Move here"))
	r.said("This session can't move now")
	if s, err := r.db.Session(t.Context(), "s1"); err != nil || s.Conversation != there {
		t.Errorf("it is in %v, %v", s.Conversation, err)
	}
	if err := r.db.MoveSession(t.Context(), "none", here); !errors.Is(err, orchestrator.ErrNoSession) {
		t.Errorf("none is moved: %v", err)
	}
}
