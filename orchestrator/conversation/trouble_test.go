package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/spending"
)

// slowLoad is a store that delays the answers of Conversation: the n-th is returned when hold(n) returns.
type slowLoad struct {
	*store.DB
	mu      sync.Mutex
	loads   int
	hold    func(n int)
	created chan struct{}
}

func (s *slowLoad) Conversation(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation,
	error) {
	c, err := s.DB.Conversation(ctx, id)
	s.mu.Lock()
	s.loads++
	n := s.loads
	s.mu.Unlock()
	s.hold(n)
	return c, err
}

func (s *slowLoad) CreateSession(ctx context.Context, session orchestrator.Session) error {
	defer close(s.created)
	return s.DB.CreateSession(ctx, session)
}

// TestAChangeWhileATurnBeginsItsSessionLosesNeither: the change has loaded the conversation when the turn makes its
// session the current one.
func TestAChangeWhileATurnBeginsItsSessionLosesNeither(t *testing.T) {
	s := &slowLoad{created: make(chan struct{})}
	changes := make(chan struct{})
	s.hold = func(n int) {
		switch n {
		case 2: // of the running turn; the first was for queueing it
			<-changes
		case 3: // of the change
			close(changes)
			select {
			case <-s.created:
			case <-time.After(200 * time.Millisecond): // it has to wait for the change
			}
		}
	}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		s.DB = o.Store.(*store.DB)
		o.Store = s
	})
	h.submit(t, here, "first")
	h.eventually(t, "the turn to look what the chat chose", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.loads == 2
	})
	if err := h.Set(t.Context(), here, orchestrator.SettingBusy, string(orchestrator.BusySteer)); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done first")
	c, err := h.db.Conversation(t.Context(), here)
	if err != nil || c.Session == "" || c.Settings.Busy != orchestrator.BusySteer {
		t.Errorf("the chat chose %+v, %v", c, err)
	}
}

// faulty is a store that fails in the methods that a test selects.
type faulty struct {
	*store.DB
	mu   sync.Mutex
	fail map[string]int // how often each method will still fail
}

var errFull = errors.New("the disk is full")

// newPath returns where a test puts its database.
func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "db") }

func faultyHouse(t *testing.T, path string) (*house, *faulty) {
	f := &faulty{fail: map[string]int{}}
	return openAt(t, path, func(o *conversation.Options) {
		f.DB = o.Store.(*store.DB)
		o.Store = f
	}), f
}

func (f *faulty) set(method string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[method] = times
}

func (f *faulty) err(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail[method] == 0 {
		return nil
	}
	f.fail[method]--
	return errFull
}

func (f *faulty) CancelTurn(ctx context.Context, id cli.TurnID) (bool, error) {
	if err := f.err("CancelTurn"); err != nil {
		return false, err
	}
	return f.DB.CancelTurn(ctx, id)
}

func (f *faulty) UnsteerTurn(ctx context.Context, id, behind cli.TurnID) (bool, error) {
	if err := f.err("UnsteerTurn"); err != nil {
		return false, err
	}
	return f.DB.UnsteerTurn(ctx, id, behind)
}

func (f *faulty) EndBypasses(ctx context.Context, over []orchestrator.ConversationID, at time.Time) error {
	if err := f.err("EndBypasses"); err != nil {
		return err
	}
	return f.DB.EndBypasses(ctx, over, at)
}

func (f *faulty) AbortTurns(ctx context.Context, running, queued []cli.TurnID,
	handled orchestrator.Handled) error {
	if err := f.err("AbortTurns"); err != nil {
		return err
	}
	return f.DB.AbortTurns(ctx, running, queued, handled)
}

func (f *faulty) FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	if err := f.err("FinishTurn"); err != nil {
		return err
	}
	return f.DB.FinishTurn(ctx, id, ended, o)
}

func (f *faulty) StartTurn(ctx context.Context, t orchestrator.Turn, at cli.Start) (bool, error) {
	if err := f.err("StartTurn"); err != nil {
		return false, err
	}
	return f.DB.StartTurn(ctx, t, at)
}

// waitingHouse opens a faulty house whose agent works on "running" until it is aborted, while "waiting" waits.
func waitingHouse(t *testing.T, path string) (*house, *faulty, orchestrator.Receipt) {
	h, f := faultyHouse(t, path)
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if lastLine(req.Prompt) == "running" {
			return untilAborted(ctx, who, req, emit)
		}
		return echo(ctx, who, req, emit)
	}
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	return h, f, h.submit(t, here, "waiting")
}

// TestACancelThatCouldNotBeRecordedIsRecordedLater: until then the prompt does not run, and the chat shows once that it
// will not.
func TestACancelThatCouldNotBeRecordedIsRecordedLater(t *testing.T) {
	h, f, waiting := waitingHouse(t, newPath(t))
	f.set("CancelTurn", 2)
	if ok, err := h.CancelQueued(t.Context(), waiting.Turn, by(1, here)); err != nil || !ok {
		t.Errorf("cancelled %v, %v", ok, err)
	}
	if ok, err := h.CancelQueued(t.Context(), waiting.Turn, by(1, here)); err != nil || ok {
		t.Errorf("cancelled again %v, %v", ok, err)
	}
	h.submit(t, here, "later")
	if err := h.StopTurn(t.Context(), h.agent.requests()[0].Turn, by(1, here)); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done later")
	h.eventually(t, "the cancellation to be recorded", func() bool {
		turn, err := h.db.Turn(context.Background(), waiting.Turn)
		return err == nil && turn.State == orchestrator.TurnCancelled
	})
	if asked := h.agent.prompts(); !slices.Equal(asked, []string{"running", "later"}) {
		t.Errorf("these ran: %q", asked)
	}
	shown := h.chat.log()
	isCancelled := func(line string) bool { return line == "unqueued waiting" }
	if first := slices.IndexFunc(shown, isCancelled); first < 0 || slices.ContainsFunc(shown[first+1:], isCancelled) {
		t.Errorf("the chat showed %q, and not once that the prompt will not run", shown)
	}
}

// TestAMergedPromptWhoseEndCouldNotBeRecordedRunsOnce, as a part of the prompt that it was merged into.
func TestAMergedPromptWhoseEndCouldNotBeRecordedRunsOnce(t *testing.T) {
	h, f := faultyHouse(t, newPath(t))
	h.agent.reply = untilAborted
	running := h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	h.agent.replies(echo)
	send := func(p orchestrator.Prompt) orchestrator.Receipt {
		p.Conversation, p.Person = here, 1
		r, err := h.Submit(t.Context(), p, orchestrator.Wants{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	send(orchestrator.Prompt{Text: "comment", Message: 41})
	f.set("CancelTurn", 2)
	part := send(orchestrator.Prompt{Text: "forwarded", Message: 42, PartOf: 41})
	if err := h.StopTurn(t.Context(), running.Turn, by(1, here)); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "last")
	h.await(t, "done last")
	h.eventually(t, "the cancellation to be recorded", func() bool {
		turn, err := h.db.Turn(context.Background(), part.Turn)
		return err == nil && turn.State == orchestrator.TurnCancelled
	})
	asked := h.agent.prompts() // the last line of each
	if !slices.Equal(asked, []string{"running", "forwarded", "last"}) ||
		!strings.HasSuffix(h.agent.requests()[1].Prompt, "comment\nforwarded") {
		t.Errorf("these ran: %q", asked)
	}
}

// TestAnAbortWhileItSteersOutlivesDuctor: ductor dies before it records the end of the prompt that returned to the
// queue.
func TestAnAbortWhileItSteersOutlivesDuctor(t *testing.T) {
	path := newPath(t)
	before, f, waiting := waitingHouse(t, path)
	before.agent.steer = func(cli.TurnID, cli.Request) error {
		if _, err := before.Abort(context.Background(), here); err != nil {
			t.Error(err)
		}
		return cli.ErrNoTurn
	}
	f.set("CancelTurn", 1000)
	if err := before.Steer(t.Context(), waiting.Turn, by(1, here)); !errors.Is(err, orchestrator.ErrNotWaiting) {
		t.Errorf("steer: %v", err)
	}
	before.shut()
	h := openAt(t, path, nil)
	h.recover(t)
	h.eventually(t, "all turns to end", func() bool {
		open, err := h.db.OpenTurns(context.Background())
		return err == nil && len(open) == 0
	})
	if asked := h.agent.prompts(); len(asked) > 0 {
		t.Errorf("after the abort these run: %q", asked)
	}
}

// A message that the agent does not take, or has not read, runs once the disk has space again, but not if a user has
// aborted everything meanwhile.
func TestAMessageReturnsToTheQueueWhenTheDiskHasSpace(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *house, orchestrator.Receipt) orchestrator.TurnState{
		"and runs": func(t *testing.T, h *house, running orchestrator.Receipt) orchestrator.TurnState {
			must(t, h.StopTurn(t.Context(), running.Turn, by(1, here)))
			h.await(t, "done waiting")
			return orchestrator.TurnDone
		},
		"and is aborted": func(t *testing.T, h *house, _ orchestrator.Receipt) orchestrator.TurnState {
			_, err := h.Abort(t.Context(), here)
			must(t, err)
			return orchestrator.TurnCancelled
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, f, waiting := waitingHouse(t, newPath(t))
			st, err := h.Status(t.Context(), here)
			must(t, err)
			h.agent.steer = func(cli.TurnID, cli.Request) error { return cli.ErrNoTurn }
			f.set("UnsteerTurn", 2)
			if err := h.Steer(t.Context(), waiting.Turn, by(1, here)); !errors.Is(err, errFull) {
				t.Errorf("steer: %v", err)
			}
			want := end(t, h, orchestrator.Receipt{Turn: st.Running.Turn})
			h.eventually(t, "the message to be "+string(want), func() bool {
				turn, err := h.db.Turn(context.Background(), waiting.Turn)
				return err == nil && turn.State == want && turn.Delivered
			})
		})
	}
	t.Run("while its turn runs", func(t *testing.T) {
		h, f, _ := waitingHouse(t, newPath(t))
		h.agent.steer = func(cli.TurnID, cli.Request) error { return cli.ErrNoTurn }
		must(t, h.Set(t.Context(), here, orchestrator.SettingBusy, string(orchestrator.BusySteer)))
		f.set("UnsteerTurn", 2)
		h.submit(t, here, "added")
		h.await(t, "queued added behind 1")
	})
	t.Run("after its turn", func(t *testing.T) {
		h, f := faultyHouse(t, newPath(t))
		steered := make(chan cli.TurnID)
		h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
		h.agent.reply = func(_ context.Context, who cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
			result := cli.Result{Err: &cli.Failure{Kind: cli.BadOutput, Agent: who}}
			result.Steered.Unread = []cli.TurnID{<-steered}
			return result
		}
		h.submit(t, here, "running")
		h.awaitAsked(t, 1)
		waiting := h.submit(t, here, "waiting")
		must(t, h.Steer(t.Context(), waiting.Turn, by(1, here)))
		h.agent.replies(echo)
		f.set("UnsteerTurn", 2)
		steered <- waiting.Turn
		h.await(t, "done waiting")
	})
}

// TestAnOutcomeThatCouldNotBeRecordedIsRecordedLater, while ductor runs. Until then its buttons do nothing, and a job
// waits for its end.
func TestAnOutcomeThatCouldNotBeRecordedIsRecordedLater(t *testing.T) {
	h, f := faultyHouse(t, newPath(t))
	f.set("FinishTurn", 2)
	r := h.submit(t, here, "first")
	h.await(t, "done first")
	h.eventually(t, "the outcome to be recorded and delivered", func() bool {
		turn, err := h.db.Turn(context.Background(), r.Turn)
		return err == nil && turn.State == orchestrator.TurnDone && turn.Delivered
	})
	h.agent.mu.Lock()
	defer h.agent.mu.Unlock()
	if len(h.agent.settled) != 1 {
		t.Errorf("settled %q", h.agent.settled)
	}
}

// The cost of a turn counts for the budget, even if the end of the turn could not be recorded.
func TestACostThatCouldNotBeRecordedCounts(t *testing.T) {
	f := &faulty{fail: map[string]int{"FinishTurn": math.MaxInt}}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		f.DB = o.Store.(*store.DB)
		o.Store, o.Budgets = f, spending.New(spending.Options{
			Store: f.DB, Now: o.Now, Logger: o.Logger,
			Limits: func() spending.Budget { return spending.Budget{Day: 0.4} },
		})
	})
	h.submit(t, here, "first")
	h.await(t, "done first")
	h.submit(t, here, "second")
	h.await(t, "failed second")
}

// TestATurnThatCouldNotBeStartedIsNotStartedLater: the chat has already shown it as failed.
func TestATurnThatCouldNotBeStartedIsNotStartedLater(t *testing.T) {
	h, f := faultyHouse(t, newPath(t))
	f.set("StartTurn", 2)
	r := h.submit(t, here, "first")
	h.await(t, "failed first")
	h.eventually(t, "the failure to be recorded and delivered", func() bool {
		turn, err := h.db.Turn(context.Background(), r.Turn)
		return err == nil && turn.State == orchestrator.TurnFailed && turn.Delivered
	})
}

// TestAnAbortThatCouldNotBeRecordedIsRecordedLater: turns that the chat showed as dropped do not run after a restart.
func TestAnAbortThatCouldNotBeRecordedIsRecordedLater(t *testing.T) {
	h, f, waiting := waitingHouse(t, newPath(t))
	f.set("AbortTurns", 2)
	report, err := h.Abort(t.Context(), here)
	if !errors.Is(err, errFull) || !report.Running || report.Dropped != 1 {
		t.Errorf("aborted %+v, %v", report, err)
	}
	h.await(t, "aborted running")
	h.await(t, "unqueued waiting")
	h.eventually(t, "the abort to be recorded", func() bool {
		turn, err := h.db.Turn(context.Background(), waiting.Turn)
		return err == nil && turn.State == orchestrator.TurnCancelled
	})
}

// An abort is stored together with the updates and notices of its answer, or later without the notices. A prompt that was
// submitted before the abort and is stored during it does not run.
func TestAnAbortIsStoredWithItsAnswer(t *testing.T) {
	h, f, waiting := waitingHouse(t, newPath(t))
	if _, err := h.db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 77, Raw: []byte("/abort")}}); err != nil {
		t.Fatal(err)
	}
	stop := func(told func(*orchestrator.Stopping)) (dropped int, err error) {
		_, err = h.Stop(t.Context(), orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser}, told, func(r orchestrator.AbortReport) orchestrator.Handled {
			dropped = r.Dropped
			return orchestrator.Handled{Updates: []int64{77}, Notices: []orchestrator.Message{{Key: "stop/77", Conversation: here, State: orchestrator.Pending, Content: []byte(`"Stopped."`)}}}
		})
		return dropped, err
	}
	stored := func() string {
		updates, err := h.db.PendingUpdates(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		notices, err := h.db.OwedMessages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d updates, %d notices", len(updates), len(notices))
	}
	f.set("AbortTurns", 1)
	late := ""
	dropped, err := stop(func(*orchestrator.Stopping) { late = string(h.submit(t, here, "late").Turn) })
	if !errors.Is(err, errFull) || dropped != 2 {
		t.Errorf("aborted %d, %v", dropped, err)
	}
	for _, id := range []cli.TurnID{waiting.Turn, cli.TurnID(late)} {
		h.eventually(t, "the abort to be recorded", func() bool {
			turn, err := h.db.Turn(context.Background(), id)
			return err == nil && turn.State == orchestrator.TurnCancelled
		})
	}
	if got := stored(); got != "0 updates, 0 notices" {
		t.Errorf("after an abort that was not stored at once: %s", got)
	}
	if dropped, err = stop(func(*orchestrator.Stopping) {}); err != nil || dropped != 0 {
		t.Errorf("aborted %d, %v", dropped, err)
	}
	if got := stored(); got != "0 updates, 1 notices" {
		t.Errorf("after an abort: %s", got)
	}
}

// TestAnAbortSparesWhatCameAfterIt: a process that takes up an old abort may find newer turns.
func TestAnAbortSparesWhatCameAfterIt(t *testing.T) {
	h, _, waiting := waitingHouse(t, newPath(t))
	turn, err := h.db.Turn(t.Context(), waiting.Turn)
	if err != nil {
		t.Fatal(err)
	}
	stop := orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser, Updates: []int64{turn.Prompt.Updates[0] - 1}}
	report, err := h.Stop(t.Context(), stop, func(*orchestrator.Stopping) {}, storeNothing)
	if err != nil || !report.Running || report.Dropped != 0 {
		t.Errorf("aborted %+v, %v", report, err)
	}
	h.await(t, "done waiting")
}

// TestASecondPressOfStartFreshTakesNothingAway: the turn of the first press has started a new session of its agent.
func TestASecondPressOfStartFreshTakesNothingAway(t *testing.T) {
	h := open(t)
	first := h.submit(t, here, "first")
	h.awaitEnded(t, first.Turn)
	again, err := h.Choose(t.Context(), first.Turn, orchestrator.ActionFresh, by(1, here))
	if err != nil {
		t.Fatal(err)
	}
	h.awaitEnded(t, again.Turn)
	if asked := h.agent.requests(); len(asked) != 2 || asked[1].Resume != "" {
		t.Fatalf("asked %+v", asked)
	}
	if _, err := h.Choose(t.Context(), first.Turn, orchestrator.ActionFresh, by(1, here)); !errors.Is(err, orchestrator.ErrRepeated) {
		t.Errorf("a second press: %v", err)
	}
	turn, err := h.db.Turn(t.Context(), again.Turn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.db.Session(t.Context(), turn.Session)
	if err != nil || s.AgentSessions[orchestrator.AgentEnv{Agent: "claude"}].ID == "" {
		t.Errorf("the session is %+v, %v", s, err)
	}
}
