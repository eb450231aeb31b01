package turn

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// exitWait is how long a program may run on whose output ended.
const exitWait = 500 * time.Millisecond

// Turn runs the loop of one turn. A cancelled ctx or too long a silence first asks the agent to end
// (Loop.Interrupt) and goes on handling lines; an agent that shows no reaction, or does not end the
// turn in half of Grace, is stopped with all it started. When Turn returns EndExit the program is gone.
func (s *Stream) Turn(ctx context.Context, loop Loop) End {
	t := &turn{s: s, loop: loop, ctx: ctx, quiet: time.Now()}
	s.awaitPast(ctx, loop.Mark)
	s.begin()
	defer func() { s.finish(t.rest) }()
	t.timer = time.NewTimer(s.opts.Stall)
	defer t.timer.Stop()
	if err := s.Mark(ctx, loop.Mark); err != nil {
		return t.unmarked(err)
	}
	if loop.Begin != nil {
		loop.Begin()
	}
	return t.run()
}

// begin sends lines to the turn from now on.
func (s *Stream) begin() {
	s.Hurry()
	s.dispatch.Lock()
	defer s.dispatch.Unlock()
	s.active, s.began, s.garbage, s.stopErr, s.markErr = true, true, Garbage{}, nil, nil
}

// finish gives what the turn left to Idle, and every later line.
func (s *Stream) finish(rest []queued) {
	s.dispatch.Lock()
	defer s.dispatch.Unlock()
	s.active = false
	waiting, _ := s.out.take()
	for _, q := range append(rest, waiting...) {
		s.idle(q)
	}
}

// turn is the state of one Turn. It begins as running, may become cut (asked to end), and then
// stopping (killed).
type turn struct {
	s     *Stream
	loop  Loop
	ctx   context.Context
	timer *time.Timer
	over  bool     // Handle said the turn ended
	rest  []queued // lines after that one

	quiet   time.Time // of the last line
	cut     End       // why the turn is to end; empty while it runs
	cutAt   time.Time
	reacted bool
	stopped chan struct{} // closed when the program is dead; nil before it is stopped
}

func (t *turn) run() End {
	cancelled := t.ctx.Done()
	for {
		ended, open := t.handleWaiting()
		switch {
		case ended && t.stopped == nil:
			return t.end(EndTurn)
		case !open:
			t.awaitExit()
			return t.end(EndExit)
		}
		select {
		case <-t.s.out.ready:
		case <-t.timer.C:
			t.tick()
		case <-cancelled:
			cancelled = nil
			if errors.Is(context.Cause(t.ctx), cli.ErrDetached) && t.cut == "" {
				t.s.Detach()
				return EndDetached
			}
			t.begin(EndCancelled)
		case <-t.stopped: // dead; its last lines are on their way
			t.awaitPump()
			t.handleWaiting()
			return t.end(EndExit)
		}
	}
}

// end is how the turn ended, seen from outside.
func (t *turn) end(as End) End {
	if t.s.past.Load() { // it ended while ductor did not listen: there is nothing more of it to catch up with
		t.caughtUp()
	}
	if t.cut != "" {
		return t.cut
	}
	return as
}

// handleWaiting handles the lines that are there, up to one that ends the turn.
func (t *turn) handleWaiting() (ended, open bool) {
	batch, open := t.s.out.take()
	if len(batch) > 0 {
		t.quiet, t.reacted = time.Now(), true
	}
	for _, q := range batch {
		if t.over {
			t.rest = append(t.rest, q)
			continue
		}
		t.s.dispatch.Lock()
		t.s.note(q)
		t.s.dispatch.Unlock()
		switch {
		case q.news():
			t.tell(q)
		case q.oversized > 0:
			t.s.Garbage(q.line)
		default:
			t.over = t.loop.Handle(q.line)
		}
	}
	return t.over, open || len(batch) > 0
}

// tell passes on news about the output.
func (t *turn) tell(q queued) {
	switch {
	case q.caughtUp:
		t.caughtUp()
	case q.lost != nil && t.loop.Out != nil:
		t.loop.Out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: q.lost.Error()})
	}
}

// busy says whether a tool is open.
func (t *turn) busy() bool {
	if t.loop.Busy != nil {
		return t.loop.Busy()
	}
	return t.loop.Out != nil && t.loop.Out.OpenTools() > 0
}

// tick does what is due and sets the timer to what is due next.
func (t *turn) tick() {
	now := time.Now()
	switch {
	case t.stopped != nil:
	case t.cut != "":
		limit := t.cutAt.Add(CutWait(t.ctx, t.s.opts.Grace))
		if !t.reacted || !now.Before(limit) {
			t.stop()
			return
		}
		t.timer.Reset(limit.Sub(now))
	default:
		limit := t.s.opts.Stall
		if t.loop.Waited != nil {
			if waited := t.loop.Waited(now); waited.After(t.quiet) {
				t.quiet = waited
			}
		}
		if t.busy() {
			limit = t.s.opts.ToolStall
		}
		silence := now.Sub(t.quiet)
		if silence >= limit {
			t.s.silence = silence
			t.begin(EndStalled)
			return
		}
		t.timer.Reset(min(limit-silence, t.s.opts.Stall)) // a tool that ends shortens the limit
	}
}

// begin cuts the turn: the agent is asked to end it, or stopped where that cannot be asked.
func (t *turn) begin(why End) {
	if t.cut != "" {
		return
	}
	t.cut, t.cutAt, t.reacted = why, time.Now(), false
	t.s.Hurry() // to see the reaction when it comes
	if t.loop.Interrupt == nil || t.loop.Interrupt() != nil {
		t.stop()
		return
	}
	t.timer.Reset(ReactWait(t.ctx, t.s.opts.InterruptWait, t.s.opts.Grace))
}

// CutWait is how long an agent may take to end a turn that it was asked to end, before it is killed. The kill of an
// aborted turn's process is no loss. That of a replaced one is: the next message would wait for a new process.
func CutWait(ctx context.Context, grace time.Duration) time.Duration {
	if cli.Replaced(ctx) {
		return 2 * grace
	}
	return grace / 2
}

// ReactWait is CutWait until the agent's first reaction, which usually shows that soon.
func ReactWait(ctx context.Context, usual, grace time.Duration) time.Duration {
	if cli.Replaced(ctx) {
		return CutWait(ctx, grace)
	}
	return min(usual, CutWait(ctx, grace))
}

// stop ends the program and what it started, while lines go on to be handled.
func (t *turn) stop() {
	t.stopped = make(chan struct{})
	grace := max(t.s.opts.Grace-time.Since(t.cutAt), 0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), grace+cli.StopSlack)
	go func() {
		defer close(t.stopped)
		defer cancel()
		t.s.stopErr = t.s.process.Stop(ctx, grace)
	}()
}

// Linger lets a program that is about to end do so, for no longer than Grace.
func (s *Stream) Linger(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, s.opts.Grace)
	defer cancel()
	select {
	case <-s.process.Done():
	case <-limit.Done():
	}
}

// awaitPump waits until the dead program's last lines are queued. It is bound by the drain time of
// Process.Stdout; the lines beyond the queue's limit of a program that was stopped are let go.
func (t *turn) awaitPump() {
	wait := time.NewTimer(cli.StopSlack)
	defer wait.Stop()
	for {
		select {
		case <-t.s.pumped:
			return
		case <-t.s.out.ready:
			t.handleWaiting()
		case <-wait.C:
			return
		}
	}
}

// awaitExit sees to it that a program whose output ended is gone.
func (t *turn) awaitExit() {
	if t.stopped != nil {
		<-t.stopped
		return
	}
	wait := time.NewTimer(exitWait)
	defer wait.Stop()
	cancelled := t.ctx.Done()
	if t.cut != "" { // it was asked to end, and is about to
		cancelled = nil
	}
	select {
	case <-t.s.process.Done():
		return
	case <-cancelled:
		t.cut = EndCancelled
	case <-wait.C:
	}
	t.cutAt = time.Now()
	t.stop()
	<-t.stopped
}
