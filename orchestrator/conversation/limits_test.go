package conversation_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// A user who chooses a permission mode sees which part of it the agent does not support.
func TestWhatTheAgentCannotDoIsSaid(t *testing.T) {
	h := open(t)
	p, err := h.Permissions(t.Context(), here)
	if err != nil || p.Agent != "claude" || len(p.Cannot) != 1 || p.Cannot[cli.Plan] != "it has no plan mode" {
		t.Errorf("permissions are %+v, %v", p, err)
	}
}

type jobs = orchestrator.Jobs // so that its name differs from the method

// laterJobs has the IDs of its jobs.
type laterJobs struct {
	jobs
	ids []orchestrator.JobID
}

func (l *laterJobs) Jobs(context.Context, orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	return nil, nil
}

func (l *laterJobs) Job(_ context.Context, id orchestrator.JobID,
	_ orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	if !slices.Contains(l.ids, id) {
		return orchestrator.JobStatus{}, orchestrator.ErrNoJob
	}
	return orchestrator.JobStatus{}, nil
}

func (l *laterJobs) AddJob(_ context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	l.ids = append(l.ids, j.ID)
	return orchestrator.JobStatus{}, nil
}

func (l *laterJobs) DeleteJob(_ context.Context, id orchestrator.JobID, _ orchestrator.Press) error {
	l.ids = slices.DeleteFunc(l.ids, func(other orchestrator.JobID) bool { return other == id })
	return nil
}

// If a turn cannot be stopped, the press that postpones it leaves no job of its own. The job of an earlier press stays.
func TestATurnThatIsPostponedTwice(t *testing.T) {
	for _, before := range []int{0, 1} {
		later := &laterJobs{}
		h := openAt(t, filepath.Join(t.TempDir(), "ductor.db"), func(o *conversation.Options) { o.Jobs = later })
		h.agent.reply = untilAborted
		_, err := h.db.MergeLimits(t.Context(), cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{{
			Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.9, Resets: h.clock.now().Add(time.Hour),
		}}}, h.clock.now())
		if err != nil {
			t.Fatal(err)
		}
		id := h.submit(t, here, "long").Turn
		h.awaitAsked(t, 1)
		earlier := by(owner, here)
		earlier.Updates = []int64{0} // of before the turn, so that it cannot stop the turn
		if before > 0 {
			later.ids = []orchestrator.JobID{orchestrator.JobID("later-" + string(id))}
		}
		_, err = h.Choose(t.Context(), id, orchestrator.ActionLater, earlier)
		if !errors.Is(err, orchestrator.ErrNotAllowed) || len(later.ids) != before {
			t.Errorf("with %d jobs before: %v, and %q are left", before, err, later.ids)
		}
		receipt, err := h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here))
		if err != nil || receipt.Turn != id || len(later.ids) != 1 {
			t.Errorf("with %d jobs before: %+v, %v, and %q are left", before, receipt, err, later.ids)
		}
	}
}
