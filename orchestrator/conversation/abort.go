package conversation

import (
	"context"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// Stop is Abort or, for a member, AbortOwn. First of all it tells the running turn to end, and then calls told, with nil
// if nothing ran: neither waits for a commit. No queued turn begins before the queue is emptied.
func (e *Engine) Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping)) (orchestrator.AbortReport, error) {
	l, err := e.line(by.Conversation)
	if err != nil {
		return orchestrator.AbortReport{}, err
	}
	l.stops.Add(1)
	defer e.stopped(l)
	told(e.tellToEnd(l, by))
	if by.Of == orchestrator.RightsOfMember {
		return e.AbortOwn(ctx, by)
	}
	return e.Abort(ctx, by.Conversation)
}

// stopped lets queued turns begin again: those of others, or of after the abort.
func (e *Engine) stopped(l *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stops.Add(-1) == 0 && len(l.queue) > 0 {
		e.serve(l)
	}
}

// tellToEnd tells the running turn to end, if the user may end it. It waits for nothing.
func (e *Engine) tellToEnd(l *line, by orchestrator.Press) *orchestrator.Stopping {
	now := l.now.Load()
	if now == nil || !by.MayEnd(now.turn) {
		return nil
	}
	s := now.stopping(e.opts.Gateway)
	now.cancel(cli.ErrAborted)
	return s
}

func (e *endable) stopping(g orchestrator.Gateway) *orchestrator.Stopping {
	return &orchestrator.Stopping{Over: e.over, Alive: g.Outliving(e.turn.ID)}
}

// Runs says whether a turn of the conversation runs. It waits for nothing.
func (e *Engine) Runs(id orchestrator.ConversationID) bool {
	l, err := e.line(id)
	return err == nil && l.now.Load() != nil
}

// Abort ends the running turn with everything it started and empties the queue. It returns at once; the
// card says when the turn has ended.
func (e *Engine) Abort(ctx context.Context, id orchestrator.ConversationID) (orchestrator.AbortReport, error) {
	l, err := e.line(id)
	if err != nil {
		return orchestrator.AbortReport{}, err
	}
	l.mu.Lock()
	dropped := l.queue
	l.queue = nil
	l.aborts++
	report := orchestrator.AbortReport{Running: l.running != nil, Dropped: len(dropped), Unshown: l.giveUpShowing()}
	var running cli.TurnID
	if l.running != nil {
		report.Stopping = l.now.Load().stopping(e.opts.Gateway)
		l.running.cancel(cli.ErrAborted)
		running = l.running.turn.ID
	}
	if running != "" || len(dropped) > 0 {
		// What the store does not take now it must take later: the next process would run what is not recorded.
		_, err = e.record(context.WithoutCancel(ctx), e.log, func(ctx context.Context) error {
			return e.opts.Store.AbortTurns(ctx, running, ids(dropped))
		})
	}
	l.mu.Unlock()

	if e.opts.Gateway.Abort(id.Key()) {
		report.Running = true
	}
	for _, w := range dropped {
		e.dropped(w)
	}
	if err != nil {
		return report, fmt.Errorf("record abort: %w", err)
	}
	return report, nil
}

// AbortOwn ends the running turn if it is one of the member who asks for it, and takes their turns out of the queue.
func (e *Engine) AbortOwn(ctx context.Context, by orchestrator.Press) (orchestrator.AbortReport, error) {
	l, err := e.line(by.Conversation)
	if err != nil {
		return orchestrator.AbortReport{}, err
	}
	ctx = context.WithoutCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	var report orchestrator.AbortReport
	for _, w := range slices.Clone(l.queue) {
		if !by.MayEnd(w.turn) {
			continue
		}
		if err := e.drop(ctx, w); err != nil {
			return report, err // it waits on
		}
		l.remove(w.turn.ID)
		report.Dropped++
	}
	if l.running != nil && by.MayEnd(l.running.turn) {
		report.Running, report.Stopping = true, l.now.Load().stopping(e.opts.Gateway)
		return report, e.endRunning(ctx, l)
	}
	return report, nil
}

func ids(queue []waiting) []cli.TurnID {
	var out []cli.TurnID
	for _, w := range queue {
		out = append(out, w.turn.ID)
	}
	return out
}
