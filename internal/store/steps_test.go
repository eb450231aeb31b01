package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ductor/heartbeat"
	"ductor/orchestrator"
)

// Steps are listed without outputs, stored again in place of those before, and go by their age and with their session.
func TestStepsOfTurns(t *testing.T) {
	db, ctx, code := newDB(t), t.Context(), 3
	session := newSession(t, db, "s", chatA, noon)
	runTurn(t, db, orchestrator.Turn{ID: "t", Session: session.ID, Prompt: orchestrator.Prompt{Conversation: chatA}, Queued: noon, Started: noon},
		orchestrator.Outcome{State: orchestrator.TurnDone, Ending: orchestrator.Ending{Steps: 2}})
	steps := []orchestrator.Step{
		{Number: 1, Tool: "Bash", Title: "false", Duration: time.Second, ExitCode: &code, Err: "no", Output: "out", Size: 3, Lost: 9},
		{Number: 2, Title: "a.go", Change: "add", Output: "@@", Size: 2},
	}
	must(t, db.SaveSteps(ctx, "t", noon, steps[:1]))
	must(t, db.SaveSteps(ctx, "t", noon, steps))
	must(t, db.SaveSteps(ctx, "gone", noon, steps))
	same(t, "a step", get[orchestrator.Step](t)(db.Step(ctx, "t", 1)), steps[0])
	listed := slices.Clone(steps)
	listed[0].Output, listed[1].Output = "", ""
	same(t, "the list", get[[]orchestrator.Step](t)(db.StepsOf(ctx, "t")), listed)
	if _, err := db.Step(ctx, "t", 3); !errors.Is(err, orchestrator.ErrNoStep) {
		t.Errorf("a step that is not there: %v", err)
	}
	trimmed := get[heartbeat.Trimmed](t)(db.Steps().Trim(ctx, heartbeat.Cut{Bytes: 120}))
	same(t, "what is left", [2]int64{trimmed.Items, trimmed.LeftItems}, [2]int64{1, 1})
}
