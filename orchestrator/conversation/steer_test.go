package conversation_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// busy opens a house whose agent works on "running" until end is closed, while "a", "b" and "c" wait.
func busy(t *testing.T) (h *house, end chan struct{}, waiting map[string]orchestrator.Receipt) {
	t.Helper()
	h, end, waiting = open(t), make(chan struct{}), map[string]orchestrator.Receipt{}
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if lastLine(req.Prompt) == "running" {
			select {
			case <-end:
			case <-ctx.Done():
				return cli.Cut(ctx, who)
			}
		}
		return echo(ctx, who, req, emit)
	}
	waiting["running"] = h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	for _, text := range []string{"a", "b", "c"} {
		waiting[text] = h.submit(t, here, text)
	}
	return h, end, waiting
}

func TestAWaitingPromptIsHandedToTheRunningTurn(t *testing.T) {
	h, end, waiting := busy(t)
	var into cli.TurnID
	var said []string
	h.agent.steer = func(turn cli.TurnID, req cli.Request) error {
		into, said = turn, append(said, req.Prompt)
		return nil
	}
	if err := h.Steer(t.Context(), waiting["b"].Turn, by(1, here)); err != nil {
		t.Fatal(err)
	}
	if err := h.Steer(t.Context(), waiting["b"].Turn, by(1, here)); !errors.Is(err, orchestrator.ErrNotWaiting) {
		t.Errorf("a second press: %v", err)
	}
	if err := h.Steer(t.Context(), waiting["a"].Turn, by(1, there)); !errors.Is(err, orchestrator.ErrNotWaiting) {
		t.Errorf("from another topic: %v", err)
	}
	close(end)
	h.await(t, "done c")
	if diff := cmp.Diff([]string{"b"}, said); diff != "" || into != waiting["running"].Turn {
		t.Errorf("steered into %s: %s", into, diff)
	}
	if diff := cmp.Diff([]string{"running", "a", "c"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	turn, err := h.db.Turn(t.Context(), waiting["b"].Turn)
	if err != nil || turn.State != orchestrator.TurnSteered || turn.Entry.Into != into || !turn.Delivered || turn.Agent != "claude" {
		t.Errorf("stored as %+v, %v", turn, err)
	}
	if !slices.Contains(h.chat.log(), "unqueued b") {
		t.Error("its queue card stays")
	}
	history, err := h.db.History(t.Context(), turn.Session, 10)
	if err != nil || len(history) != 4 || history[1].Prompt.Text != "b" {
		t.Errorf("the history is %+v, %v", history, err)
	}
}

func TestWhatTheAgentDoesNotTakeRunsNext(t *testing.T) {
	for _, refusal := range []error{nil, cli.ErrNoTurn} { // nil: it cannot at all
		h, end, waiting := busy(t)
		if refusal != nil {
			h.agent.steer = func(cli.TurnID, cli.Request) error { return refusal }
		}
		if err := h.Steer(t.Context(), waiting["b"].Turn, by(1, here)); !errors.Is(err, orchestrator.ErrCannotSteer) {
			t.Errorf("steer: %v", err)
		}
		open, err := h.db.OpenTurns(t.Context())
		if err != nil || len(open) != 4 || open[1].Prompt.Text != "b" || open[1].State != orchestrator.TurnQueued || open[1].Entry.Into != "" {
			t.Errorf("stored are %+v, %v", open, err)
		}
		close(end)
		h.await(t, "done c")
		if diff := cmp.Diff([]string{"running", "b", "a", "c"}, h.agent.prompts()); diff != "" {
			t.Errorf("what was asked: %s", diff)
		}
	}
}

// In the mode steer, the message after /new was handed to the running turn of the old session. In the mode interrupt, it
// aborted that turn.
func TestThePromptOfANewSessionWaitsForTheOldOne(t *testing.T) {
	for _, mode := range []orchestrator.BusyMode{orchestrator.BusySteer, orchestrator.BusyInterrupt} {
		h, end, waiting := busy(t)
		h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
		if ok, err := h.CancelQueued(t.Context(), waiting["c"].Turn, by(1, here)); !ok || err != nil { // make room
			t.Fatal(err)
		}
		if err := h.New(t.Context(), here); err != nil {
			t.Fatal(err)
		}
		if err := h.Set(t.Context(), here, orchestrator.SettingBusy, string(mode)); err != nil {
			t.Fatal(err)
		}
		next := h.submit(t, here, "new")
		if next.Did != orchestrator.BusyQueue {
			t.Errorf("the mode is %q", next.Did)
		}
		old, err := h.db.Turn(t.Context(), waiting["running"].Turn)
		if err != nil {
			t.Fatal(err)
		}
		close(end)
		h.await(t, "done new")
		asked, err := h.db.Turn(t.Context(), next.Turn)
		if err != nil || asked.Session == "" || asked.Session == old.Session {
			t.Errorf("the new turn is %+v, %v; the old session is %s", asked, err, old.Session)
		}
		old, err = h.db.Turn(t.Context(), old.ID)
		if err != nil || old.State != orchestrator.TurnDone {
			t.Errorf("%s: the old turn is %s, %v", mode, old.State, err)
		}
	}
}

func TestAPromptThatPerhapsArrivedIsNotAskedAgain(t *testing.T) {
	h, end, waiting := busy(t)
	h.agent.steer = func(cli.TurnID, cli.Request) error { return context.DeadlineExceeded }
	if err := h.Steer(t.Context(), waiting["b"].Turn, by(1, here)); !errors.Is(err, orchestrator.ErrSteerUnknown) {
		t.Errorf("steer: %v", err)
	}
	h.await(t, "redelivered b: interrupted")
	close(end)
	h.await(t, "done c")
	if diff := cmp.Diff([]string{"running", "a", "c"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
}

// If ductor and the agent of a turn die while a message is being steered into the turn or after that, it is unknown
// whether the model read the message.
func TestDuctorDiesWithAMessageThatItSteered(t *testing.T) {
	for _, marked := range []bool{false, true} {
		path := newPath(t)
		before := openAt(t, path, nil)
		before.agent.reply = untilAborted
		running := before.submit(t, here, "running")
		before.awaitAsked(t, 1)
		waiting := before.submit(t, here, "waiting")
		ok, err := before.db.SteerTurn(t.Context(), waiting.Turn, running.Turn, before.clock.now())
		if err == nil && ok && marked {
			ok, err = before.db.MarkSteered(t.Context(), waiting.Turn, running.Turn)
		}
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		before.Detach(t.Context())
		h := openAt(t, path, nil)
		h.recover(t)
		h.await(t, "redelivered waiting: interrupted")
		if len(h.agent.prompts()) > 0 {
			t.Errorf("asked %q", h.agent.prompts())
		}
		h.shut()
		turn, err := h.db.Turn(t.Context(), waiting.Turn)
		again := turn.Outcome.Recovery.Offers(orchestrator.ActionAgain)
		if err != nil || turn.State != orchestrator.TurnInterrupted || !again {
			t.Errorf("marked %v: stored as %+v, %v", marked, turn, err)
		}
	}
}

// If ductor and then the agent die, the chat offers to run only those messages again of which the agent's output does
// not prove that its model read them.
func TestOutputProvesThatASteeredMessageWasRead(t *testing.T) {
	path := newPath(t)
	before := openAt(t, path, nil)
	before.agent.reply = untilAborted
	running := before.submit(t, here, "running")
	before.awaitAsked(t, 1)
	read, doubtful := before.submit(t, here, "read").Turn, before.submit(t, here, "doubtful").Turn
	for _, id := range []cli.TurnID{read, doubtful} {
		if ok, err := before.db.SteerTurn(t.Context(), id, running.Turn, before.clock.now()); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if ok, err := before.db.MarkSteered(t.Context(), id, running.Turn); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	before.Detach(t.Context())

	h := successorOf(t, path, map[string]cli.Remains{"running": cli.RemainsRun})
	h.agent.reply = func(_ context.Context, who cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
		result := cli.Result{Err: cli.Failf(cli.Crashed, who, "")}
		result.Steered.Read = []cli.TurnID{read}
		return result
	}
	h.recover(t)
	h.await(t, "redelivered doubtful: interrupted")
	h.shut()
	for id, want := range map[cli.TurnID]orchestrator.TurnState{
		read: orchestrator.TurnSteered, doubtful: orchestrator.TurnInterrupted,
	} {
		if turn, err := h.db.Turn(t.Context(), id); err != nil || turn.State != want || !turn.Delivered {
			t.Errorf("%s is stored as %+v, %v", turn.Prompt.Text, turn, err)
		}
	}
}

func TestAnAbortWhileItSteersDropsWhatComesBack(t *testing.T) {
	h, _, waiting := busy(t)
	h.agent.steer = func(cli.TurnID, cli.Request) error {
		if _, err := h.Abort(context.Background(), here); err != nil {
			t.Error(err)
		}
		return cli.ErrNoTurn
	}
	if err := h.Steer(t.Context(), waiting["b"].Turn, by(1, here)); !errors.Is(err, orchestrator.ErrNotWaiting) {
		t.Errorf("steer: %v", err)
	}
	h.await(t, "aborted running")
	h.shut()
	if diff := cmp.Diff([]string{"running"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	if turn, err := h.db.Turn(t.Context(), waiting["b"].Turn); err != nil || turn.State != orchestrator.TurnCancelled {
		t.Errorf("stored as %+v, %v", turn, err)
	}
}

func TestInterruptRunsOneNextAndKeepsTheRest(t *testing.T) {
	h, _, waiting := busy(t)
	if err := h.Interrupt(t.Context(), waiting["c"].Turn, by(1, here)); err != nil {
		t.Fatal(err)
	}
	h.await(t, "aborted running")
	h.await(t, "done b")
	if diff := cmp.Diff([]string{"running", "c", "a", "b"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	if err := h.Interrupt(t.Context(), waiting["c"].Turn, by(1, here)); !errors.Is(err, orchestrator.ErrNotWaiting) {
		t.Errorf("a second press: %v", err)
	}
}

func TestTheRunningPromptIsEditedByStartingAnew(t *testing.T) {
	h, _, waiting := busy(t)
	running := waiting["running"].Turn
	if _, err := h.Restart(t.Context(), running, "better", by(1, there)); !errors.Is(err, orchestrator.ErrElsewhere) {
		t.Errorf("from another topic: %v", err)
	}
	if _, err := h.Restart(t.Context(), waiting["a"].Turn, "better", by(1, here)); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("of one that waits: %v", err)
	}
	r, err := h.Restart(t.Context(), running, "better", by(1, here))
	if err != nil || r.Turn == "" {
		t.Fatal(r, err)
	}
	h.await(t, "done c")
	if diff := cmp.Diff([]string{"running", "better", "a", "b", "c"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	if _, err := h.Restart(t.Context(), running, "better", by(1, here)); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("a second press: %v", err)
	}
	turn, err := h.db.Turn(t.Context(), r.Turn)
	if err != nil || turn.Again != running || turn.Prompt.Text != "better" {
		t.Errorf("stored as %+v, %v", turn, err)
	}
}

func TestAConversationSaysWhatBecomesOfAPromptWhileATurnRuns(t *testing.T) {
	if err := open(t).Set(t.Context(), here, orchestrator.SettingBusy, "never"); !errors.Is(err, orchestrator.ErrBadChoice) {
		t.Errorf("a mode that is none: %v", err)
	}
	for _, tc := range []struct {
		mode  orchestrator.BusyMode
		can   bool
		did   orchestrator.BusyMode
		asked []string
	}{
		{orchestrator.BusyQueue, true, orchestrator.BusyQueue, []string{"running", "a", "b", "new"}},
		{orchestrator.BusySteer, true, orchestrator.BusySteer, []string{"running", "a", "b"}},
		{orchestrator.BusySteer, false, orchestrator.BusyQueue, []string{"running", "new", "a", "b"}},
		{orchestrator.BusyInterrupt, true, orchestrator.BusyInterrupt, []string{"running", "new", "a", "b"}},
	} {
		h, end, waiting := busy(t)
		if tc.can {
			h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
		}
		if ok, err := h.CancelQueued(t.Context(), waiting["c"].Turn, by(1, here)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := h.Set(t.Context(), here, orchestrator.SettingBusy, string(tc.mode)); err != nil {
			t.Fatal(err)
		}
		if st, err := h.Status(t.Context(), here); err != nil || st.Settings.Busy != tc.mode ||
			st.Running.Message == 0 {
			t.Errorf("status %+v, %v", st, err)
		}
		receipt := h.submit(t, here, "new")
		if receipt.Did != tc.did {
			t.Errorf("%s did %s", tc.mode, receipt.Did)
		}
		if tc.did != orchestrator.BusyInterrupt {
			close(end)
		}
		h.eventually(t, "all to be asked", func() bool { return len(h.agent.prompts()) == len(tc.asked) })
		h.await(t, "done b")
		if diff := cmp.Diff(tc.asked, h.agent.prompts()); diff != "" {
			t.Errorf("%s: %s", tc.mode, diff)
		}
		if queued := slices.Contains(h.chat.log(), "queued new behind 3"); queued != (tc.did == orchestrator.BusyQueue) {
			t.Errorf("%s: the chat says %q", tc.mode, h.chat.log())
		}
	}
}

// A message that was added to a command of the agent reached the agent as part of a command. Claude then read the files
// that a stranger's forwarded message named.
func TestARunningCommandGetsNoMessages(t *testing.T) {
	h, end := open(t), make(chan struct{})
	h.agent.reply = untilClosed(end)
	h.agent.steer = func(_ cli.TurnID, req cli.Request) error {
		t.Errorf("the agent got %q", req.Prompt)
		return nil
	}
	h.runCommand(t, "/review")
	h.awaitAsked(t, 1)
	if err := h.Set(t.Context(), here, orchestrator.SettingBusy, string(orchestrator.BusySteer)); err != nil {
		t.Fatal(err)
	}
	var last orchestrator.Receipt
	for _, text := range []string{"see @/etc/passwd", "b", "c"} {
		if last = h.submit(t, here, text); last.Did != orchestrator.BusyQueue {
			t.Errorf("%q: %+v", text, last)
		}
	}
	if err := h.Steer(t.Context(), last.Turn, by(1, here)); !errors.Is(err, orchestrator.ErrCannotSteer) {
		t.Errorf("steer: %v", err)
	}
	close(end)
	h.await(t, "done b")
	if diff := cmp.Diff([]string{"/review", "c", "see @/etc/passwd", "b"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
}

func TestAWaitingCommandJoinsNoPrompt(t *testing.T) {
	h, end, waiting := busy(t)
	h.agent.steer = func(_ cli.TurnID, req cli.Request) error {
		t.Errorf("the agent got %q", req.Prompt)
		return nil
	}
	if ok, err := h.CancelQueued(t.Context(), waiting["c"].Turn, by(1, here)); err != nil || !ok {
		t.Fatal(ok, err)
	}
	command, _ := h.runCommand(t, "/review")
	if err := h.Steer(t.Context(), command.Turn, by(1, here)); !errors.Is(err, orchestrator.ErrCannotSteer) {
		t.Errorf("steer: %v", err)
	}
	close(end)
	h.await(t, "done /review")
	if req := h.agent.requests()[3]; req.Prompt != "/review" || req.Task != cli.TaskCommand {
		t.Errorf("the agent got %q as %q", req.Prompt, req.Task)
	}
}

// The text of an edited command was a command, too. It may quote a stranger's message.
func TestAnEditedCommandIsAPrompt(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	running, _ := h.runCommand(t, "/review")
	h.awaitAsked(t, 1)
	h.agent.replies(echo)
	_, second := h.runCommand(t, "/review")
	if ok, err := h.EditQueued(t.Context(), here, second.Message, "> @/etc/passwd\n\nedited"); err != nil || !ok {
		t.Fatalf("edit the command that waits: %v, %v", ok, err)
	}
	if _, err := h.Restart(t.Context(), running.Turn, "> @/etc/passwd\n\nrestarted", by(1, here)); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done > @/etc/passwd\n\nedited")
	if diff := cmp.Diff([]string{"/review", "restarted", "edited"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	for _, req := range h.agent.requests()[1:] {
		if req.Task != cli.TaskPrompt {
			t.Errorf("%q was the task %q", req.Prompt, req.Task)
		}
	}
}

// slowStart is an agent whose check for availability takes until go is closed.
type slowStart struct {
	*agent
	begin chan struct{}
}

func (s slowStart) Default(ctx context.Context, in cli.Sandbox, of cli.Accounts) (cli.Agent, *cli.Failure, error) {
	<-s.begin
	return s.agent.Default(ctx, in, of)
}

func TestAPromptCannotBeHandedToATurnThatHasNotBegun(t *testing.T) {
	begin := make(chan struct{})
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		o.Gateway = slowStart{o.Gateway.(*agent), begin}
	})
	h.submit(t, here, "running")
	h.submit(t, here, "a")
	b := h.submit(t, here, "b")
	if err := h.Steer(t.Context(), b.Turn, by(1, here)); !errors.Is(err, orchestrator.ErrCannotSteer) {
		t.Errorf("steer: %v", err)
	}
	close(begin)
	h.await(t, "done a")
	if diff := cmp.Diff([]string{"running", "b", "a"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
}

// A message that was steered into a turn runs afterwards if the agent did not read it, also if the turn was repeated,
// and also after an earlier abort.
func TestAMessageThatTheAgentDidNotReadRuns(t *testing.T) {
	for name, kind := range map[string]cli.FailureKind{
		"the agent ends": cli.Crashed, "the turn is repeated": cli.TimedOut,
	} {
		t.Run(name, func(t *testing.T) {
			h, end, steered := open(t), make(chan struct{}), make(chan cli.TurnID, 1)
			h.submit(t, here, "earlier")
			h.await(t, "done earlier")
			if _, err := h.Abort(t.Context(), here); err != nil {
				t.Fatal(err)
			}
			h.agent.steer = func(cli.TurnID, cli.Request) error { return nil }
			h.agent.replies(func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
				if lastLine(req.Prompt) != "running" {
					return echo(ctx, who, req, emit)
				}
				select {
				case <-end: // the second attempt
					return echo(ctx, who, req, emit)
				case id := <-steered:
					close(end)
					result := cli.Result{Err: &cli.Failure{Kind: kind, Agent: who}}
					result.Steered.Unread = []cli.TurnID{id}
					return result
				}
			})
			h.submit(t, here, "running")
			h.awaitAsked(t, 2)
			waiting := h.submit(t, here, "a").Turn
			if err := h.Steer(t.Context(), waiting, by(1, here)); err != nil {
				t.Fatal(err)
			}
			steered <- waiting
			h.await(t, "done a")
		})
	}
}

// The turn may end without having read a message before its sender learns that the agent has it.
func TestAMessageThatRunsBeforeItIsRecordedAsSteered(t *testing.T) {
	h, steered, finished := open(t), make(chan cli.TurnID, 1), make(chan struct{})
	h.agent.replies(func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if lastLine(req.Prompt) != "running" {
			return echo(ctx, who, req, emit)
		}
		id, first := <-steered
		if !first { // the second attempt
			return echo(ctx, who, req, emit)
		}
		result := cli.Result{Err: &cli.Failure{Kind: cli.Crashed, Agent: who}}
		result.Steered.Unread = []cli.TurnID{id}
		return result
	})
	h.agent.steer = func(_ cli.TurnID, req cli.Request) error {
		steered <- req.Turn
		close(steered)
		<-finished
		return nil
	}
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	waiting := h.submit(t, here, "a").Turn
	result := make(chan error, 1)
	go func() { result <- h.Steer(t.Context(), waiting, by(1, here)) }()
	h.await(t, "done a")
	close(finished)
	if err := <-result; !errors.Is(err, orchestrator.ErrCannotSteer) {
		t.Errorf("steer: %v", err)
	}
	if turn, err := h.db.Turn(t.Context(), waiting); err != nil || turn.State != orchestrator.TurnDone {
		t.Errorf("stored as %+v, %v", turn, err)
	}
	if diff := cmp.Diff([]string{"running", "running", "a"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
}
