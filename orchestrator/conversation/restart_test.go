package conversation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// successor opens a house over the store of one that was shut down while "running" ran and "waiting" waited. remains is
// the state of the turn that ran; empty if it reached no agent.
func successor(t *testing.T, remains cli.Remains) *house {
	t.Helper()
	path := newPath(t)
	before := openAt(t, path, nil)
	before.agent.reply, before.agent.stuck = untilAborted, remains == ""
	before.submit(t, here, "running")
	before.awaitAsked(t, 1)
	before.submit(t, here, "waiting")
	before.Detach(t.Context())
	if log := before.chat.log(); !slices.Contains(log, "left running") || slices.Contains(log, "aborted running") {
		t.Fatalf("a turn that is let go of is shown as %q", log)
	}
	if len(before.agent.settled) > 0 {
		t.Fatal("a turn that goes on counts as settled")
	}
	return successorOf(t, path, map[string]cli.Remains{"running": remains})
}

// successorOf opens a house over the store of an earlier one. remains is the state of the turns that ran.
func successorOf(t *testing.T, path string, remains map[string]cli.Remains) *house {
	t.Helper()
	// The chat works, so what follows an outcome waits until the chat shows it, however slow the machine is.
	after := openAt(t, path, func(o *conversation.Options) { o.DeliveryWait = time.Minute })
	after.agent.remains = remains
	after.agent.open = func(id cli.TurnID) string {
		turn, err := after.db.Turn(context.Background(), id)
		if err != nil {
			t.Error(err)
		}
		return turn.Prompt.Text
	}
	return after
}

func (h *house) recover(t *testing.T) {
	t.Helper()
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestATurnThatOutlivedDuctorGoesOnInItsCardBeforeTheQueue(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	h.recover(t)
	h.await(t, "done waiting")
	want := []string{"reopened running", "done running", "unqueued waiting", "done waiting"}
	if diff := cmp.Diff(want, h.chat.log()); diff != "" {
		t.Errorf("the chat saw %s", diff)
	}
	if diff := cmp.Diff([]string{"waiting"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	resumed := h.agent.resumed
	if len(resumed) != 1 || resumed[0].Prompt != "running" || resumed[0].Began.IsZero() {
		t.Errorf("gone on with %+v", resumed)
	}
	h.eventually(t, "both turns to be settled", func() bool {
		h.agent.mu.Lock()
		defer h.agent.mu.Unlock()
		return len(h.agent.settled) == 2
	})
}

func TestATurnThatNeverReachedAnAgentIsAskedOnce(t *testing.T) {
	h := successor(t, "")
	h.recover(t)
	h.await(t, "done waiting")
	if diff := cmp.Diff([]string{"running", "waiting"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	if len(h.agent.resumed) > 0 {
		t.Error("there was nothing to go on with")
	}
}

func TestATurnOfWhichNobodyKnowsIsShownAsInterruptedAndNotAskedAgain(t *testing.T) {
	h := successor(t, cli.RemainsUnknown)
	h.recover(t)
	h.await(t, "redelivered running: interrupted")
	h.await(t, "done waiting")
	if diff := cmp.Diff([]string{"waiting"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
}

// crash records crashes of ductor until it gives up the turn or outcome.
func TestARestartDoesNotChangeWhenATurnBegan(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	h.agent.reply = untilAborted
	began := h.clock.now()
	h.clock.advance(time.Minute)
	h.recover(t)
	h.await(t, "reopened running")
	st, err := h.Status(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	if st.Running == nil || !st.Running.Started.Equal(began) {
		t.Errorf("runs since %+v, began at %s", st.Running, began)
	}
}

func (h *house) crash(t *testing.T) {
	t.Helper()
	for range orchestrator.MostCrashes {
		if err := h.db.CountCrash(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATurnThatDuctorCrashedOverIsGivenUp(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	h.crash(t)
	h.recover(t)
	h.await(t, "redelivered running: interrupted")
	h.await(t, "done waiting") // it was only waiting
	if diff := cmp.Diff([]string{"waiting"}, h.agent.prompts()); diff != "" || len(h.agent.resumed) > 0 {
		t.Errorf("gone on with %+v, asked %s", h.agent.resumed, diff)
	}
	open, err := h.db.OpenTurns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range open {
		if turn.Crashes > 0 {
			t.Errorf("that it is shown as interrupted is held to be why ductor crashed %d times", turn.Crashes)
		}
	}
}

func TestAnOutcomeThatDuctorCrashedOverIsNoLongerShown(t *testing.T) {
	h := openAt(t, newPath(t), nil)
	turn := orchestrator.Turn{ID: "t", Prompt: orchestrator.Prompt{Conversation: here, Text: "deadly"}, State: orchestrator.TurnQueued}
	if err := h.db.EnqueueTurn(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.StartTurn(t.Context(), turn, cli.Start{}); err != nil {
		t.Fatal(err)
	}
	if err := h.db.FinishTurn(t.Context(), "t", time.Now(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: "deadly"}); err != nil {
		t.Fatal(err)
	}
	h.crash(t)
	h.recover(t)
	h.eventually(t, "the outcome to be given up", func() bool {
		turn, err := h.db.Turn(t.Context(), "t")
		return err == nil && turn.Delivered
	})
	if log := h.chat.log(); len(log) != 1 || !strings.Contains(log[0], "I gave up on showing an answer") {
		t.Errorf("the chat is told %q", log)
	}
}

func TestAnAbortReachesATurnThatWasTakenUp(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	h.agent.reply = untilAborted
	h.recover(t)
	report, err := h.Abort(t.Context(), here)
	if err != nil || !report.Running || report.Dropped != 1 {
		t.Errorf("aborted %+v, %v", report, err)
	}
	h.await(t, "aborted running")
	if len(h.agent.prompts()) > 0 {
		t.Errorf("after the abort these run: %q", h.agent.prompts())
	}
}

func TestAnAbortThatDuctorDiedOfIsGoneOnWith(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	turns, err := h.db.OpenTurns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.db.AbortTurns(t.Context(), []cli.TurnID{turns[0].ID}, nil, orchestrator.Handled{}); err != nil {
		t.Fatal(err)
	}
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if req.Prompt == "running" {
			return untilAborted(ctx, who, req, emit)
		}
		return echo(ctx, who, req, emit)
	}
	h.recover(t)
	h.await(t, "aborted running")
	h.await(t, "done waiting")
}

// If ductor dies after a user stopped a turn to run its prompt again, the next process offers the messages again that
// the agent may not have read. A user who aborts the turn wants no more of them.
func TestAMessageOfAStoppedTurnOutlivesDuctor(t *testing.T) {
	for name, press := range map[string]func(*testing.T, *house, *laterJobs, cli.TurnID){
		"aborted":              func(*testing.T, *house, *laterJobs, cli.TurnID) {},
		"with another account": func(t *testing.T, h *house, _ *laterJobs, id cli.TurnID) { h.repeatBehindIt(t, id) },
		"later": func(t *testing.T, _ *house, later *laterJobs, id cli.TurnID) {
			_, err := later.AddJob(t.Context(), orchestrator.Job{ID: orchestrator.LaterJob(id), Conversation: here})
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			before := openAt(t, path, nil)
			before.agent.reply = untilAborted
			running := before.submit(t, here, "running").Turn
			before.awaitAsked(t, 1)
			before.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
			steered := before.submit(t, here, "steered").Turn
			must(t, before.Steer(t.Context(), steered, by(1, here)))
			before.Detach(t.Context())

			later := &laterJobs{}
			h := openAt(t, path, later.open)
			press(t, h, later, running)
			must(t, h.db.AbortTurns(t.Context(), []cli.TurnID{running}, nil, orchestrator.Handled{}))
			h.agent.remains = map[string]cli.Remains{"running": cli.RemainsRun}
			h.agent.open = func(cli.TurnID) string { return "running" }
			h.agent.reply = untilAborted
			h.recover(t)
			h.await(t, "aborted running")
			want := orchestrator.TurnInterrupted
			if name == "aborted" {
				want = orchestrator.TurnSteered
			} else {
				h.await(t, "redelivered steered: interrupted")
			}
			h.shut()
			if turn, err := h.db.Turn(t.Context(), steered); err != nil || turn.State != want || !turn.Delivered {
				t.Errorf("stored as %+v, %v", turn, err)
			}
		})
	}
}

func TestDetachLeavesTheQueueAndTakesNothingMore(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	h.submit(t, here, "waiting")
	h.Detach(t.Context())
	left, err := h.db.OpenTurns(t.Context())
	if err != nil || len(left) != 2 || left[0].State != orchestrator.TurnRunning || left[1].State != orchestrator.TurnQueued {
		t.Errorf("left %+v, %v", left, err)
	}
	if _, err := h.Submit(t.Context(), orchestrator.Prompt{Conversation: here, Text: "late"}, orchestrator.Wants{}); err == nil {
		t.Error("a turn was taken after the end")
	}
}

// TestAnAbortBeforeATurnBeganOutlivesDuctor: choosing the agent takes a while, and ductor is killed before it is done.
func TestAnAbortBeforeATurnBeganOutlivesDuctor(t *testing.T) {
	path, begin := newPath(t), make(chan struct{})
	before := openAt(t, path, func(o *conversation.Options) { o.Gateway = slowStart{o.Gateway.(*agent), begin} })
	before.submit(t, here, "running")
	if report, err := before.Abort(t.Context(), here); err != nil || !report.Running {
		t.Fatalf("aborted %+v, %v", report, err)
	}
	after := openAt(t, path, nil)
	defer close(begin)
	after.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if ctx.Err() != nil {
			return cli.Cut(ctx, who)
		}
		return echo(ctx, who, req, emit)
	}
	after.recover(t)
	after.eventually(t, "the turn to end", func() bool {
		open, err := after.db.OpenTurns(context.Background())
		return err == nil && len(open) == 0
	})
	if log := after.chat.log(); !slices.Contains(log, "aborted running") {
		t.Errorf("the chat saw %q", log)
	}
}

// TestWhatRanGoesOnBeforeAPromptThatWasTakenBack: that prompt was steered into an earlier turn, so its place in the
// queue is before the turn that ran meanwhile.
func TestWhatRanGoesOnBeforeAPromptThatWasTakenBack(t *testing.T) {
	path := newPath(t)
	before, end := openAt(t, path, nil), make(chan struct{})
	before.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if lastLine(req.Prompt) == "first" {
			<-end
			return echo(ctx, who, req, emit)
		}
		return untilAborted(ctx, who, req, emit)
	}
	before.submit(t, here, "first")
	before.awaitAsked(t, 1)
	before.submit(t, here, "running")
	waiting := before.submit(t, here, "waiting")
	before.agent.steer = func(cli.TurnID, cli.Request) error {
		close(end)
		before.awaitAsked(t, 2)
		return cli.ErrNoTurn
	}
	if err := before.Steer(t.Context(), waiting.Turn, by(1, here)); !errors.Is(err, orchestrator.ErrCannotSteer) {
		t.Fatalf("steer: %v", err)
	}
	before.Detach(t.Context())
	h := successorOf(t, path, map[string]cli.Remains{"running": cli.RemainsRun})
	h.recover(t)
	h.await(t, "done waiting")
	want := []string{"reopened running", "done running", "unqueued waiting", "done waiting"}
	if diff := cmp.Diff(want, h.chat.log()); diff != "" {
		t.Errorf("the chat saw %s", diff)
	}
}

// An abort that a user sent before the restart reaches the turn that goes on, and nothing queued starts before it.
func TestNoQueuedTurnStartsBeforeAStoredAbort(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	stored := orchestrator.PendingAborts{Conversation: here, Handled: make(chan struct{})}
	if err := h.Recover(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done running")
	h.eventually(t, "the turn to end", func() bool { return !h.Runs(here) })
	report, err := h.Abort(t.Context(), here)
	if err != nil || report.Dropped != 1 {
		t.Errorf("the abort dropped %d turns: %v", report.Dropped, err)
	}
	h.submit(t, here, "newer")
	if report, err = h.Abort(t.Context(), here); err != nil || report.Dropped != 1 {
		t.Errorf("the second abort dropped %d turns: %v", report.Dropped, err)
	}
	h.submit(t, here, "newest")
	h.submit(t, there, "elsewhere")
	h.await(t, "done elsewhere")
	close(stored.Handled)
	h.await(t, "done newest")
	if diff := cmp.Diff([]string{"elsewhere", "newest"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
}

func TestAStoredAbortReachesATurnThatOutlivedDuctor(t *testing.T) {
	h := successor(t, cli.RemainsRun)
	h.agent.reply = untilAborted
	stored := orchestrator.PendingAborts{Conversation: here, Handled: make(chan struct{})}
	if err := h.Recover(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	h.await(t, "reopened running")
	report, err := h.Abort(t.Context(), here)
	if err != nil || !report.Running || report.Dropped != 1 {
		t.Errorf("the abort ended a turn: %t, and dropped %d: %v", report.Running, report.Dropped, err)
	}
	close(stored.Handled)
	h.await(t, "aborted running")
	if got := h.agent.prompts(); len(got) > 0 {
		t.Errorf("asked %q", got)
	}
}
