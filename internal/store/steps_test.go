package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ductor/heartbeat"
	"ductor/orchestrator"
)

// Steps are listed without outputs, replaced by the next SaveSteps, and deleted by age and with their session.
func TestStepsOfTurns(t *testing.T) {
	db, ctx, code := newDB(t), t.Context(), 3
	session := newSession(t, db, "s", chatA, noon)
	runTurn(t, db, orchestrator.Turn{ID: "t", Session: session.ID, Prompt: orchestrator.Prompt{Conversation: chatA},
		Queued: noon, Started: noon},
		orchestrator.Outcome{State: orchestrator.TurnDone, Ending: orchestrator.Ending{Steps: 2}})
	steps := []orchestrator.Step{
		{Number: 1, Tool: "Bash", Title: "false", Duration: time.Second, ExitCode: &code, Err: "no", Output: "out",
			Size: 3, Lost: 9, Offset: 7},
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
		t.Errorf("a missing step: %v", err)
	}
	trimmed := get[heartbeat.TrimStats](t)(db.Steps().Trim(ctx, heartbeat.Cutoff{Bytes: 120}))
	same(t, "what is left", [2]int64{trimmed.Items, trimmed.LeftItems}, [2]int64{1, 1})
}

// Changes of turns are listed with the checkpoints of the conversation. Only whether they are undone and committed can
// change. OldChanges lists them by age until they are deleted.
func TestChangesOfTurns(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	var store orchestrator.ChangeStore = db
	turn := orchestrator.TurnChanges{
		ID: "t1", Conversation: chatA, Session: "s", Title: "Fix it", At: noon, Sandbox: "box",
		Snapshot: orchestrator.Snapshot{Trees: []orchestrator.SnapshotTree{{Dir: "/p", Before: "a", After: "b"}}},
		Changed:  orchestrator.Changed{Files: 2, Added: 3, Removed: 4, Ignored: true},
	}
	point := orchestrator.TurnChanges{ID: "c1", Conversation: chatA, Session: "other", Title: "good",
		At: noon.Add(time.Hour), Checkpoint: true, Snapshot: turn.Snapshot}
	other := orchestrator.TurnChanges{ID: "t2", Conversation: chatA, Session: "other", At: noon.Add(2 * time.Hour)}
	for _, c := range []orchestrator.TurnChanges{turn, point, other} {
		must(t, store.SaveChanges(ctx, c))
	}
	turn.Undone, turn.Commit = true, "c0ffee"
	must(t, store.SaveChanges(ctx, turn))
	same(t, "a turn", get[orchestrator.TurnChanges](t)(store.ChangesOf(ctx, "t1")), turn)
	same(t, "the list", get[[]orchestrator.TurnChanges](t)(store.ListChanges(ctx, chatA, "s", 9)),
		[]orchestrator.TurnChanges{point, turn})
	same(t, "the old", get[[]orchestrator.TurnChanges](t)(store.OldChanges(ctx, noon.Add(time.Minute), 9)),
		[]orchestrator.TurnChanges{turn})
	must(t, store.DeleteChanges(ctx, "t1"))
	if _, err := store.ChangesOf(ctx, "t1"); !errors.Is(err, orchestrator.ErrNoChanges) {
		t.Errorf("a turn that is forgotten: %v", err)
	}
	if all := get[[]orchestrator.TurnChanges](t)(store.ListChanges(ctx, orchestrator.ConversationID{Chat: 99}, "s",
		9)); len(all) != 0 {
		t.Errorf("another chat has %+v", all)
	}
}
