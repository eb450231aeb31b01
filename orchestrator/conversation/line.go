package conversation

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// line is one conversation's queue and the turn that runs. Its lock is held for a store write at most,
// never across an agent or the chat.
type line struct {
	id orchestrator.ConversationID

	mu      sync.Mutex
	queue   []waiting
	running *running
	aborts  int // how often the queue was emptied
	// showing has what gives up to show the outcome of a turn, for each that the chat does not show yet.
	showing map[cli.TurnID]context.CancelCauseFunc
	shown   <-chan struct{} // closed once the delivery of the last outcome was tried; nil before the first
	busy    bool            // a worker goroutine serves the line

	now   atomic.Pointer[endable] // of running; nil while no turn runs
	stops atomic.Int32            // aborts that have ended the running turn and not yet emptied the queue
}

// endable is what ends a turn, for who cannot wait for the lock of its line.
type endable struct {
	turn   orchestrator.Turn // as it was taken from the queue
	cancel context.CancelCauseFunc
	over   chan struct{} // closed once all it started is dead and the delivery of its outcome was tried
}

type waiting struct {
	turn  orchestrator.Turn
	shown bool        // the chat was told that it waits
	left  cli.Remains // of a turn that the previous process was running; empty for one that has not run
}

type running struct {
	turn    orchestrator.Turn
	started time.Time
	req     *cli.Request // what it was asked; nil until it is
	cancel  context.CancelCauseFunc
}

// ahead counts the turns before a new one.
func (l *line) ahead() int {
	n := len(l.queue)
	if l.running != nil {
		n++
	}
	return n
}

func (l *line) remove(id cli.TurnID) (waiting, bool) {
	i := slices.IndexFunc(l.queue, func(w waiting) bool { return w.turn.ID == id })
	if i < 0 {
		return waiting{}, false
	}
	w := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	return w, true
}

// serve makes sure that a worker takes turns from the line. What it takes first is the running turn as soon
// as serve returns, so that an abort finds it. l.mu is held.
func (e *Engine) serve(l *line) {
	if l.busy || !e.open() {
		return
	}
	l.busy = true
	w, ctx, ok := e.take(l)
	go func() {
		defer e.wg.Done()
		e.work(l, w, ctx, ok)
	}()
}

// work runs w and then whatever waits.
func (e *Engine) work(l *line, w waiting, ctx context.Context, ok bool) {
	for ok {
		if w.shown {
			e.opts.Chat.Unqueued(w.turn)
		}
		e.run(ctx, w)
		l.mu.Lock()
		l.running.cancel(nil)
		l.running = nil
		e.endOver(l, l.now.Swap(nil))
		w, ctx, ok = e.take(l)
		l.mu.Unlock()
	}
}

// begun records what the agent of the running turn is asked.
func (e *Engine) begun(t orchestrator.Turn, req cli.Request) {
	l, err := e.line(t.Prompt.Conversation)
	if err != nil {
		return // no message is being steered any more
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != nil && l.running.turn.ID == t.ID {
		l.running.turn, l.running.req = t, &req
		if req.Began.IsZero() && !t.Bypass.IsZero() && !e.now().Before(t.Bypass) { // over since it was prepared
			l.running.cancel(errBypassOver)
		}
	}
}

// take makes the head of the queue the running turn, with the context an abort cancels. l.mu is held.
func (e *Engine) take(l *line) (waiting, context.Context, bool) {
	if len(l.queue) == 0 || l.stops.Load() > 0 || e.isClosed() {
		l.busy = false
		return waiting{}, nil, false
	}
	w := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	ctx, cancel := context.WithCancelCause(e.life)
	if w.turn.Aborting {
		cancel(cli.ErrAborted)
	}
	l.running = &running{turn: w.turn, started: e.now(), cancel: cancel}
	l.now.Store(&endable{turn: w.turn, cancel: cancel, over: make(chan struct{})})
	return w, ctx, true
}

// endOver closes what says that a turn is over once the delivery of its outcome was tried. l.mu is held.
func (e *Engine) endOver(l *line, turn *endable) {
	shown := l.shown
	if shown == nil {
		close(turn.over)
		return
	}
	e.wg.Go(func() {
		<-shown // deliver ends it in any case
		close(turn.over)
	})
}
