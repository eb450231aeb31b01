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

// asWork is the choice of the account that openAccounts adds.
var asWork = orchestrator.ActionAccount("work")

// openAccounts opens a house whose agents have the account "work". Its Claude is near its limit for another hour. Turns
// of the default account run until the house ends, even if they are aborted; other turns end at once.
func openAccounts(t *testing.T) (*house, *laterJobs) {
	t.Helper()
	later := &laterJobs{}
	h := openAt(t, newPath(t), later.open)
	h.agent.instead.accounts = []cli.Account{"work"}
	end := make(chan struct{})
	t.Cleanup(func() { close(end) }) // before the house waits for the turns
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if req.Accounts[who] == "work" {
			return echo(ctx, who, req, emit)
		}
		<-end
		return cli.Cut(ctx, who)
	}
	_, err := h.db.MergeLimits(t.Context(), cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{{
		Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.95, Resets: h.clock.now().Add(time.Hour),
	}}}, h.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	return h, later
}

// limited ends a turn of the default account at a limit that ends in an hour.
func (h *house) limited(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if req.Accounts[who] == "work" {
		return echo(ctx, who, req, emit)
	}
	return cli.Result{Err: &cli.Failure{Kind: cli.LimitReached, Agent: who, ResetAt: h.clock.now().Add(time.Hour)}}
}

// account returns the account of Claude that the conversation uses.
func (h *house) account(t *testing.T) cli.Account {
	t.Helper()
	conv, err := h.db.Conversation(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	return conv.Settings.Accounts["claude"]
}

// isAborting reports whether a turn is aborted. Only that is certain: its agent may still run.
func (h *house) isAborting(t *testing.T, id cli.TurnID) bool {
	t.Helper()
	turn, err := h.db.Turn(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return turn.Aborting || turn.State == orchestrator.TurnAborted
}

// A prompt that another account runs is not postponed too, although the buttons stay until its turn has ended.
func TestAPromptThatGoesOnIsNotPostponed(t *testing.T) {
	h, later := openAccounts(t)
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	if r, err := h.Choose(t.Context(), id, asWork, by(owner, here)); err != nil || r.Turn != id || r.Ahead != 1 {
		t.Fatalf("the press is answered with %+v, %v", r, err)
	}
	if !h.isAborting(t, id) {
		t.Error("the turn goes on")
	}
	_, err := h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here))
	if !errors.Is(err, orchestrator.ErrRepeated) || len(later.ids(t)) > 0 {
		t.Errorf("the second press: %v, and the jobs are %q", err, later.ids(t))
	}
}

// A turn whose prompt another turn repeats gets no job at its limit, even if ductor would create one automatically.
func TestAPromptThatGoesOnIsNotPostponedByDuctor(t *testing.T) {
	later := &laterJobs{}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		later.open(o)
		o.Limits = orchestrator.LimitWait
	})
	end := make(chan struct{})
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		<-end
		return h.limited(ctx, who, req, emit)
	}
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	h.repeatBehindIt(t, id)
	close(end)
	h.await(t, "failed long")
	if len(later.ids(t)) > 0 {
		t.Errorf("the jobs are %q", later.ids(t))
	}
}

// repeatBehindIt stores a turn that repeats another one, as a process did that died afterwards.
func (h *house) repeatBehindIt(t *testing.T, id cli.TurnID) {
	t.Helper()
	err := h.db.EnqueueTurn(t.Context(), orchestrator.Turn{ID: "copy", Again: id, State: orchestrator.TurnQueued,
		Queued: h.clock.now(), Prompt: orchestrator.Prompt{Conversation: here, Text: "long"}})
	if err != nil {
		t.Fatal(err)
	}
}

// A press that cannot queue the prompt neither stops the turn nor changes the account.
func TestARunningTurnGoesOnOnlyIfItsPromptIsQueued(t *testing.T) {
	h, _ := openAccounts(t)
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	for range 3 {
		h.submit(t, here, "waiting")
	}
	r, err := h.Choose(t.Context(), id, asWork, by(owner, here))
	if err != nil || !r.Full || r.Turn != "" {
		t.Errorf("the press is answered with %+v, %v", r, err)
	}
	if h.isAborting(t, id) || h.account(t) != "" {
		t.Errorf("the turn is aborted: %v; the account is %q", h.isAborting(t, id), h.account(t))
	}
}

// If ductor died after it queued the prompt, the same press still stops the turn, even if the queue is full.
func TestAPressThatQueuedThePromptStopsItsTurn(t *testing.T) {
	h, _ := openAccounts(t)
	id := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	for range 3 {
		h.submit(t, here, "waiting")
	}
	h.repeatBehindIt(t, id)
	if _, err := h.Choose(t.Context(), id, asWork, by(owner, here)); !errors.Is(err, orchestrator.ErrRepeated) {
		t.Errorf("the press is answered with %v", err)
	}
	if !h.isAborting(t, id) {
		t.Error("the turn goes on")
	}
}

// queueing is a store that calls queued before it stores a repetition, and fails with its error.
type queueing struct {
	orchestrator.Store
	queued func(orchestrator.Turn) error
}

func (q queueing) EnqueueTurn(ctx context.Context, t orchestrator.Turn, forget ...orchestrator.AgentEnv) error {
	if t.Again == "" {
		return q.Store.EnqueueTurn(ctx, t, forget...)
	}
	if err := q.queued(t); err != nil {
		return err
	}
	return q.Store.EnqueueTurn(ctx, t, forget...)
}

// ductor queues the prompt before it stops the turn, and the commit does not mark the press as handled. If it cannot
// queue the prompt, the turn keeps running with its account.
func TestATurnIsStoppedAfterItsPromptIsQueued(t *testing.T) {
	for _, fail := range []error{nil, errFull} {
		var h *house
		var id cli.TurnID
		queued := 0
		h = openAt(t, newPath(t), func(o *conversation.Options) {
			o.Store = queueing{o.Store, func(copied orchestrator.Turn) error {
				queued++
				if h.isAborting(t, id) || len(copied.Prompt.Updates) > 0 {
					t.Errorf("the turn is aborted: %v; the updates are %v", h.isAborting(t, id), copied.Prompt.Updates)
				}
				return fail
			}}
		})
		h.agent.instead.accounts = []cli.Account{"work"}
		h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
			if req.Accounts[who] == "work" {
				return echo(ctx, who, req, emit)
			}
			return untilAborted(ctx, who, req, emit)
		}
		id = h.submit(t, here, "long").Turn
		h.awaitAsked(t, 1)
		press := by(owner, here)
		press.Updates = []int64{1 << 41}
		if _, err := h.Choose(t.Context(), id, asWork, press); !errors.Is(err, fail) {
			t.Errorf("the press is answered with %v", err)
		}
		if fail != nil {
			if queued != 1 || h.isAborting(t, id) || h.account(t) != "" {
				t.Errorf("%d copies; the turn is aborted: %v; the account is %q", queued, h.isAborting(t, id),
					h.account(t))
			}
			continue
		}
		h.await(t, "done long")
		if got := h.accountsAsked(); queued != 1 || !cmp.Equal(got, []cli.Account{"", "work"}) {
			t.Errorf("%d copies, and the accounts are %q", queued, got)
		}
	}
}

// accountsAsked returns the accounts of the requests to Claude so far.
func (h *house) accountsAsked() (all []cli.Account) {
	for _, r := range h.agent.requests() {
		all = append(all, r.Accounts["claude"])
	}
	return all
}

// A press that is refused after the end of a turn changes no account. An accepted one runs the prompt with the account.
func TestOnlyAnAcceptedPressChangesTheAccount(t *testing.T) {
	for name, refuse := range map[string]func(*house, *laterJobs, cli.TurnID){
		"a job runs it": func(h *house, later *laterJobs, id cli.TurnID) {
			if _, err := h.Choose(t.Context(), id, orchestrator.ActionLater, by(owner, here)); err != nil {
				t.Fatal(err)
			}
			later.run(t, orchestrator.LaterJob(id))
		},
		"the queue is full": func(h *house, _ *laterJobs, _ cli.TurnID) {
			h.agent.replies(untilAborted)
			h.submit(t, here, "long")
			h.awaitAsked(t, 2)
			for range 3 {
				h.submit(t, here, "waiting")
			}
		},
		"it is accepted": nil,
	} {
		t.Run(name, func(t *testing.T) {
			h, later := openAccounts(t)
			h.agent.replies(h.limited)
			id := h.submit(t, here, "hello").Turn
			h.await(t, "failed hello")
			if refuse == nil {
				if _, err := h.Choose(t.Context(), id, asWork, by(owner, here)); err != nil {
					t.Error(err)
				}
				h.await(t, "done hello")
				if got := h.accountsAsked(); !cmp.Equal(got, []cli.Account{"", "work"}) {
					t.Errorf("the accounts are %q", got)
				}
				return
			}
			refuse(h, later, id)
			r, err := h.Choose(t.Context(), id, asWork, by(owner, here))
			if !r.Full && !errors.Is(err, orchestrator.ErrRepeated) || h.account(t) != "" {
				t.Errorf("the press is answered with %+v, %v; the account is %q", r, err, h.account(t))
			}
		})
	}
}

// A conversation whose agent is missing for a while does not forget the account of the agent.
func TestAMissingAgentDoesNotLoseItsAccount(t *testing.T) {
	h := open(t)
	h.agent.instead.accounts = []cli.Account{"work"}
	if err := h.SetAccount(t.Context(), here, "claude", "work"); err != nil {
		t.Fatal(err)
	}
	h.agent.instead.unknown = "claude"
	h.submit(t, here, "hello")
	h.await(t, "done hello")
	notice := slices.ContainsFunc(h.chat.log(), func(line string) bool { return strings.HasPrefix(line, "notice") })
	if notice || h.account(t) != "work" {
		t.Errorf("the account is %q, and the chat says %q", h.account(t), h.chat.log())
	}
}

// A message that was sent to a turn and that its agent did not read is not lost if a user stops the turn to run its
// prompt again: it runs after that prompt.
func TestAnUnreadMessageRunsAfterTheRepeatedPrompt(t *testing.T) {
	stopped := func(t *testing.T, press orchestrator.Action) (h *house, later *laterJobs, long, unread cli.TurnID) {
		h, later = openAccounts(t)
		steered := make(chan cli.TurnID, 1)
		h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
		h.agent.replies(func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
			if req.Accounts[who] == "work" {
				return echo(ctx, who, req, emit)
			}
			<-ctx.Done()
			result := cli.Cut(ctx, who)
			result.Steered.Unread = []cli.TurnID{<-steered}
			return result
		})
		long = h.submit(t, here, "long").Turn
		h.awaitAsked(t, 1)
		unread = h.submit(t, here, "unread").Turn
		must(t, h.Steer(t.Context(), unread, by(1, here)))
		h.submit(t, here, "waiting")
		if _, err := h.Choose(t.Context(), long, press, by(owner, here)); err != nil {
			t.Fatal(err)
		}
		h.agent.replies(echo)
		steered <- unread
		h.await(t, "done waiting")
		return h, later, long, unread
	}
	t.Run("with another account", func(t *testing.T) {
		h, _, _, _ := stopped(t, asWork)
		h.await(t, "done unread")
		if diff := cmp.Diff([]string{"long", "waiting", "long", "unread"}, h.agent.prompts()); diff != "" {
			t.Errorf("what was asked: %s", diff)
		}
	})
	t.Run("later", func(t *testing.T) {
		h, later, long, unread := stopped(t, orchestrator.ActionLater)
		if diff := cmp.Diff([]string{"long", "waiting"}, h.agent.prompts()); diff != "" {
			t.Errorf("what was asked: %s", diff)
		}
		first, err := later.db.Job(t.Context(), orchestrator.LaterJob(long))
		must(t, err)
		second, err := later.db.Job(t.Context(), orchestrator.LaterJob(unread))
		if err != nil || second.Job.Prompt != "unread" || second.Job.Schedule <= first.Job.Schedule ||
			second.Job.Rights.Mode != first.Job.Rights.Mode {
			t.Errorf("the message is in the job %+v, %v; the prompt in %+v", second.Job, err, first.Job)
		}
		_, err = h.Choose(t.Context(), long, orchestrator.ActionDrop, by(owner, here))
		if ids := later.ids(t); err != nil || len(ids) > 0 {
			t.Errorf("after the prompt was cancelled: %v, and the jobs are %q", err, ids)
		}
	})
}

// A postponed message stays postponed if ductor ends while the agent stops.
func TestAnUnreadMessageIsPostponedWhileDuctorEnds(t *testing.T) {
	h, later := openAccounts(t)
	steered := make(chan cli.TurnID)
	h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
	h.agent.replies(func(ctx context.Context, who cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
		id := <-steered
		result := cli.Cut(ctx, who)
		result.Steered.Unread = []cli.TurnID{id}
		return result
	})
	long := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	unread := h.submit(t, here, "unread").Turn
	must(t, h.Steer(t.Context(), unread, by(1, here)))
	_, err := h.Choose(t.Context(), long, orchestrator.ActionLater, by(owner, here))
	must(t, err)
	h.detach(t)
	steered <- unread
	h.shut()
	want := []orchestrator.JobID{orchestrator.LaterJob(long), orchestrator.LaterJob(unread)}
	if diff := cmp.Diff(want, later.ids(t)); diff != "" {
		t.Errorf("the jobs: %s", diff)
	}
	if turn, err := h.db.Turn(t.Context(), unread); err != nil || turn.State != orchestrator.TurnSteered {
		t.Errorf("the message is stored as %+v, %v", turn, err)
	}
}

// After a restart, too, an unread message runs after the prompt that another account repeats.
func TestAnUnreadMessageIsStoredBehindTheRepeatedPrompt(t *testing.T) {
	h, _ := openAccounts(t)
	steered := make(chan cli.TurnID)
	h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
	h.agent.replies(func(ctx context.Context, who cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
		result := cli.Result{}
		result.Steered.Unread = []cli.TurnID{<-steered, <-steered}
		<-ctx.Done()
		result.Aborted = true
		return result
	})
	long := h.submit(t, here, "long").Turn
	h.awaitAsked(t, 1)
	var unread []cli.TurnID
	for _, text := range []string{"first", "second"} {
		id := h.submit(t, here, text).Turn
		must(t, h.Steer(t.Context(), id, by(1, here)))
		unread = append(unread, id)
	}
	waiting := h.submit(t, here, "waiting").Turn
	_, err := h.Choose(t.Context(), long, asWork, by(owner, here))
	must(t, err)
	h.agent.replies(untilAborted)
	for _, id := range unread {
		steered <- id
	}
	h.awaitAsked(t, 2)
	h.detach(t)
	h.shut()
	open, err := h.db.OpenTurns(t.Context())
	must(t, err)
	if len(open) != 4 || open[0].ID != waiting || open[1].Again != long || open[2].ID != unread[0] ||
		open[3].ID != unread[1] {
		t.Errorf("these turns are open: %+v", open)
	}
}
