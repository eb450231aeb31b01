package conversation

import (
	"context"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/retry"
)

// Recover continues the work of the previous process. Call it once, before the first Submit. Recover starts the
// following work, and returns before the work is done:
//   - Running turns continue in their cards. If a turn cannot continue, its card shows that it was interrupted. No
//     prompt runs twice.
//   - Chats get the outcomes that they do not show yet.
//   - Queued turns run.
//   - Messages that wrongly show a turn as waiting are corrected.
//
// The aborts are those that the previous process had not handled. No queued turn of their conversations starts before
// package bot has handled them.
func (e *Engine) Recover(ctx context.Context, aborts ...orchestrator.PendingAborts) error {
	for _, a := range aborts {
		e.AwaitAborts(a)
	}
	past, err := e.opts.Store.TurnsShownWaiting(ctx)
	if err != nil {
		return fmt.Errorf("load what is shown to wait: %w", err)
	}
	for _, t := range past {
		e.opts.Chat.Unqueued(t)
	}
	turns, err := e.opts.Store.OpenTurns(ctx)
	if err != nil {
		return fmt.Errorf("load open turns: %w", err)
	}
	open, err := e.opts.Store.RunningTurns(ctx)
	if err != nil {
		return fmt.Errorf("load what may run: %w", err)
	}
	remains, err := e.opts.Gateway.Survey(ctx, open)
	if err != nil {
		e.log.Error("survey the previous process", "err", err)
	}
	for _, t := range slices.Clone(turns) {
		if t.State == orchestrator.TurnRunning && remains[t.ID] != cli.RemainsRun {
			turns = append(turns, e.doubtSteered(ctx, t.ID)...)
		}
	}
	for _, o := range open {
		if !o.Background || remains[o.Turn] == cli.RemainsRun {
			continue
		}
		log := e.log.With("turn", o.Turn)
		if _, err := e.retrier().Record(context.WithoutCancel(ctx), log, func(ctx context.Context) error {
			return e.opts.Store.EndBackground(ctx, o.Start.Run)
		}); err != nil { // a full disk, for example, must not prevent the start
			log.Error("record the end of background work", "err", err)
		}
	}
	if err := e.endBypasses(ctx, turns, remains); err != nil {
		return err
	}
	if err := e.approvals.WithdrawEnded(ctx, turns, remains); err != nil {
		return err
	}
	left := make(map[orchestrator.ConversationID][]waiting)
	for _, t := range turns {
		w := waiting{turn: t, shown: t.State == orchestrator.TurnQueued}
		if t.State == orchestrator.TurnRunning {
			w.remains, w.cardOpened = remains[t.ID], true
		}
		left[t.Prompt.Conversation] = append(left[t.Prompt.Conversation], w)
	}
	for id, turns := range left {
		c, err := e.conversation(id)
		if err != nil {
			return err
		}
		c.continueTurns(ctx, turns)
	}
	return nil
}

// AwaitAborts implements bot.Desk.
func (e *Engine) AwaitAborts(a orchestrator.PendingAborts) {
	c, err := e.conversation(a.Conversation)
	if err != nil { // the engine is closed, so no turn starts any more
		return
	}
	c.active.aborts.Add(1)
	go func() { // Close does not wait for this goroutine: the aborts may stay unhandled until ductor ends
		select {
		case <-a.Handled:
			if leave, ok := e.enter(); ok {
				defer leave()
				c.do(func(*conversation) { c.active.aborts.Add(-1) })
			}
		case <-e.life.Done():
		}
	}()
}

// doubtSteered returns the turns whose prompts were sent to a running turn before it was interrupted. It is unknown
// whether the agent has read these prompts, so the chat offers to run them again. doubtSteered leaves out the turns in
// alreadyRead, whose prompts the agent has certainly read.
func (e *Engine) doubtSteered(ctx context.Context, into cli.TurnID, alreadyRead ...cli.TurnID) []orchestrator.Turn {
	turns, err := e.opts.Store.DoubtSteered(ctx, into, alreadyRead...)
	if err != nil {
		e.log.Error("reopen messages of an interrupted turn", "turn", into, "err", err)
	}
	return turns
}

func (w waiting) canContinue() bool {
	return w.turn.State == orchestrator.TurnQueued || w.remains == cli.RemainsRun
}

// continueTurns restores the turns of a conversation after a restart, in this order: the turn that was running, ended
// turns that the chat does not show yet, and the queue.
func (c *conversation) continueTurns(ctx context.Context, turns []waiting) {
	var ended []orchestrator.Turn
	var ran, wait []waiting
	for _, w := range turns {
		switch {
		case !w.canContinue():
			ended = append(ended, w.turn)
		case w.remains != "":
			ran = append(ran, w)
		default:
			wait = append(wait, w)
		}
	}
	if !c.e.open() {
		return
	}
	redelivered := make(chan struct{})
	c.do(func(c *conversation) {
		// If a turn was running before the restart, make it the running turn at once, so that an abort finds it. Its
		// goroutine waits until redelivered is closed.
		c.start = start{later: len(ran) == 0, redelivered: redelivered}
		// A queued turn can have a card only if it was about to start, and so only if no other turn was running.
		for i := range wait {
			wait[i].cardOpened = len(ran) == 0
		}
		c.queue = slices.Concat(c.queue, ran, wait)
	})
	go func() {
		defer c.e.wg.Done()
		for _, t := range ended {
			c.redeliver(context.WithoutCancel(ctx), t)
		}
		close(redelivered)
		c.do(func(c *conversation) { c.start.later = false })
	}()
}

func (c *conversation) redeliver(ctx context.Context, t orchestrator.Turn) {
	stored := retry.Recorded()
	if t.State == orchestrator.TurnRunning || t.State == orchestrator.TurnSteered {
		why := lang.Key("turn.interrupted")
		switch {
		case t.State == orchestrator.TurnSteered:
			why = "turn.steer-unknown"
			c.e.opts.Chat.Unqueued(t)
		case t.Crashes >= orchestrator.MostCrashes:
			why = "turn.crashed"
		}
		t.State = orchestrator.TurnInterrupted
		t.Outcome = orchestrator.Outcome{State: orchestrator.TurnInterrupted, Agent: t.Agent, Model: t.Model,
			Failure: c.e.opts.Lang.Of(c.id().Chat).Text(why), Recovery: orchestrator.Repeatable()}
		t.Outcome.Announce = c.announcement(ctx, t)
		ended, log := c.e.now(), c.e.log.With("turn", t.ID)
		var err error
		stored, err = c.e.retrier().Record(ctx, log, func(ctx context.Context) error {
			return c.e.opts.Store.FinishTurn(ctx, t.ID, ended, t.Outcome)
		})
		if err != nil {
			log.Error("record interrupted turn", "err", err)
		}
	} else if t.Crashes >= orchestrator.MostCrashes {
		c.e.dropOutcome(ctx, t)
		return
	}
	show := func(ctx context.Context, o orchestrator.Outcome) error {
		t := t
		t.Outcome = o
		return c.e.opts.Chat.Redeliver(ctx, t)
	}
	c.deliver(ctx, delivery{turn: t, stored: stored, show: show, changed: c.e.runner.ChangesOf(ctx, t), amend: show})
}

// dropOutcome marks an outcome as delivered although the chat does not show it, and notifies the user.
func (e *Engine) dropOutcome(ctx context.Context, t orchestrator.Turn) {
	e.log.Error("an outcome is not shown: ductor crashed over it more than once", "turn", t.ID, "crashes", t.Crashes)
	if !e.notice(ctx, t.Prompt.Conversation, "turn.not-shown") {
		return
	}
	if err := e.opts.Store.MarkDelivered(ctx, t.ID); err != nil {
		e.log.Error("mark turn delivered", "turn", t.ID, "err", err)
	}
}
