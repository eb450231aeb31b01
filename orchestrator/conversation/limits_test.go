package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// A user who chooses a permission mode sees which part of it the agent does not support.
func TestWhatTheAgentCannotDoIsSaid(t *testing.T) {
	h := open(t)
	p, err := h.Permissions(t.Context(), here)
	if err != nil || p.Agent != "claude" || len(p.Cannot) != 1 || p.Cannot[cli.Plan].String() != "it has no plan mode" {
		t.Errorf("permissions are %+v, %v", p, err)
	}
}

type jobs = orchestrator.Jobs // so that its name differs from the method

// laterJobs stores jobs like the scheduler, but starts none.
type laterJobs struct {
	jobs
	db *store.DB
}

// open is a change of the options that stores the jobs in the database of the house.
func (l *laterJobs) open(o *conversation.Options) { l.db, o.Jobs = o.Store.(*store.DB), l }

func (l *laterJobs) Jobs(ctx context.Context, _ orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	return l.db.Jobs(ctx)
}

func (l *laterJobs) Job(ctx context.Context, id orchestrator.JobID,
	_ orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	return l.db.Job(ctx, id)
}

func (l *laterJobs) AddJob(ctx context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	return orchestrator.JobStatus{}, l.db.SaveJob(ctx, j, time.Now().Add(time.Hour), time.Now())
}

func (l *laterJobs) DeleteJob(ctx context.Context, id orchestrator.JobID, _ orchestrator.Press) error {
	return l.db.DeleteJob(ctx, id)
}

// ids returns the IDs of the stored jobs.
func (l *laterJobs) ids(t *testing.T) (ids []orchestrator.JobID) {
	t.Helper()
	all, err := l.db.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range all {
		ids = append(ids, st.Job.ID)
	}
	return ids
}

// run stores that a run of a job is due.
func (l *laterJobs) run(t *testing.T, id orchestrator.JobID) orchestrator.JobRun {
	t.Helper()
	r := orchestrator.JobRun{ID: orchestrator.DueRun(id, time.Now()), Job: id, Cause: orchestrator.CauseSchedule,
		Due: time.Now(), StandsFor: 1, Attempt: 1, State: orchestrator.RunWaiting}
	if _, err := l.db.RecordRuns(t.Context(), id, []orchestrator.JobRun{r}, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

// If a turn cannot be stopped, the press that postpones it leaves no job of its own. The job of an earlier press stays.
func TestATurnThatIsPostponedTwice(t *testing.T) {
	for _, before := range []int{0, 1} {
		later := &laterJobs{}
		h := openAt(t, newPath(t), later.open)
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
			if _, err := later.AddJob(t.Context(), orchestrator.Job{ID: orchestrator.LaterJob(id)}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = h.Choose(t.Context(), id, orchestrator.ActionLater, earlier)
		if !errors.Is(err, orchestrator.ErrNotAllowed) || len(later.ids(t)) != before {
			t.Errorf("with %d jobs before: %v, and %q are left", before, err, later.ids(t))
		}
		receipt, err := h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here))
		if err != nil || receipt.Turn != id || len(later.ids(t)) != 1 {
			t.Errorf("with %d jobs before: %+v, %v, and %q are left", before, receipt, err, later.ids(t))
		}
	}
}

// A user can cancel a postponed prompt while the agent is still stopping. A message that the agent did not read is
// cancelled, too.
func TestAPostponedPromptIsCancelledWhileItsTurnStops(t *testing.T) {
	h, later := openAccounts(t)
	steered := make(chan cli.TurnID, 1)
	t.Cleanup(func() { close(steered) })
	h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
	h.agent.replies(func(ctx context.Context, who cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
		unread := <-steered
		result := cli.Cut(ctx, who)
		result.Steered.Unread = []cli.TurnID{unread}
		return result
	})
	long := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	unread := h.submit(t, here, "unread").Turn
	must(t, h.Steer(t.Context(), unread, by(1, here)))
	h.submit(t, here, "waiting")
	_, err := h.Choose(t.Context(), long, orchestrator.ActionLater, by(owner, here))
	must(t, err)
	if ids := later.ids(t); len(ids) != 1 {
		t.Fatalf("the jobs are %q", ids)
	}
	receipt, err := h.Choose(t.Context(), long, orchestrator.ActionDrop, by(owner, here))
	if ids := later.ids(t); err != nil || receipt.Turn != long || len(ids) > 0 {
		t.Errorf("%+v, %v, and the jobs are %q", receipt, err, ids)
	}
	h.agent.replies(echo)
	steered <- unread
	h.await(t, "done waiting")
	if diff := cmp.Diff([]string{"long", "waiting"}, h.agent.prompts()); diff != "" || len(later.ids(t)) > 0 {
		t.Errorf("what was asked: %s; the jobs are %q", diff, later.ids(t))
	}
}

// detaching detaches ductor from its agents as soon as a job is stored.
type detaching struct {
	*laterJobs
	detach func()
}

func (d detaching) AddJob(ctx context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	defer d.detach()
	return d.laterJobs.AddJob(ctx, j)
}

// detach detaches ductor from its agents, and does not wait for their turns.
func (h *house) detach(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Detach(ctx)
}

// If ductor ends before it has stopped the postponed turn, the agent goes on. A job would run the prompt a second time.
func TestATurnIsPostponedWhileDuctorEnds(t *testing.T) {
	later := &laterJobs{}
	var h *house
	h = openAt(t, newPath(t), func(o *conversation.Options) {
		later.open(o)
		o.Jobs = detaching{later, func() { h.detach(t) }}
	})
	h.agent.reply = untilAborted
	_, err := h.db.MergeLimits(t.Context(), cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{{
		Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.9, Resets: h.clock.now().Add(time.Hour),
	}}}, h.clock.now())
	must(t, err)
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	_, err = h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here))
	if !errors.Is(err, orchestrator.ErrShutdown) || len(later.ids(t)) > 0 {
		t.Errorf("the press is answered with %v, and the jobs are %q", err, later.ids(t))
	}
	h.await(t, "left long")
}

// If the disk is full when a turn is postponed, the turn ends, and its job stays: nothing else has the prompt.
func TestAFullDiskKeepsThePostponedPrompt(t *testing.T) {
	later, f := &laterJobs{}, &faulty{fail: map[string]int{}}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		later.open(o)
		f.DB, o.Store = later.db, f
	})
	h.agent.reply = untilAborted
	_, err := h.db.MergeLimits(t.Context(), cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{{
		Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.9, Resets: h.clock.now().Add(time.Hour),
	}}}, h.clock.now())
	must(t, err)
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	f.set("AbortTurns", 1)
	if _, err := h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here)); !errors.Is(err, errFull) {
		t.Errorf("the press is answered with %v", err)
	}
	h.await(t, "aborted long")
	if ids := later.ids(t); len(ids) != 1 {
		t.Errorf("the jobs are %q", ids)
	}
}

// A prompt that waits for a limit can run with another account now. Then its job is gone. Once the job has started, the
// prompt runs only there, even if a user deletes the job.
func TestAPromptThatWaitsForALimitRunsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*testing.T, *house, *laterJobs, orchestrator.JobID)
		want   error
		left   int
	}{
		"the job waits": {func(*testing.T, *house, *laterJobs, orchestrator.JobID) {}, nil, 0},
		"a user deleted the job": {func(t *testing.T, _ *house, later *laterJobs, id orchestrator.JobID) {
			if err := later.db.DeleteJob(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}, nil, 0},
		"the job is due": {func(t *testing.T, _ *house, later *laterJobs, id orchestrator.JobID) {
			later.run(t, id)
		}, orchestrator.ErrRepeated, 1},
		"the job ran and is deleted": {func(t *testing.T, h *house, later *laterJobs, id orchestrator.JobID) {
			later.run(t, id)
			h.order(t, order("job-1", "hello", orchestrator.Wants{Purpose: orchestrator.Purpose{Job: id}}))
			if err := later.db.DeleteJob(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}, orchestrator.ErrRepeated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			later := &laterJobs{}
			h := openAt(t, newPath(t), func(o *conversation.Options) {
				later.open(o)
				o.Orders, o.Limits = later.db, orchestrator.LimitWait
			})
			h.agent.instead.accounts = []cli.Account{"work"}
			h.agent.reply = h.limited
			id := h.submit(t, here, "hello").Turn
			h.await(t, "failed hello")
			if ids := later.ids(t); len(ids) != 1 || ids[0] != orchestrator.LaterJob(id) {
				t.Fatalf("the jobs are %q", ids)
			}
			c.before(t, h, later, orchestrator.LaterJob(id))
			_, err := h.Choose(t.Context(), id, asWork, by(owner, here))
			if !errors.Is(err, c.want) || len(later.ids(t)) != c.left || (h.account(t) == "work") != (c.want == nil) {
				t.Errorf("%v, the jobs are %q, and the account is %q", err, later.ids(t), h.account(t))
			}
			if c.want == nil {
				h.await(t, "done hello")
			}
		})
	}
}

// A prompt runs later as it would have run now: with its effort, and with its files.
func TestAPromptRunsLaterWithItsEffortAndFiles(t *testing.T) {
	later := &laterJobs{}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		later.open(o)
		o.Orders, o.Limits = later.db, orchestrator.LimitWait
	})
	h.agent.reply = h.limited
	must(t, h.SetModel(t.Context(), here, "codex", "m1", "high"))
	p := newPrompt(here, "look")
	p.Attachments = []orchestrator.Attachment{{Path: "/u/a.png", Name: "a.png", MIME: "image/png", Image: true}}
	r, err := h.Submit(t.Context(), p, orchestrator.Wants{})
	must(t, err)
	h.await(t, "failed look")
	st, err := later.db.Job(t.Context(), orchestrator.LaterJob(r.Turn))
	must(t, err)
	must(t, h.SetModel(t.Context(), here, "claude", "", ""))
	h.agent.replies(echo)
	j := st.Job
	h.order(t, order("job-1", j.Prompt, orchestrator.Wants{Agent: j.Agent, Model: j.Model, Effort: j.Effort,
		Purpose: orchestrator.Purpose{Job: j.ID}}))
	h.await(t, "done look")
	all := h.agent.requests()
	before, now := all[0], all[1]
	if now.Effort != "high" || now.Model != "m1" || !slices.Equal(now.Files, before.Files) ||
		!slices.Equal(now.Images, before.Images) || !strings.HasSuffix(now.Prompt, before.Prompt) {
		t.Errorf("it ran as %+v, and runs as %+v", before, now)
	}
}

// A job cannot run a command of an agent, so nothing offers that: not at the limit, and not near it.
func TestACommandDoesNotRunLater(t *testing.T) {
	later := &laterJobs{}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		later.open(o)
		o.Limits = orchestrator.LimitWait
	})
	h.agent.reply = h.limited
	first, _ := h.runCommand(t, "/review")
	h.await(t, "failed /review")
	turn, err := h.db.Turn(t.Context(), first.Turn)
	if err != nil || turn.Outcome.Recovery.Offers(orchestrator.ActionLater) ||
		!turn.Outcome.Recovery.Offers(orchestrator.ActionAgain) {
		t.Errorf("it offers %q, %v", turn.Outcome.Recovery.Offer, err)
	}
	_, err = h.db.MergeLimits(t.Context(), cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{{
		Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.9, Resets: h.clock.now().Add(time.Hour),
	}}}, h.clock.now())
	must(t, err)
	h.agent.replies(untilAborted)
	second, _ := h.runCommand(t, "/long")
	h.awaitAsked(t, 2)
	_, err = h.Choose(t.Context(), second.Turn, orchestrator.ActionLater, by(owner, here))
	if !errors.Is(err, orchestrator.ErrBadChoice) || len(later.ids(t)) > 0 {
		t.Errorf("the press is answered with %v, and the jobs are %q", err, later.ids(t))
	}
}

// A user can cancel the later run of a prompt whose turn was stopped for it, until the prompt has run again.
func TestAPostponedPromptIsCancelled(t *testing.T) {
	later := &laterJobs{}
	h := openAt(t, newPath(t), later.open)
	h.agent.reply = untilAborted
	_, err := h.db.MergeLimits(t.Context(), cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{{
		Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.9, Resets: h.clock.now().Add(time.Hour),
	}}}, h.clock.now())
	must(t, err)
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	_, err = h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here))
	must(t, err)
	h.await(t, "aborted long")
	receipt, err := h.Choose(t.Context(), id, orchestrator.ActionDrop, by(owner, here))
	if err != nil || receipt.Turn != id || len(later.ids(t)) != 0 {
		t.Errorf("the receipt is %+v, %v, and the jobs are %q", receipt, err, later.ids(t))
	}
	_, err = h.Choose(t.Context(), id, orchestrator.ActionAgain, by(owner, here))
	must(t, err)
	_, err = h.Choose(t.Context(), id, orchestrator.ActionDrop, by(owner, here))
	if !errors.Is(err, orchestrator.ErrRepeated) {
		t.Errorf("after the prompt has run again, Cancel returns %v", err)
	}
}

// Each run of a job that a user starts once more is a turn of its own.
func TestALaterJobMayRunTwice(t *testing.T) {
	h := openForOrders(t, newPath(t), t.TempDir())
	id := h.submit(t, here, "hello").Turn
	h.await(t, "done hello")
	wants := orchestrator.Wants{Purpose: orchestrator.Purpose{Job: orchestrator.LaterJob(id)}}
	for i, want := range []cli.TurnID{id, ""} {
		run := cli.TurnID(fmt.Sprint("job-", i))
		h.order(t, order(string(run), "hello", wants))
		if turn, err := h.db.Turn(t.Context(), run); err != nil || turn.Again != want {
			t.Errorf("run %d repeats %q, %v", i, turn.Again, err)
		}
	}
}
