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
}
