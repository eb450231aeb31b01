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

// Limits are the time limits of a turn. Zero values mean the defaults.
type Limits struct {
	Start     time.Duration // like Stall, until Turn.Accepted; zero for an agent without Accepted
	First     time.Duration // like Stall, until the first output of a Stream's program; zero means Stall
	Stall     time.Duration // silence that ends the turn
	ToolStall time.Duration // silence that ends the turn while a tool is open
	Interrupt time.Duration // for any reaction to an interrupt
	Grace     time.Duration // from the interrupt to SIGKILL, at most
}

// LimitsOf returns the limits of a dialect with options o.
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

// Source is a turn's connection to its agent. Stream.Turn creates its own.
type Source[T any] struct {
	In   *Queue[T]
	Gone <-chan struct{} // closed when the process has ended and the queue contains all its output
	// Stop ends the process of an agent that does not end the turn. The loop calls it at most once, on a separate
	// goroutine, and continues to handle items until it returns. Stop may spare a process with other sessions.
	Stop   func(ctx context.Context, grace time.Duration) error
	Limits Limits
	// Resumed is set for a turn that the previous process of ductor started.
	Resumed *Resumed
	// End returns the offset after an item in the output, or 0 if the item is not output. It is needed only if Resumed
	// is set.
	End func(T) int64
}

// Loop describes how a dialect takes part in one turn. Turn.Run calls the functions on its goroutine. Only Handle is
// required.
type Loop[T any] struct {
	Source Source[T]
	// Begin sends the prompt. The turn already receives items then, so it misses no answer.
	Begin func()
	// Handle processes one item and reports whether the item ended the turn. Items come in order. Handle may keep them.
	Handle func(T) (end bool)
	// Interrupt asks the agent to end the turn, without waiting. If it returns an error, the loop stops the agent at
	// once. The loop calls it only once, and after Turn.Accepted if Limits.Start is set. It is nil if the protocol has
	// no interrupt.
	Interrupt func() error
	// Waiting reports whether the agent waits for the user, who may take any time. The code that answers calls
	// Queue.Wake.
	Waiting func() bool
	// Hopeless reports whether the agent repeats something that cannot succeed. The loop then interrupts the agent, and
	// Run returns EndHopeless.
	Hopeless func() bool
	// Busy reports whether a tool is open. If it is nil, the loop asks Out.
	Busy func() bool
	// Out emits CaughtUp, and warnings about lost output. During a replay, its events get the time of the replayed
	// output.
	Out *Emitter
	// Mark is stored with the process of a Stream before Begin is called. The Stream fills in Output and Input. A Mark
	// without a Turn is not stored, for a process that was started for this turn and for an adopted turn.
	Mark cli.Mark

	record func() error // stores Mark; if it fails, the process is stopped and gets no prompt
}

// Phase is the phase of a turn. The goroutine of Turn.Run owns it.
type Phase string

// Phase values.
const (
	Starting     Phase = "starting"     // the agent has not accepted the turn
	Running      Phase = "running"      // the agent works; its silence is limited
	Waiting      Phase = "waiting"      // the agent waits for the user; its silence is not limited
	Interrupting Phase = "interrupting" // the agent was asked to end the turn
	Killing      Phase = "killing"      // the process is being stopped
	Done         Phase = "done"
)

// End describes how a turn's loop ended.
type End string

// End values. If the turn was cut short, the value is the reason, even if the agent then ended the turn itself.
const (
	EndTurn      End = "turn"      // Handle reported the end
	EndExit      End = "exit"      // the process ended, and every item was handled
	EndCancelled End = "cancelled" // ctx was cancelled
	EndStalled   End = "stalled"   // the agent was silent too long
	EndFlooded   End = "flooded"   // the agent sent more than the queue can hold
	EndHopeless  End = "hopeless"  // Loop.Hopeless returned true
	EndDetached  End = "detached"  // ctx was cancelled with ErrDetached: the agent continues the turn
)

// Turn is one running turn.
type Turn[T any] struct {
	loop         Loop[T]
	ctx          context.Context
	phase        Phase
	cancellation cancellation
	timer        *time.Timer
	lastActivity time.Time // time of the last item, or of the user's last answer

	replay replay

	spoke   bool // whether an item was handled
	over    bool // whether Handle reported the end
	rest    []T  // items after the end
	stopped chan struct{}
	stopErr error
}

// cancellation is the reason and time of a turn's cancellation.
type cancellation struct {
	why      End // empty unless the turn is cancelled
	at, due  time.Time
	silence  time.Duration // for EndStalled
	deferred bool          // the interrupt waits until the agent has accepted the turn
}

// New returns a turn that is ready to run.
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

// Run runs the turn to its end. If ctx is cancelled or the agent is silent for too long, Run asks the agent to end the
// turn, and continues to handle items. If the agent does not react, or does not end the turn within half of Grace, Run
// stops the process. When Run returns EndExit, the process has ended.
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

// detaches reports whether ductor is to detach from the turn. An earlier reason for ending the turn has priority.
func (t *Turn[T]) detaches() bool {
	return t.cancellation.why == "" && errors.Is(context.Cause(t.ctx), cli.ErrDetached)
}

// end returns the result of Run for a turn that ended as as.
func (t *Turn[T]) end(as End) End {
	t.phase = Done
	if as == EndDetached {
		return as
	}
	if t.replay.active && t.loop.Out != nil { // the turn ended before this process attached
		t.loop.Out.Pass(cli.CaughtUp{})
	}
	return cmp.Or(t.cancellation.why, as)
}

// handleWaiting handles the items in the queue, until an item ends the turn.
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
	t.lastActivity, t.spoke = time.Now(), true
	if t.phase == Interrupting && !t.cancellation.deferred { // the agent has reacted
		t.cancellation.due = t.cancellation.at.Add(CutWait(t.ctx, t.loop.Source.Limits.Grace))
	}
	t.over = t.loop.Handle(item)
}

// checkWaiting updates the phase if the agent starts or stops waiting for the user.
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
	case !t.spoke && !t.replay.active && l.First > 0:
		return l.First
	case t.loop.Busy != nil && t.loop.Busy(), t.loop.Busy == nil && t.loop.Out != nil && t.loop.Out.OpenTools() > 0:
		return l.ToolStall
	}
	return l.Stall
}

// tick does what is due, and sets the timer for the next check.
func (t *Turn[T]) tick() {
	now := time.Now()
	switch t.phase {
	case Killing, Done:
	case Interrupting:
		switch {
		case now.Before(t.cancellation.due):
			t.timer.Reset(t.cancellation.due.Sub(now))
		case t.cancellation.deferred && t.replay.active: // the replay may contain the end of the turn
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
			t.timer.Reset(min(limit-silence, l.Stall, cmp.Or(l.Start, l.Stall))) // the limit may become shorter
		}
	}
}

// interrupt cuts the turn short.
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

// ask asks the agent to end the turn, or stops the process if that is impossible.
func (t *Turn[T]) ask() {
	t.cancellation.deferred = false
	if t.loop.Interrupt == nil || t.loop.Interrupt() != nil {
		t.kill()
		return
	}
	t.cancellation.due = time.Now().Add(ReactWait(t.ctx, t.loop.Source.Limits.Interrupt, t.loop.Source.Limits.Grace))
	t.timer.Reset(time.Until(t.cancellation.due))
}

// kill stops the process, while the loop continues to handle items.
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

// CutWait returns how long an agent may take to end a turn that is cut short, before ductor kills the process. The time
// is short for an aborted turn, because killing the process does no harm. It is longer for a replaced turn, because the
// next message would have to wait for a new process.
func CutWait(ctx context.Context, grace time.Duration) time.Duration {
	if cli.Replaced(ctx) {
		return 2 * grace
	}
	return grace / 2
}

// ReactWait returns how long an agent may take for its first reaction to an interrupt; see CutWait. usual is the time
// that the reaction usually takes.
func ReactWait(ctx context.Context, usual, grace time.Duration) time.Duration {
	if cli.Replaced(ctx) {
		return CutWait(ctx, grace)
	}
	return min(usual, CutWait(ctx, grace))
}
