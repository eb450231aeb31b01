package conversation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ductor/orchestrator"
)

// A session that a user moves to another chat is resumed there. In the old chat the next prompt and a repeat start
// another session, and a running turn keeps the old one.
func TestASessionThatMovesRunsInOneChat(t *testing.T) {
	h := open(t)
	r := h.submit(t, here, "old")
	h.await(t, "done old")
	h.awaitEnded(t, r.Turn)
	sessions, err := h.Sessions(t.Context(), here)
	if err != nil || len(sessions) != 1 || sessions[0].Person != 1 {
		t.Fatalf("%+v, %v", sessions, err)
	}
	s := sessions[0]
	h.eventually(t, "it is delivered", func() bool { return !errors.Is(h.Move(t.Context(), s, there), orchestrator.ErrSessionInUse) })
	if !slices.ContainsFunc(h.chat.log(), func(line string) bool { return strings.Contains(line, "continues in another one") }) {
		t.Errorf("the old chat is told %q", h.chat.log())
	}
	s.Conversation = there
	if err := h.Resume(t.Context(), s, orchestrator.AgentEnv{}); err != nil {
		t.Fatal(err)
	}
	h.submit(t, there, "further")
	h.await(t, "done further")
	if got := h.last().Resume; got != "native-claude" {
		t.Errorf("in the new chat it resumes %q", got)
	}
	h.submit(t, here, "anew")
	h.await(t, "done anew")
	if got := h.last(); got.Resume != "" || got.Session == string(s.ID) {
		t.Errorf("in the old chat it resumes %q of %s", got.Resume, got.Session)
	}
	if _, err := h.Choose(t.Context(), r.Turn, orchestrator.ActionAgain, orchestrator.Press{Conversation: here, Person: 1, Role: orchestrator.RoleUser}); err != nil {
		t.Fatal(err)
	}
	h.eventually(t, "the repeat is asked", func() bool { return h.last().Prompt == "old" })
	if got := h.last(); got.Session == string(s.ID) {
		t.Error("a repeat runs in the session that moved")
	}
}
