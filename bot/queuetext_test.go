package bot

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

func TestAQueueCardSaysWhichJobWaits(t *testing.T) {
	job := orchestrator.Turn{Wants: orchestrator.Wants{Title: "⏰ CI report"}}
	if got, want := (&queueCards{}).text(&queueCard{turn: job, ahead: 2}), "⏰ CI report\n⏳ Queued, 2 ahead."; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	if got, want := (&queueCards{}).text(&queueCard{ahead: 1}), "⏳ Queued, next in line."; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	for state, want := range map[orchestrator.TurnState]string{
		orchestrator.TurnCancelled: "⏰ CI report\n✖ Cancelled: this message will not run.",
		orchestrator.TurnSteered:   "⏰ CI report\n↪ Handed to the agent while it works.",
	} {
		job.State = state
		if got := (&queueCards{}).content(&queueCard{turn: job, over: true}).Text.Text; got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}

// If a group gets a new ID, the cards of its waiting turns change places under the new ID.
func TestQueueCardsOfAGroupThatMoved(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		const moved = -1000000000100
		waits := func(id cli.TurnID, chat int64) orchestrator.Turn {
			in := orchestrator.ConversationID{Chat: chat}
			return orchestrator.Turn{ID: id, Prompt: orchestrator.Prompt{Conversation: in}}
		}
		cards := r.callbacks.queue
		for i, id := range []cli.TurnID{"a", "b", "c"} {
			cards.queued(waits(id, group), i+1, func() string { return "" })
		}
		cards.queued(waits("other", 7), 2, func() string { return "" })
		if err := r.Moved(t.Context(), group, moved); err != nil {
			t.Fatal(err)
		}
		cards.promote(orchestrator.ConversationID{Chat: moved}, "b")
		cards.unqueued(waits("a", moved))
		cards.mu.Lock()
		defer cards.mu.Unlock()
		for id, want := range map[cli.TurnID]int{"b": 1, "c": 2, "other": 2} {
			if got := cards.cards[id].ahead; got != want {
				t.Errorf("%d turns are before %s, want %d", got, id, want)
			}
		}
	})
}
