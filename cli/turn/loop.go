package turn

import (
	"cmp"
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// DefaultInterruptWait is the default of Limits.Interrupt.
const DefaultInterruptWait = 30 * time.Millisecond

// Limits are the time limits of a turn. The loop cuts the turn short if the agent is silent for too long. Zero means
// the default, except for Start and First.
type Limits struct {
	Start     time.Duration // longest silence before Turn.Accepted is called; zero if the provider never calls it
	First     time.Duration // longest silence before the program of a Stream prints something; zero means Stall
	Stall     time.Duration // longest silence in all other cases
	ToolStall time.Duration // longest silence while a tool is running
	Interrupt time.Duration // time for a first reaction to an interrupt
	Grace     time.Duration // greatest time between the interrupt and SIGKILL
}

// LimitsOf returns the limits that a provider's options contain.
func LimitsOf(o cli.ProviderOptions) Limits {
	return Limits{Stall: o.Stall, ToolStall: o.ToolStall, Grace: o.Grace}
}

func (l Limits) orDefault() Limits {
	l.Stall = cmp.Or(l.Stall, cli.DefaultStall)
	l.ToolStall = cmp.Or(l.ToolStall, cli.DefaultToolStall)
	l.Interrupt = cmp.Or(l.Interrupt, DefaultInterruptWait)
	l.Grace = cmp.Or(l.Grace, cli.DefaultGrace)
	return l
}

// Source connects a turn with its agent. Stream.Turn creates its own Source.
type Source[T any] struct {
	In   *Queue[T]
	Gone <-chan struct{} // closed when the process has ended and all its output is in the queue
	// Stop ends the process if the agent does not end the turn. The loop calls Stop at most once, on a separate
	// goroutine, and handles items meanwhile. If other sessions use the process, Stop may leave it running.
	Stop   func(ctx context.Context, grace time.Duration) error
	Limits Limits
	// Resumed is set if the previous process of ductor started the turn.
	Resumed *Resumed
	// End returns the offset in the output after an item, or 0 if the item is not output. Only resumed turns need it.
	End func(T) int64
}

// Loop contains what a provider adds to one turn. Turn.Run calls the functions on its goroutine. Only Handle is
// required.
type Loop[T any] struct {
	Source Source[T]
	// Begin sends the prompt. Items that arrive meanwhile are handled afterwards, so the turn misses no answer.
	Begin func()
	// Handle processes one item and reports whether the item ended the turn. Items come in order. Handle may store
	// them.
	Handle func(T) (end bool)
	// Interrupt asks the agent to end the turn. It does not wait. If Interrupt returns an error, the loop stops the
	// process at once. The loop calls Interrupt only once. If Limits.Start is set, the loop does not call Interrupt
	// before Turn.Accepted. Interrupt is nil if the protocol has no interrupt.
	Interrupt func() error
	// Waiting reports whether the agent waits for the user, who may take any time. The code that passes the user's
	// answer to the agent must call Queue.Wake.
	Waiting func() bool
	// Hopeless reports whether the agent repeats something that cannot succeed. The loop then interrupts the turn, and
	// Run returns EndHopeless.
	Hopeless func() bool
	// Busy reports whether a tool is running. If it is nil, the loop uses Out.OpenTools.
	Busy func() bool
	// Ended is called when the loop has ended, before other code gets the items that are left. It may be nil.
	Ended func(End)
	// Out emits CaughtUp, and warnings about lost output. While the loop replays old output, the events of Out have the
	// time of that output.
	Out *Emitter
	// Mark is the turn's mark. The Stream sets Mark.Output and Mark.Input, and stores the mark before it calls Begin.
	// Mark.Turn is empty for an adopted turn, and for a process that serves only this turn. The Stream then stores no
	// mark.
	Mark cli.Mark

	record func() error // stores Mark; after an error, the prompt is not sent
}

// Phase is the phase of a turn. The goroutine of Turn.Run owns it.
type Phase string

// Phase values.
const (
	Starting     Phase = "starting"     // the agent has not accepted the turn
	Running      Phase = "running"      // the agent works; a long silence cuts the turn short
	Waiting      Phase = "waiting"      // the agent waits for the user and may be silent for any time
	Interrupting Phase = "interrupting" // the loop has asked the agent to end the turn, or will ask after Accepted
	Killing      Phase = "killing"      // the loop is stopping the process
	Done         Phase = "done"
)

// End describes why a turn's loop ended.
type End string

// End values. If the turn was cut short, the value says why, even if the agent then ended the turn by itself.
const (
	EndTurn      End = "turn"      // Handle reported the end of the turn
	EndExit      End = "exit"      // the process ended before the turn did; every item was handled
	EndCancelled End = "cancelled" // ctx was cancelled
	EndStalled   End = "stalled"   // the agent was silent too long
	EndFlooded   End = "flooded"   // the agent sent more than the queue can hold
	EndHopeless  End = "hopeless"  // Loop.Hopeless returned true
	EndDetached  End = "detached"  // ctx was cancelled with ErrDetached, and the agent continues the turn
)

// Turn is one running turn.
type Turn[T any] struct {
	loop         Loop[T]
	ctx          context.Context
	phase        Phase
	cancellation cancellation
	timer        *time.Timer
	lastActivity time.Time // when the last item arrived, or the user last answered

	replay replay

	handledItem bool
	over        bool // Handle reported the end of the turn
	rest        []T  // items after the end of the turn
	stopped     chan struct{}
	stopErr     error
}

// cancellation describes why and when the loop cut the turn short.
type cancellation struct {
	why      End // empty while the turn is not cut short
	at, due  time.Time
	silence  time.Duration // how long the agent was silent; set for EndStalled
	deferred bool          // when the agent has accepted the turn, the loop will interrupt it
}

// New returns a turn for Run.
func New[T any](loop Loop[T]) *Turn[T] {
	loop.Source.Limits = loop.Source.Limits.orDefault()
	t := &Turn[T]{loop: loop, phase: Starting, stopped: make(chan struct{})}
	if r := loop.Source.Resumed; r != nil {
		t.replay = replay{Resumed: *r, active: true, at: r.From}
		if loop.Out != nil {
			loop.Out.replay(t.replay.timestamp)
		}
	}
	return t
}

// Run runs the turn to its end. If ctx is cancelled, or the agent is silent for too long, Run asks the agent to end the
// turn and handles further items. If the agent does not react, or does not end the turn within half of Grace, Run stops
// the process. If Run returns EndExit, the process has ended.
func (t *Turn[T]) Run(ctx context.Context) End {
	t.ctx, t.lastActivity = ctx, time.Now()
	t.timer = time.NewTimer(t.limit())
	defer t.timer.Stop()
	switch {
	case t.loop.record == nil || t.loop.record() == nil:
		if t.loop.Begin != nil {
			t.loop.Begin()
		}
		if t.loop.Source.Limits.Start == 0 {
			t.phase = Running
		}
	case t.detaches():
		return t.end(EndDetached)
	default:
		if t.cancellation.at = time.Now(); ctx.Err() != nil {
			t.cancellation.why = EndCancelled
		}
		t.kill()
	}
	return t.end(t.run())
}

func (t *Turn[T]) run() End {
	cancelled, gone := t.ctx.Done(), t.loop.Source.Gone
	for {
		if t.handleWaiting() && t.phase != Killing {
			return EndTurn
		}
		select {
		case <-t.loop.Source.In.Ready():
		case <-t.timer.C:
			t.tick()
		case <-cancelled:
			cancelled = nil
			if t.detaches() {
				return EndDetached
			}
			t.interrupt(EndCancelled)
		case <-gone:
			gone = nil
			if t.phase == Killing {
				continue
			}
			if t.handleWaiting() {
				return EndTurn
			}
			return EndExit
		case <-t.stopped:
			t.handleWaiting() // handles the last items
			return EndExit
		}
	}
}

// detaches reports whether ductor should detach from the turn. It should not if the turn is already being cut short.
func (t *Turn[T]) detaches() bool {
	return t.cancellation.why == "" && errors.Is(context.Cause(t.ctx), cli.ErrDetached)
}

// end returns the result of Run: the reason if the turn was cut short, and outcome if it was not.
func (t *Turn[T]) end(outcome End) End {
	t.phase = Done
	if outcome == EndDetached {
		return outcome
	}
	if t.replay.active && t.loop.Out != nil { // the turn ended in the replayed output
		t.loop.Out.Pass(cli.CaughtUp{})
	}
	return cmp.Or(t.cancellation.why, outcome)
}

// handleWaiting handles the items in the queue, until one of them ends the turn.
func (t *Turn[T]) handleWaiting() (over bool) {
	items, dropped := t.loop.Source.In.Take()
	for _, item := range items {
		if t.over {
			t.rest = append(t.rest, item)
			continue
		}
		t.handle(item)
	}
	switch {
	case t.over:
	case dropped:
		t.interrupt(EndFlooded)
	case t.loop.Hopeless != nil && t.loop.Hopeless():
		t.interrupt(EndHopeless)
	default:
		t.checkWaiting()
	}
	return t.over
}

func (t *Turn[T]) handle(item T) {
	if t.loop.Source.End != nil && !t.replay.reach(t.loop.Source.End(item)) {
		return
	}
	t.lastActivity, t.handledItem = time.Now(), true
	if t.phase == Interrupting && !t.cancellation.deferred { // the agent has reacted
		t.cancellation.due = t.cancellation.at.Add(CutWait(t.ctx, t.loop.Source.Limits.Grace))
	}
	t.over = t.loop.Handle(item)
}

// checkWaiting changes the phase if the agent has started or stopped waiting for the user.
func (t *Turn[T]) checkWaiting() {
	waits := t.loop.Waiting != nil && t.loop.Waiting()
	switch {
	case t.phase == Running && waits:
		t.phase = Waiting
	case t.phase == Waiting && !waits:
		t.phase, t.lastActivity = Running, time.Now()
	}
}

// limit returns how long the agent may currently be silent.
func (t *Turn[T]) limit() time.Duration {
	l := t.loop.Source.Limits
	switch {
	case t.phase == Starting && !t.replay.active && l.Start > 0:
		return l.Start
	case !t.handledItem && !t.replay.active && l.First > 0:
		return l.First
	case t.loop.Busy != nil && t.loop.Busy(), t.loop.Busy == nil && t.loop.Out != nil && t.loop.Out.OpenTools() > 0:
		return l.ToolStall
	}
	return l.Stall
}

func (t *Turn[T]) tick() {
	now := time.Now()
	switch t.phase {
	case Killing, Done:
	case Interrupting:
		switch {
		case now.Before(t.cancellation.due):
			t.timer.Reset(t.cancellation.due.Sub(now))
		case t.cancellation.deferred && t.replay.active: // the turn may already have ended in the old output
			t.timer.Reset(t.loop.Source.Limits.Grace / 2)
		default:
			t.kill()
		}
	default:
		t.checkWaiting()
		l, limit, silence := t.loop.Source.Limits, t.limit(), now.Sub(t.lastActivity)
		switch {
		case t.phase == Waiting:
			t.timer.Reset(l.Stall)
		case silence >= limit:
			t.cancellation.silence = silence
			t.interrupt(EndStalled)
		default:
			// A running tool raises the limit. Nothing resets the timer when the tool ends, so check again after the
			// lowest limit.
			t.timer.Reset(min(limit-silence, l.Stall, cmp.Or(l.Start, l.Stall)))
		}
	}
}

// interrupt cuts the turn short by asking the agent to end it. If the agent has not accepted the turn yet, Accepted
// asks the agent later.
func (t *Turn[T]) interrupt(why End) {
	if t.cancellation.why != "" || t.phase == Killing {
		return
	}
	now := time.Now()
	t.cancellation.why, t.cancellation.at = why, now
	t.cancellation.due = now.Add(CutWait(t.ctx, t.loop.Source.Limits.Grace))
	t.cancellation.deferred = t.phase == Starting
	t.phase = Interrupting
	if t.cancellation.deferred {
		t.timer.Reset(t.cancellation.due.Sub(now))
		return
	}
	t.ask()
}

// ask asks the agent to end the turn. If the protocol has no interrupt, or the request fails, ask stops the process.
func (t *Turn[T]) ask() {
	t.cancellation.deferred = false
	if t.loop.Interrupt == nil || t.loop.Interrupt() != nil {
		t.kill()
		return
	}
	t.cancellation.due = time.Now().Add(ReactWait(t.ctx, t.loop.Source.Limits.Interrupt, t.loop.Source.Limits.Grace))
	t.timer.Reset(time.Until(t.cancellation.due))
}

// kill stops the process in the background.
func (t *Turn[T]) kill() {
	t.phase = Killing
	grace := max(t.loop.Source.Limits.Grace-time.Since(t.cancellation.at), 0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), grace+cli.StopSlack)
	go func() {
		defer close(t.stopped)
		defer cancel()
		t.stopErr = t.loop.Source.Stop(ctx, grace)
	}()
}

// CutWait returns how long an agent may take to end a turn that is cut short, before ductor kills the process. It
// returns a longer time if the user's next message replaces the turn: after a kill, that message would have to wait for
// a new process.
func CutWait(ctx context.Context, grace time.Duration) time.Duration {
	if cli.Replaced(ctx) {
		return 2 * grace
	}
	return grace / 2
}

// ReactWait returns how long an agent may take for its first reaction to an interrupt. usualWait is the limit for most
// interrupts; see CutWait for the exception.
func ReactWait(ctx context.Context, usualWait, grace time.Duration) time.Duration {
	if cli.Replaced(ctx) {
		return CutWait(ctx, grace)
	}
	return min(usualWait, CutWait(ctx, grace))
}
