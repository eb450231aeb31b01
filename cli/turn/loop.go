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

// Limits say how long a turn waits for its agent. Zero values take the defaults.
type Limits struct {
	Start     time.Duration // silence before Turn.Accepted that ends the turn; zero for an agent that does not accept turns
	First     time.Duration // the same of a program of a Stream that has not said a word yet; zero takes Stall
	Stall     time.Duration // silence that ends it
	ToolStall time.Duration // the same while a tool is open
	Interrupt time.Duration // how soon an interrupt must show any reaction
	Grace     time.Duration // from the interrupt to SIGKILL, at most
}

// LimitsOf are the limits of a dialect made with o.
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

// Source is what a turn hears its agent by, and how the agent is stopped. Stream.Turn makes its own.
type Source[T any] struct {
	In   *Queue[T]
	Gone <-chan struct{} // closed when the process has ended and all it said is in the queue
	// Stop ends the process of an agent that does not end the turn. It is called on a goroutine of its own, at most once;
	// items are handled until it returns. A process that serves others may be left to them.
	Stop   func(ctx context.Context, grace time.Duration) error
	Limits Limits
	// Resumed is set for a turn that the previous process of ductor began.
	Resumed *Resumed
	// End is the offset in the output after an item; 0 for what is no output. Needed with Resumed only.
	End func(T) int64
}

// Resumed says where a turn that the previous process of ductor began is in the output, and when that was said.
type Resumed struct {
	From  int64     // items that end at or before it are of earlier turns
	Began time.Time // zero takes When(From-1)
	When  func(offset int64) time.Time
}

// Loop is how a dialect takes part in one turn. All but Handle may be nil. The callbacks are called on the goroutine of
// Turn.Run.
type Loop[T any] struct {
	Source Source[T]
	// Begin asks for the turn, when items already go to it: what it sends cannot be answered before the turn listens.
	Begin func()
	// Handle takes one item and says whether it ended the turn. Items come in order. It may keep them.
	Handle func(T) (end bool)
	// Interrupt asks the agent to end the turn, without waiting; an error has it stopped at once. It is called once, after
	// Turn.Accepted where Limits.Start is set. Nil if the protocol has no such thing.
	Interrupt func() error
	// Waiting says whether the agent waits for the user, who may take any time. Who answers calls Queue.Wake.
	Waiting func() bool
	// Hopeless says whether the agent goes on trying what cannot succeed: it is interrupted, and the turn ends as EndHopeless.
	Hopeless func() bool
	// Busy says whether a tool is open. Nil asks Out.
	Busy func() bool
	// Out gets CaughtUp and warnings about lost output. What it tells of the past has the time at which that was said.
	Out *Emitter
	// Mark is recorded with the process of a Stream before Begin is called; Output and Input are filled in. A Mark without
	// a Turn is not recorded: the process was started for this turn, or the turn was adopted.
	Mark cli.Mark

	record func() error // records Mark; when it fails the process is stopped, and nothing was asked
}

// Phase is how far a turn is. The goroutine of Turn.Run owns it.
type Phase string

// The phases of a turn.
const (
	Starting     Phase = "starting"     // the agent has not accepted it
	Running      Phase = "running"      // silence counts
	Waiting      Phase = "waiting"      // for the user: silence does not count
	Interrupting Phase = "interrupting" // the agent is to end it
	Killing      Phase = "killing"      // the process is being stopped
	Done         Phase = "done"
)

// End is how a turn's loop ended.
type End string

// The ways a loop ends. One that was cut short ends as why it was, also when the agent then ended the turn by its own word.
const (
	EndTurn      End = "turn"      // Handle said so
	EndExit      End = "exit"      // the process ended; every item was handled
	EndCancelled End = "cancelled" // ctx was
	EndStalled   End = "stalled"   // too long a silence
	EndFlooded   End = "flooded"   // more came than can be kept
	EndHopeless  End = "hopeless"  // Loop.Hopeless said so
	EndDetached  End = "detached"  // ctx was cancelled with ErrDetached: the agent goes on with the turn
)

// Turn is one turn while it runs.
type Turn[T any] struct {
	loop  Loop[T]
	ctx   context.Context
	phase Phase
	cut   cut
	timer *time.Timer
	heard time.Time // when something came last, or the user answered

	past bool  // what is handled was said before ductor listened
	at   int64 // the offset after the item that is handled, in the past

	spoke   bool // something was handled
	over    bool // Handle said so
	rest    []T  // what came after that
	stopped chan struct{}
	stopErr error
}

// cut is why and since when a turn is to end.
type cut struct {
	why      End // empty while it runs
	at, due  time.Time
	silence  time.Duration // of EndStalled
	deferred bool          // the agent is asked once it has accepted the turn
}

// New makes a turn ready to run.
func New[T any](loop Loop[T]) *Turn[T] {
	loop.Source.Limits = loop.Source.Limits.orDefault()
	t := &Turn[T]{loop: loop, phase: Starting, stopped: make(chan struct{})}
	if r := loop.Source.Resumed; r != nil {
		t.past, t.at = true, r.From
		if loop.Out != nil {
			loop.Out.replay(t.said)
		}
	}
	return t
}

// Run takes the turn to its end. A cancelled ctx or too long a silence first asks the agent to end it and goes on handling
// items; an agent that shows no reaction, or does not end the turn in half of Grace, is stopped. When Run returns EndExit
// the process is gone.
func (t *Turn[T]) Run(ctx context.Context) End {
	t.ctx, t.heard = ctx, time.Now()
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
		if t.cut.at = time.Now(); ctx.Err() != nil {
			t.cut.why = EndCancelled
		}
		t.kill()
	}
	return t.end(t.run())
}

func (t *Turn[T]) run() End {
	cancelled, gone := t.ctx.Done(), t.loop.Source.Gone
	for {
		if t.take() && t.phase != Killing {
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
			if t.take() {
				return EndTurn
			}
			return EndExit
		case <-t.stopped:
			t.take() // the last words
			return EndExit
		}
	}
}

// detaches says whether ductor detaches from the turn. What asked for its end before that comes first.
func (t *Turn[T]) detaches() bool {
	return t.cut.why == "" && errors.Is(context.Cause(t.ctx), cli.ErrDetached)
}

// end is how the turn ended, seen from outside.
func (t *Turn[T]) end(as End) End {
	t.phase = Done
	if as == EndDetached {
		return as
	}
	if t.past && t.loop.Out != nil { // it ended while ductor did not listen: there is nothing more to catch up with
		t.loop.Out.Pass(cli.CaughtUp{})
	}
	return cmp.Or(t.cut.why, as)
}

// take handles what waits, up to what ends the turn.
func (t *Turn[T]) take() (over bool) {
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
		t.look()
	}
	return t.over
}

func (t *Turn[T]) handle(item T) {
	if t.past && t.loop.Source.End != nil {
		if end := t.loop.Source.End(item); end > 0 {
			if end <= t.loop.Source.Resumed.From {
				return
			}
			t.at = end
		}
	}
	t.heard, t.spoke = time.Now(), true
	if t.phase == Interrupting && !t.cut.deferred { // it reacts
		t.cut.due = t.cut.at.Add(CutWait(t.ctx, t.loop.Source.Limits.Grace))
	}
	t.over = t.loop.Handle(item)
}

// look sees whether the agent waits for the user.
func (t *Turn[T]) look() {
	waits := t.loop.Waiting != nil && t.loop.Waiting()
	switch {
	case t.phase == Running && waits:
		t.phase = Waiting
	case t.phase == Waiting && !waits:
		t.phase, t.heard = Running, time.Now()
	}
}

// limit is how long the agent may be silent now.
func (t *Turn[T]) limit() time.Duration {
	l := t.loop.Source.Limits
	switch {
	case t.phase == Starting && !t.past && l.Start > 0:
		return l.Start
	case !t.spoke && !t.past && l.First > 0:
		return l.First
	case t.loop.Busy != nil && t.loop.Busy(), t.loop.Busy == nil && t.loop.Out != nil && t.loop.Out.OpenTools() > 0:
		return l.ToolStall
	}
	return l.Stall
}

// tick does what is due and sets the timer to what is due next.
func (t *Turn[T]) tick() {
	now := time.Now()
	switch t.phase {
	case Killing, Done:
	case Interrupting:
		switch {
		case now.Before(t.cut.due):
			t.timer.Reset(t.cut.due.Sub(now))
		case t.cut.deferred && t.past: // what there is of the turn is not known yet
			t.timer.Reset(t.loop.Source.Limits.Grace / 2)
		default:
			t.kill()
		}
	default:
		t.look()
		l, limit, silence := t.loop.Source.Limits, t.limit(), now.Sub(t.heard)
		switch {
		case t.phase == Waiting:
			t.timer.Reset(l.Stall)
		case silence >= limit:
			t.cut.silence = silence
			t.interrupt(EndStalled)
		default:
			t.timer.Reset(min(limit-silence, l.Stall, cmp.Or(l.Start, l.Stall))) // the limit may become shorter
		}
	}
}

// interrupt cuts the turn short.
func (t *Turn[T]) interrupt(why End) {
	if t.cut.why != "" || t.phase == Killing {
		return
	}
	now := time.Now()
	t.cut.why, t.cut.at = why, now
	t.cut.due = now.Add(CutWait(t.ctx, t.loop.Source.Limits.Grace))
	t.cut.deferred = t.phase == Starting
	t.phase = Interrupting
	if t.cut.deferred {
		t.timer.Reset(t.cut.due.Sub(now))
		return
	}
	t.ask()
}

// ask has the agent end the turn, or stops it where that cannot be asked.
func (t *Turn[T]) ask() {
	t.cut.deferred = false
	if t.loop.Interrupt == nil || t.loop.Interrupt() != nil {
		t.kill()
		return
	}
	t.cut.due = time.Now().Add(ReactWait(t.ctx, t.loop.Source.Limits.Interrupt, t.loop.Source.Limits.Grace))
	t.timer.Reset(time.Until(t.cut.due))
}

// kill stops the process, while items go on to be handled.
func (t *Turn[T]) kill() {
	t.phase = Killing
	grace := max(t.loop.Source.Limits.Grace-time.Since(t.cut.at), 0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), grace+cli.StopSlack)
	go func() {
		defer close(t.stopped)
		defer cancel()
		t.stopErr = t.loop.Source.Stop(ctx, grace)
	}()
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
