package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

func TestAPromptBecomesATurn(t *testing.T) {
	h := open(t)
	receipt := h.submit(t, here, "hello")
	h.await(t, "done hello")
	if receipt.Ahead != 0 {
		t.Errorf("%d turns ahead in an empty conversation", receipt.Ahead)
	}
	h.shut()
	turn, err := h.db.Turn(t.Context(), receipt.Turn)
	if err != nil {
		t.Fatal(err)
	}
	if turn.State != orchestrator.TurnDone || !turn.Delivered || turn.Outcome.Text != "echo: hello" {
		t.Errorf("stored turn is %+v", turn)
	}
	s, err := h.db.Session(t.Context(), turn.Session)
	if err != nil {
		t.Fatal(err)
	}
	if s.Totals.Messages != 1 || s.Totals.CostUSD != 0.5 || s.Totals.Tokens != 15 ||
		s.AgentSessions[orchestrator.AgentEnv{Agent: "claude"}].ID != "native-claude" || s.Title != "hello" {
		t.Errorf("stored session is %+v", s)
	}
}

func TestTheNextPromptResumesTheSession(t *testing.T) {
	h := open(t)
	h.submit(t, here, "one")
	h.await(t, "done one")
	h.submit(t, here, "two")
	h.await(t, "done two")
	h.submit(t, there, "elsewhere")
	h.await(t, "done elsewhere")
	var resumed []cli.AgentSessionID
	for _, r := range h.agent.requests() {
		resumed = append(resumed, r.Resume)
	}
	if diff := cmp.Diff([]cli.AgentSessionID{"", "native-claude", ""}, resumed); diff != "" {
		t.Errorf("resumed sessions: %s", diff)
	}
}

func TestAQueueIsServedInOrderAndIsBounded(t *testing.T) {
	h := open(t)
	end := make(chan struct{})
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		<-end
		return echo(ctx, who, req, emit)
	}
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	for i := range 3 {
		if r := h.submit(t, here, fmt.Sprint(i)); r.Ahead != i+1 || r.Full {
			t.Errorf("receipt %d is %+v", i, r)
		}
	}
	if r := h.submit(t, here, "too many"); !r.Full || r.Turn != "" {
		t.Errorf("a full queue took %+v", r)
	}
	ok, err := h.EditQueued(t.Context(), here, int(updates.next-2), "one")
	if err != nil || !ok {
		t.Errorf("edit of a queued message: %v, %v", ok, err)
	}
	close(end)
	h.await(t, "done 2")
	if diff := cmp.Diff([]string{"running", "0", "one", "2"}, h.agent.prompts()); diff != "" {
		t.Errorf("order: %s", diff)
	}
}

// The status has the wants of the waiting turns, in their order.
func TestTheStatusOfAQueue(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	h.submit(t, here, "waiting")
	own := orchestrator.Prompt{Conversation: here, Person: 1, Text: "own", Updates: []int64{1 << 40}}
	if _, err := h.Submit(t.Context(), own, orchestrator.Wants{Agent: "claude"}); err != nil {
		t.Fatal(err)
	}
	st, err := h.Status(t.Context(), here)
	if err != nil || len(st.Queue) != 2 || st.Queue[0].Agent != "" || st.Queue[1].Agent != "claude" {
		t.Errorf("the queue is %+v, %v", st.Queue, err)
	}
}

func TestAnAbortEndsTheTurnAndTheQueue(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	waiting := h.submit(t, here, "waiting")
	report, err := h.Abort(t.Context(), here)
	if err != nil || !report.Running || report.Dropped != 1 {
		t.Fatalf("abort: %+v, %v", report, err)
	}
	h.await(t, "aborted running")
	h.await(t, "unqueued waiting")
	h.agent.mu.Lock()
	h.agent.reply = echo
	h.agent.mu.Unlock()
	h.submit(t, here, "after")
	h.await(t, "done after")
	if diff := cmp.Diff([]string{"running", "after"}, h.agent.prompts()); diff != "" {
		t.Errorf("what ran: %s", diff)
	}
	turn, err := h.db.Turn(t.Context(), waiting.Turn)
	if err != nil || turn.State != orchestrator.TurnCancelled {
		t.Errorf("the dropped turn is %s, %v", turn.State, err)
	}
}

// Terminals learn that a turn was cancelled that was about to start.
func TestTerminalsLearnOfACancelledTurnWithoutACard(t *testing.T) {
	ended := make(chan orchestrator.Turn, 1)
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		follow := func(orchestrator.Turn, bool) func(cli.Event) { return func(cli.Event) {} }
		o.Viewers = &orchestrator.Viewers{Follow: follow, Ended: func(t orchestrator.Turn) { ended <- t }}
	})
	press := orchestrator.Press{Conversation: here, Role: orchestrator.RoleOwner}
	report, err := h.Stop(t.Context(), press, func(*orchestrator.Stopping) { h.submit(t, here, "never") }, storeNothing)
	if err != nil || report.Dropped != 1 || len(ended) != 1 {
		t.Fatalf("aborted %+v, %v; terminals see %d ends", report, err, len(ended))
	}
	if turn := <-ended; turn.State != orchestrator.TurnCancelled || turn.Prompt.Text != "never" {
		t.Errorf("terminals see %+v", turn)
	}
}

// As soon as a terminal shows the end of a turn, an abort stops the rest of the answer in the chat.
func TestAnAbortFindsAnAnswerThatTerminalsShow(t *testing.T) {
	var h *house
	unshown := make(chan cli.TurnID, 1)
	h = openAt(t, newPath(t), func(o *conversation.Options) {
		follow := func(orchestrator.Turn, bool) func(cli.Event) { return func(cli.Event) {} }
		o.Viewers = &orchestrator.Viewers{Follow: follow, Ended: func(orchestrator.Turn) {
			report, err := h.Abort(t.Context(), here)
			if err != nil {
				t.Error(err)
			}
			unshown <- report.Unshown
		}}
	})
	h.chat.stuck = make(chan struct{})
	first := h.submit(t, here, "first")
	if id := <-unshown; id != first.Turn {
		t.Errorf("the abort finds that %q is not shown, want %q", id, first.Turn)
	}
	h.await(t, "withdrawn first")
}

// An abort ends the turn before it waits for anything, and queued turns do not start before they are removed.
func TestAnAbortTellsTheTurnToEndFirst(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	h.submit(t, here, "waiting")
	by := orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser}
	report, err := h.Stop(t.Context(), by, func(s *orchestrator.Stopping) {
		if s == nil {
			t.Fatal("it is told that nothing runs")
		}
		<-s.Over
		if !slices.Contains(h.chat.log(), "aborted running") {
			t.Error("the turn is over, and the chat does not show it")
		}
	}, storeNothing)
	if err != nil || report.Dropped != 1 {
		t.Errorf("abort: %+v, %v", report, err)
	}
	h.agent.mu.Lock()
	h.agent.reply = echo
	h.agent.mu.Unlock()
	h.submit(t, here, "after")
	h.await(t, "done after")
	if diff := cmp.Diff([]string{"running", "after"}, h.agent.prompts()); diff != "" {
		t.Errorf("what ran: %s", diff)
	}
}

// After an abort or a new session, the parts of an answer that the chat does not show yet are not sent, and the next
// turn runs.
func TestAnAbortEndsADelivery(t *testing.T) {
	for name, end := range map[string]func(*house) cli.TurnID{
		"abort": func(h *house) cli.TurnID {
			report, err := h.Abort(t.Context(), here)
			if err != nil {
				t.Error(err)
			}
			return report.Unshown
		},
		"new": func(h *house) cli.TurnID {
			if err := h.New(t.Context(), here); err != nil {
				t.Error(err)
			}
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.chat.stuck = make(chan struct{})
			first := h.submit(t, here, "first")
			h.await(t, "showing first")
			if unshown := end(h); name == "abort" && unshown != first.Turn {
				t.Errorf("the abort says that %q is not shown, want %q", unshown, first.Turn)
			}
			h.submit(t, here, "second")
			h.await(t, "showing second")
			h.await(t, "withdrawn first")
			h.eventually(t, "the first turn to be delivered", func() bool {
				turn, err := h.db.Turn(t.Context(), first.Turn)
				return err == nil && turn.State == orchestrator.TurnDone && turn.Outcome.Announce == orchestrator.Unwanted && turn.Delivered
			})
			close(h.chat.stuck)
			h.await(t, "done second")
		})
	}
}

func TestAnAbortDoesNotWaitForAnAgentThatIsSlowToDie(t *testing.T) {
	h := open(t)
	began, dead := make(chan struct{}), make(chan struct{})
	h.agent.reply = func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result {
		close(began)
		<-dead
		return cli.Result{Aborted: true}
	}
	h.submit(t, here, "stubborn")
	<-began
	if _, err := h.Abort(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(h.chat.log(), "aborted stubborn") {
		t.Error("the card claims an end that has not come")
	}
	close(dead)
	h.await(t, "aborted stubborn")
}

func TestCancelTakesATurnOutOfTheQueue(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	r := h.submit(t, here, "waiting")
	for i, want := range []bool{true, false} {
		ok, err := h.CancelQueued(t.Context(), r.Turn, orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser})
		if err != nil || ok != want {
			t.Errorf("press %d: %v, %v", i, ok, err)
		}
	}
	h.await(t, "unqueued waiting")
}

func TestConversationsDoNotWaitForEachOther(t *testing.T) {
	h := open(t)
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if req.Prompt == "blocked" {
			return untilAborted(ctx, who, req, emit)
		}
		return echo(ctx, who, req, emit)
	}
	h.submit(t, orchestrator.ConversationID{Chat: 1}, "blocked")
	for i := range 20 {
		id := orchestrator.ConversationID{Chat: 100, Topic: i}
		h.submit(t, id, fmt.Sprint("p", i))
		if err := h.New(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := h.SetModel(t.Context(), id, "claude", "opus", "high"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		h.await(t, fmt.Sprint("done p", i))
	}
}

func TestNewBeginsAnotherSessionAndLeavesTheRunningTurnAlone(t *testing.T) {
	h := open(t)
	h.submit(t, here, "old")
	h.await(t, "done old")
	if err := h.New(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "new")
	h.await(t, "done new")
	requests := h.agent.requests()
	if last := requests[len(requests)-1]; last.Resume != "" || last.Prompt != "new" {
		t.Errorf("the new session resumes %q with %q", last.Resume, last.Prompt)
	}
	sessions, err := h.Sessions(t.Context(), here)
	if err != nil || len(sessions) != 2 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	if err := h.Resume(t.Context(), sessions[1], orchestrator.AgentEnv{}); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "back")
	h.await(t, "done back")
	requests = h.agent.requests()
	if last := requests[len(requests)-1]; last.Resume != "native-claude" {
		t.Errorf("the resumed session is %q", last.Resume)
	}
}

func TestAnotherAgentIsToldWhatItMissed(t *testing.T) {
	h := open(t)
	say := func(agent cli.Agent, text string) string {
		if err := h.SetModel(t.Context(), here, agent, "", ""); err != nil {
			t.Fatal(err)
		}
		h.submit(t, here, text)
		h.await(t, "done "+text)
		requests := h.agent.requests()
		return requests[len(requests)-1].Prompt
	}
	say("claude", "alpha")
	joined := say("codex", "beta")
	if !strings.Contains(joined, "User: alpha") || !strings.Contains(joined, "Assistant (claude): echo: alpha") || !strings.HasSuffix(joined, "beta") {
		t.Errorf("codex was told %q", joined)
	}
	back := say("claude", "gamma")
	if strings.Contains(back, "alpha\nAssistant (claude)") || !strings.Contains(back, "User: beta") {
		t.Errorf("claude was told %q", back)
	}
	if again := say("claude", "delta"); again != "delta" {
		t.Errorf("claude, which missed nothing, was told %q", again)
	}
}

func TestALostSessionGoesOnFreshWithTheHistory(t *testing.T) {
	h := open(t)
	h.submit(t, here, "before")
	h.await(t, "done before")
	h.agent.mu.Lock()
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if req.Resume != "" {
			return cli.Result{Err: cli.Failf(cli.ResumeFailed, who, "gone")}
		}
		return echo(ctx, who, req, emit)
	}
	h.agent.mu.Unlock()
	h.submit(t, here, "after")
	h.await(t, "done after")
	requests := h.agent.requests()
	if len(requests) != 3 || !strings.Contains(requests[2].Prompt, "User: before") || !strings.HasSuffix(requests[2].Prompt, "after") {
		t.Errorf("asked %+v", requests)
	}
}

func TestAFailureIsToldAndOffersWhatHelps(t *testing.T) {
	h := open(t)
	h.agent.reply = func(_ context.Context, who cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
		return cli.Result{Text: "half", Err: &cli.Failure{Kind: cli.Crashed, Agent: who, Code: 3}}
	}
	r := h.submit(t, here, "hello")
	h.await(t, "failed hello")
	h.shut()
	turn, err := h.db.Turn(t.Context(), r.Turn)
	if err != nil {
		t.Fatal(err)
	}
	if o := turn.Outcome; o.Text != "half" || !o.Recovery.Offers(orchestrator.ActionAgain) || !strings.Contains(o.Failure, "exit code 3") {
		t.Errorf("outcome %+v", o)
	}
	if len(h.agent.requests()) != 1 {
		t.Errorf("a failed turn was run %d times", len(h.agent.requests()))
	}
}

func TestResetRules(t *testing.T) {
	cases := []struct {
		name    string
		idle    time.Duration
		daily   string
		pass    time.Duration
		resumes bool
	}{
		{"no rule", 0, "", 100 * time.Hour, true},
		{"idle, used", time.Hour, "", 59 * time.Minute, true},
		{"idle, unused", time.Hour, "", time.Hour, false},
		{"daily, same day", 0, "04:00", 15 * time.Hour, true},
		{"daily, next day", 0, "04:00", 17 * time.Hour, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := openAt(t, newPath(t), func(o *conversation.Options) {
				o.Sessions.IdleReset, o.Sessions.DailyReset = c.idle, c.daily
			})
			h.submit(t, here, "one")
			h.await(t, "done one")
			h.clock.advance(c.pass)
			h.submit(t, here, "two")
			h.await(t, "done two")
			if got := h.agent.requests()[1].Resume != ""; got != c.resumes {
				t.Errorf("resumed: %v", got)
			}
		})
	}
}

func TestASessionThatWasResetCanBeGoneOnWith(t *testing.T) {
	h := openAt(t, newPath(t), func(o *conversation.Options) { o.Sessions.IdleReset = time.Hour })
	h.submit(t, here, "one")
	h.await(t, "done one")
	sessions, err := h.Sessions(t.Context(), here)
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	h.clock.advance(2 * time.Hour)
	must(t, h.db.TouchSession(t.Context(), sessions[0].ID, h.clock.now())) // as package sessions does
	if err := h.Resume(t.Context(), sessions[0], orchestrator.AgentEnv{}); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "two")
	h.await(t, "done two")
	if got := h.agent.requests()[1].Resume; got != "native-claude" {
		t.Errorf("resumed %q", got)
	}
}

// Prompts that wait in a session when it ends run together in the next session, also after a restart.
func TestPromptsThatWaitInAnEndedSessionRunTogether(t *testing.T) {
	path := newPath(t)
	expiring := func(o *conversation.Options) { o.Sessions.IdleReset = time.Hour }
	h := openAt(t, path, expiring)
	ended := h.submit(t, here, "one").Turn
	h.await(t, "done one")
	h.agent.replies(untilAborted)
	running := h.submit(t, here, "running").Turn
	h.awaitAsked(t, 2)
	waiting := []cli.TurnID{h.submit(t, here, "a").Turn, h.submit(t, here, "b").Turn}
	h.shut()
	h.db.Close()

	next := openAt(t, path, expiring)
	next.clock.advance(2 * time.Hour)
	next.recover(t)
	next.await(t, "done b")
	session := func(id cli.TurnID) orchestrator.SessionID {
		turn, err := next.db.Turn(t.Context(), id)
		must(t, err)
		return turn.Session
	}
	first := session(waiting[0])
	if first == session(ended) || session(ended) != session(running) || first != session(waiting[1]) {
		t.Errorf("the ended session is %s; a runs in %s, b in %s", session(ended), first, session(waiting[1]))
	}
	// Nor does a repeated prompt of the ended session replace the current one.
	again, err := next.Choose(t.Context(), ended, orchestrator.ActionAgain, by(1, here))
	must(t, err)
	next.await(t, "done one")
	if session(again.Turn) != first {
		t.Errorf("the repeated prompt runs in %s and not in the current session %s", session(again.Turn), first)
	}
}

func TestADirectoryStaysInsideTheRoots(t *testing.T) {
	root := t.TempDir()
	outside := t.TempDir()
	for _, dir := range []string{"sub/deep", "sibling"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "escape")); err != nil {
		t.Fatal(err)
	}
	h := openAt(t, newPath(t), func(o *conversation.Options) { o.Dir, o.Roots = root, []string{root} })
	cases := []struct {
		path string
		err  error
	}{
		{"sub", nil}, {"deep", nil}, {"../../sibling", nil}, {root, nil},
		{"..", orchestrator.ErrOutsideRoot}, {"/etc", orchestrator.ErrOutsideRoot},
		{filepath.Join(root, "escape"), orchestrator.ErrOutsideRoot},
		{"nowhere", orchestrator.ErrNotADir}, {root + "-sibling", orchestrator.ErrNotADir},
	}
	for _, c := range cases {
		if dir, err := h.SetDir(t.Context(), here, c.path, owner); !errors.Is(err, c.err) {
			t.Errorf("/cwd %s: %q, %v; want %v", c.path, dir, err, c.err)
		}
	}
}

func TestWhatAnEarlierDuctorLeftIsTakenUp(t *testing.T) {
	path := newPath(t)
	before := openAt(t, path, nil)
	before.agent.reply = untilAborted
	before.submit(t, here, "running")
	before.submit(t, here, "waiting")
	before.awaitAsked(t, 1)
	// The process dies here: nothing reaches the store any more.
	after := openAt(t, path, nil)
	if err := after.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	after.await(t, "redelivered running: interrupted")
	after.await(t, "done waiting")
	if diff := cmp.Diff([]string{"waiting"}, after.agent.prompts()); diff != "" {
		t.Errorf("what ran: %s", diff)
	}
	after.shut()
	left, err := after.db.OpenTurns(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("still open: %v, %v", left, err)
	}
}

func TestAnOutcomeTheChatDidNotTakeIsShownAfterTheNextStart(t *testing.T) {
	path := newPath(t)
	before := openAt(t, path, nil)
	before.chat.takes(errors.New("no network"))
	r := before.submit(t, here, "hello")
	before.awaitEnded(t, r.Turn)
	before.shut()
	after := openAt(t, path, nil)
	if err := after.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	after.await(t, "redelivered hello: done")
	after.shut()
	if turn, err := after.db.Turn(t.Context(), r.Turn); err != nil || !turn.Delivered {
		t.Errorf("%+v, %v", turn, err)
	}
	if len(after.agent.prompts()) != 0 {
		t.Error("a turn that had ended was run again")
	}
}

func TestAnOutcomeTheChatDidNotTakeIsTriedAgain(t *testing.T) {
	h := open(t)
	h.chat.takes(errors.New("the disk is full"))
	r := h.submit(t, here, "hello")
	h.awaitEnded(t, r.Turn)
	h.submit(t, there, "and here")
	h.awaitAsked(t, 2)
	h.chat.takes(nil)
	h.await(t, "done hello")
	h.eventually(t, "it is known to be delivered", func() bool {
		turn, err := h.db.Turn(t.Context(), r.Turn)
		return err == nil && turn.Delivered
	})
	if n := strings.Count(strings.Join(h.chat.log(), "\n"), "done hello"); n != 1 {
		t.Errorf("it is shown %d times", n)
	}
}

func TestRunAgainRunsOnce(t *testing.T) {
	h := open(t)
	r := h.submit(t, here, "hello")
	h.await(t, "done hello")
	press := orchestrator.Press{Conversation: here, Person: 1, Updates: []int64{1 << 40}, Role: orchestrator.RoleUser}
	if _, err := h.Choose(t.Context(), r.Turn, orchestrator.ActionAgain, orchestrator.Press{Conversation: there, Role: orchestrator.RoleUser}); !errors.Is(err, orchestrator.ErrElsewhere) {
		t.Errorf("another conversation: %v", err)
	}
	h.awaitEnded(t, r.Turn)
	if _, err := h.Choose(t.Context(), r.Turn, orchestrator.ActionAgain, press); err != nil {
		t.Fatal(err)
	}
	press.Updates = []int64{1<<40 + 1}
	if _, err := h.Choose(t.Context(), r.Turn, orchestrator.ActionAgain, press); !errors.Is(err, orchestrator.ErrRepeated) {
		t.Errorf("second press: %v", err)
	}
	h.awaitAsked(t, 2)
	if diff := cmp.Diff([]string{"hello", "hello"}, h.agent.prompts()); diff != "" {
		t.Errorf("what ran: %s", diff)
	}
	if _, err := h.Choose(t.Context(), "no such turn", orchestrator.ActionAgain, press); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("unknown turn: %v", err)
	}
}

func TestAChatThatCannotBeReachedDoesNotStopTheQueue(t *testing.T) {
	h := open(t)
	h.chat.stuck = make(chan struct{})
	h.submit(t, here, "one")
	h.submit(t, here, "two")
	h.awaitAsked(t, 2)
	close(h.chat.stuck)
	h.await(t, "done one")
	h.await(t, "done two")
}

// The messages of two answers do not mix, however long the chat takes to show the first.
func TestAnAnswerIsCompleteBeforeTheNextOneBegins(t *testing.T) {
	h := open(t)
	h.chat.stuck = make(chan struct{})
	h.submit(t, here, "one")
	h.await(t, "showing one")
	second := h.submit(t, here, "two")
	h.awaitEnded(t, second.Turn) // it runs although the chat does not show the first answer
	if got := h.chat.opened(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("cards of %q are open while the first answer is shown", got)
	}
	close(h.chat.stuck)
	h.await(t, "done two")
	seen := h.chat.log()
	if first, next := slices.Index(seen, "done one"), slices.Index(seen, "showing two"); first < 0 || next < first {
		t.Errorf("the answers mix: %q", seen)
	}
	if got := h.chat.opened(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("cards of %q were opened", got)
	}
}

func TestCloseInterruptsAndKeepsTheQueue(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	waiting := h.submit(t, here, "waiting")
	h.awaitAsked(t, 1)
	h.shut()
	h.await(t, "interrupted running")
	if turn, err := h.db.Turn(t.Context(), waiting.Turn); err != nil || turn.State != orchestrator.TurnQueued {
		t.Errorf("the waiting turn is %s, %v", turn.State, err)
	}
	if _, err := h.Submit(t.Context(), orchestrator.Prompt{Conversation: here}, orchestrator.Wants{}); !errors.Is(err, orchestrator.ErrShutdown) {
		t.Errorf("submit after close: %v", err)
	}
}

func (h *house) awaitAsked(t testing.TB, n int) {
	t.Helper()
	h.eventually(t, fmt.Sprintf("%d prompts asked", n), func() bool { return len(h.agent.requests()) >= n })
}

func (h *house) awaitEnded(t testing.TB, id cli.TurnID) {
	t.Helper()
	h.eventually(t, "turn ended", func() bool {
		turn, err := h.db.Turn(t.Context(), id)
		return err == nil && !turn.Ended.IsZero()
	})
}
