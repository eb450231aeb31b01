package bot

import (
	"testing"

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
