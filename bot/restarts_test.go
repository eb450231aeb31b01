package bot

import (
	"log/slog"
	"testing"

	"ductor/bot/updates"
	"ductor/orchestrator"
)

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
