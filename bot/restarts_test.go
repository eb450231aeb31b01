package bot

import (
	"log/slog"
	"testing"

	"ductor/bot/updates"
	"ductor/orchestrator"
)

// The answer to an edit of a prompt that has run comes once for each message, and only if the user's words changed.
func TestEditsOfPromptsThatRan(t *testing.T) {
	var ran ranPrompts
	here, there := orchestrator.ConversationID{Chat: 1}, orchestrator.ConversationID{Chat: 1, Topic: 2}
	ended := func(message int, text string, answered bool) {
		ran.remember(orchestrator.Turn{Prompt: orchestrator.Prompt{Conversation: here, Message: message, Text: text}}, answered)
	}
	ended(0, "of a job", false)
	ended(1, "[In reply to you]\n> a quote\n\ngo left", false)
	ended(2, "offered before", true)
	for _, c := range []struct {
		in      orchestrator.ConversationID
		message int
		words   string
		want    bool
	}{
		{here, 0, "x", false}, {here, 1, "go left", false}, {there, 1, "go right", false}, {here, 1, "go right", true},
		{here, 1, "go back", false}, {here, 2, "x", false}, {here, 3, "x", false},
	} {
		if got := ran.answer(c.in, c.message, c.words, c.words); got != c.want {
			t.Errorf("message %d in %v, edited to %q: %v", c.message, c.in, c.words, got)
		}
	}
	ended(1, "go right", false) // it ran again
	if ran.answer(here, 1, "go up", "go up") {
		t.Error("a message gets a second answer")
	}
	for i := range 3 * mostRan {
		ended(10+i, "x", false)
	}
	if n := len(ran.prompts); n > mostRan {
		t.Errorf("%d prompts are remembered", n)
	}
}

// A press that is too late to start over says so each time.
func TestStartingOverTooLateTwice(t *testing.T) {
	journal := newJournalFake()
	desk, log := NewDeskFake(journal), slog.New(slog.DiscardHandler)
	r := &restarts{
		desk: desk, journal: journal, feedback: &voiceFake{},
		finisher: updates.NewFinisher(journal, stuckMessages(journal, log), log),
	}
	if err := r.save(t.Context(), "a", editedPrompt{Text: "go left", Offer: "offer"}); err != nil {
		t.Fatal(err)
	}
	desk.fail = orchestrator.ErrNoTurn
	for range 2 {
		if said, err := r.press(t.Context(), updates.Press{}, "a"); err != nil || said != "Too late: it has ended." {
			t.Errorf("it says %q, %v", said, err)
		}
	}
}
