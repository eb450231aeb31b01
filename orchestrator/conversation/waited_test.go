package conversation_test

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// The duration of an outcome is the time that the user waited: from the message's arrival, through the queue and a
// restart.
func TestTheTimeOfATurnIsTheTimeTheUserWaited(t *testing.T) {
	t.Run("in the queue", func(t *testing.T) {
		h := open(t)
		end := make(chan struct{})
		h.agent.reply = untilClosed(end)
		h.submit(t, here, "first")
		h.awaitAsked(t, 1)
		second, err := h.Submit(t.Context(), orchestrator.Prompt{
			Conversation: here, Person: 1, Text: "second", Arrived: h.clock.now().Add(-2 * time.Second),
		}, orchestrator.Wants{})
		if err != nil {
			t.Fatal(err)
		}
		h.clock.advance(10 * time.Second)
		close(end)
		h.await(t, "done second")
		h.waited(t, second.Turn, 12*time.Second)
	})
	t.Run("by a clock that was set back since the message came", func(t *testing.T) {
		h := open(t)
		end := make(chan struct{})
		h.agent.reply = untilClosed(end)
		receipt, err := h.Submit(t.Context(), orchestrator.Prompt{
			Conversation: here, Person: 1, Text: "prompt", Arrived: h.clock.now().Add(time.Hour),
		}, orchestrator.Wants{})
		if err != nil {
			t.Fatal(err)
		}
		h.awaitAsked(t, 1)
		h.clock.advance(10 * time.Second)
		close(end)
		h.await(t, "done prompt")
		h.waited(t, receipt.Turn, 10*time.Second)
	})
	t.Run("over a restart", func(t *testing.T) {
		h := successor(t, cli.RemainsRun)
		turns, err := h.db.OpenTurns(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.clock.advance(time.Minute)
		h.recover(t)
		h.await(t, "done running")
		h.waited(t, turns[0].ID, time.Minute)
	})
}

func (h *house) waited(t *testing.T, id cli.TurnID, want time.Duration) {
	t.Helper()
	turn, err := h.db.Turn(t.Context(), id)
	if err != nil || turn.Outcome.Duration != want {
		t.Errorf("the user is told to have waited %s, want %s (%v)", turn.Outcome.Duration, want, err)
	}
}
