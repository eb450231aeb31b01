package edits

import (
	"context"
	"log/slog"
	"testing"

	"ductor/bot/bottest"
	"ductor/cli"
	"ductor/orchestrator"
)

// idle is a desk whose turns have all ended.
type idle struct{}

func (idle) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return orchestrator.Status{}, nil
}

func (idle) Restart(context.Context, cli.TurnID, string, orchestrator.Press) (orchestrator.Receipt, error) {
	return orchestrator.Receipt{}, orchestrator.ErrNoTurn
}

// Each press that is too late to start over gets the same answer.
func TestStartingOverTooLateTwice(t *testing.T) {
	prompts := NewPrompts(bottest.NewJournal(), nil, nil, slog.New(slog.DiscardHandler))
	s := New(Options{Desk: idle{}, Prompts: prompts})
	if err := prompts.save(t.Context(), "a", editedPrompt{Text: "go left", Offer: "offer"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := s.Restart(t.Context(), orchestrator.Press{}, "a")
		if err != nil || a.Text != "Too late: it has ended." || a.Edit.Text == "" {
			t.Errorf("it says %+v, %v", a, err)
		}
	}
}

// The answer to an edit of a prompt that has run comes once for each message, and only if the user's words changed.
func TestEditsOfPromptsThatRan(t *testing.T) {
	prompts := NewPrompts(nil, nil, nil, nil)
	here, there := orchestrator.ConversationID{Chat: 1}, orchestrator.ConversationID{Chat: 1, Topic: 2}
	ended := func(message int, text string, answered bool) {
		prompt := orchestrator.Prompt{Conversation: here, Message: message, Text: text}
		prompts.remember(orchestrator.Turn{Prompt: prompt}, answered)
	}
	answers := func(in orchestrator.ConversationID, message int, words string) bool {
		by := orchestrator.Press{Conversation: in}
		return prompts.answer(Edit{By: by, Message: message, Prompt: message, Text: words, Words: words})
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
		if got := answers(c.in, c.message, c.words); got != c.want {
			t.Errorf("message %d in %v, edited to %q: %v", c.message, c.in, c.words, got)
		}
	}
	ended(1, "go right", false) // it ran again
	if answers(here, 1, "go up") {
		t.Error("a message gets a second answer")
	}
	for i := range 3 * mostRan {
		ended(10+i, "x", false)
	}
	if n := len(prompts.ran); n > mostRan {
		t.Errorf("%d prompts are remembered", n)
	}
}
