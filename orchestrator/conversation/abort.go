package conversation

import (
	"cmp"
	"context"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

// Stop implements bot.Desk. No queued turn starts before the store has recorded the abort. As soon as the running turn
// has ended, its card shows that a user stopped it.
func (e *Engine) Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
	answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error) {
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return orchestrator.AbortReport{}, err
	}
	c.active.aborts.Add(1)
	first, _ := c.abortTurns(by)
	told(first)
	var report orchestrator.AbortReport
	c.do(func(now *conversation) {
		report, err = now.abort(context.WithoutCancel(ctx), by, first, answer)
		c.active.aborts.Add(-1)
	})
	return report, err
}

// StopTurn implements bot.Desk.
func (e *Engine) StopTurn(ctx context.Context, id cli.TurnID, by orchestrator.Press) error {
	_, err := e.stopTurn(ctx, id, by, cli.ErrAborted)
	return err
}

// stopTurn first aborts a running turn, and only then does anything that may block. cause is cli.ErrAborted or an error
// that wraps cli.ErrAborted; handleUnread uses cause to decide what happens to unread messages. stopTurn reports
// whether it has aborted the turn. It can abort the turn and also return an error, for example if the disk is full.
func (e *Engine) stopTurn(ctx context.Context, id cli.TurnID, by orchestrator.Press, cause error) (bool, error) {
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return false, err
	}
	r := c.active.turn(id)
	if r == nil {
		return false, e.notRunningError(ctx, id, by)
	}
	if c.abortTurn(r, by, cause) == nil {
		return false, orchestrator.ErrNotAllowed
	}
	c.do(func(*conversation) { err = e.recordAbort(ctx, []cli.TurnID{id}, nil, orchestrator.Handled{}) })
	return true, err
}

// recordAbort stores an abort. If the write fails, recordAbort returns the error and retries the write in the
// background. Without the stored abort, the next process would continue the aborted turns.
func (e *Engine) recordAbort(ctx context.Context, ending, dropped []cli.TurnID, handled orchestrator.Handled) error {
	_, err := e.retrier().Record(context.WithoutCancel(ctx), e.log, func(ctx context.Context) error {
		// If the first write fails, the caller tells the user. So only the first write stores the notices: if a later
		// write stored them, the user would get the same news twice.
		defer func() { handled.Notices = nil }()
		return e.opts.Store.AbortTurns(ctx, ending, dropped, handled)
	})
	if err != nil {
		err = fmt.Errorf("record abort: %w", err)
	}
	return err
}

// abortTurns aborts the running turns that the user may abort, and returns their IDs. It does not block.
func (c *conversation) abortTurns(by orchestrator.Press) (all *orchestrator.Stopping, ids []cli.TurnID) {
	for _, r := range c.active.turns() {
		if s := c.abortTurn(r, by, cli.ErrAborted); s != nil {
			all, ids = s.With(all), append(ids, r.turn.ID)
		}
	}
	return all, ids
}

// abortTurn aborts a turn. It does nothing and returns nil if the user may not abort the turn, or if the turn did not
// exist yet when the user pressed the button. It does not block.
func (c *conversation) abortTurn(r *running, by orchestrator.Press, cause error) *orchestrator.Stopping {
	if !by.MayEnd(r.turn) || by.Precedes(r.turn) {
		return nil
	}
	s := c.stopping(r)
	r.cancel(cause)
	return s
}

func (c *conversation) stopping(r *running) *orchestrator.Stopping {
	return &orchestrator.Stopping{Over: r.over, Alive: c.e.opts.Gateway.Outliving(r.turn.ID)}
}

// Stopping implements bot.Desk.
func (e *Engine) Stopping(id orchestrator.ConversationID) (s *orchestrator.Stopping) {
	c, err := e.conversation(id)
	if err != nil {
		return nil
	}
	c.do(func(c *conversation) {
		switch r := c.active.first(); {
		case r != nil && r.turn.Aborting:
			s = c.stopping(r)
		case c.start.redelivered != nil: // the turn has ended, but the chat does not show its outcome yet
			s = &orchestrator.Stopping{Over: c.start.redelivered,
				Alive: func(context.Context) []cli.ProcessName { return nil }}
		}
	})
	return s
}

// abort aborts the running turns and empties the queue. It calls answer with a report of what it aborted. In one
// transaction, abort stores the abort together with the updates and messages that answer returns.
//
// first is the turn that Stop has just aborted, or nil. This turn may have ended in the meantime.
func (c *conversation) abort(ctx context.Context, by orchestrator.Press, first *orchestrator.Stopping,
	answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error) {
	now := c.active.first() // may be a later turn than the one that Stop aborted
	s, ending := c.abortTurns(by)
	report := orchestrator.AbortReport{Stopping: cmp.Or(s, first)}
	report.Running = report.Stopping != nil
	var kept, dropped []waiting
	for _, w := range c.queue {
		if by.MayEnd(w.turn) && !by.Precedes(w.turn) {
			dropped = append(dropped, w)
		} else {
			kept = append(kept, w)
		}
	}
	c.queue, report.Dropped = kept, len(dropped)
	if by.May(orchestrator.EndAny) && (now == nil || !by.Precedes(now.turn)) {
		c.cleared++
		report.Unshown = c.giveUpShowing()
		report.Running = c.e.opts.Gateway.Abort(c.id().Key()) || report.Running
	}
	handled := answer(report)
	err := c.e.recordAbort(ctx, ending, ids(dropped), handled)
	for _, w := range dropped {
		w.turn.State = orchestrator.TurnCancelled
		c.e.unqueued(w)
	}
	return report, err
}

func ids(queue []waiting) []cli.TurnID {
	var out []cli.TurnID
	for _, w := range queue {
		out = append(out, w.turn.ID)
	}
	return out
}

// Runs implements bot.Desk. It does not block.
func (e *Engine) Runs(id orchestrator.ConversationID) bool {
	c, err := e.conversation(id)
	return err == nil && c.active.first() != nil
}

// Waits implements bot.Desk.
func (e *Engine) Waits(id orchestrator.ConversationID) (waits bool) {
	err := e.do(id, func(c *conversation) error {
		waits = len(c.queue) > 0
		return nil
	})
	return err == nil && waits
}
