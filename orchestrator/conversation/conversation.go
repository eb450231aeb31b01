// Package conversation runs conversations: their queues, turns and sessions, with history, steering, delivery and recovery.
//
// It is not Telegram (package bot shows what happens here), not an agent (package cli runs the turns) and not SQLite
// (internal/store keeps what happens here). What it needs of them is stated in package orchestrator.
package conversation

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/internal/growstack"
	"ductor/orchestrator"
	"ductor/orchestrator/turn"
)

// conversation is one conversation's queue and the turn that runs. Its state belongs to the message that its inbox
// handles, which makes the commits that change the queue: no lock is held during one.
type conversation struct {
	inbox
	e  *Engine
	id orchestrator.ConversationID

	// running is the turn that runs; nil while none does. Everybody may load it; only messages store, a new one for each change.
	running atomic.Pointer[running]

	aborts  atomic.Int32 // that are not recorded: until then no queued turn begins
	queue   []waiting
	start   startState
	cleared int // how often an abort emptied the queue
	// redelivered is closed once the outcomes are shown that the previous process left; nil if it left none.
	redelivered <-chan struct{}
	// showing has what gives up to show the outcome of a turn, for each that the chat does not show yet.
	showing map[cli.TurnID]context.CancelCauseFunc
	shown   <-chan struct{} // closed once the delivery of the last outcome was tried
	last    turn.Last       // of whoever runs a turn
}

// startState says whether queued turns may start.
type startState string

const (
	startTurns startState = ""
	startLater startState = "later" // once the outcomes are shown that the previous process left
)

type waiting struct {
	turn  orchestrator.Turn
	shown bool        // the chat was told that it waits
	left  cli.Remains // of a turn that the previous process was running; empty for one that has not run
	// inherited says that the previous process may have opened the card of the turn.
	inherited bool
	after     <-chan struct{} // closed when it may run; nil: at once
}

// running is a turn that runs. It never changes.
type running struct {
	turn      orchestrator.Turn
	started   time.Time
	req       *cli.Request    // what its agent was asked; nil before
	begun     *atomic.Bool    // the store has where it begins, right before its agent has it; nil as long as req is
	ctx       context.Context // over when the turn is to end
	cancel    context.CancelCauseFunc
	retries   context.Context // ends when no retry is to follow: with the turn, or when a user wants none
	noRetries context.CancelFunc
	helpers   *helpers
	cleared   int           // of the conversation, when another message was to take its place
	over      chan struct{} // closed once all it started is dead and the delivery of its outcome was tried
}

// is reports whether r is a turn that has not ended.
func (r *running) is(id cli.TurnID) bool { return r != nil && r.turn.ID == id }

// do calls f when no other message of the conversation is handled, and returns when f has and the turn runs that may run then:
// an abort finds it. Messages must not call it.
func (c *conversation) do(f func()) {
	c.inbox.handle(func() {
		f()
		c.startNext()
	})
}

// startNext runs the first turn of the queue unless one runs.
func (c *conversation) startNext() {
	if c.running.Load() != nil || len(c.queue) == 0 || c.start == startLater || c.aborts.Load() > 0 || !c.e.open() {
		return
	}
	w := c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1)
	ctx, cancel := context.WithCancelCause(c.e.life)
	if w.turn.Aborting {
		cancel(cli.ErrAborted)
	}
	retries, noRetries := context.WithCancel(ctx)
	c.running.Store(&running{turn: w.turn, started: c.e.now(), ctx: ctx, cancel: cancel, retries: retries, noRetries: noRetries, over: make(chan struct{}), helpers: &helpers{}})
	go func() {
		defer c.e.wg.Done()
		defer cancel(nil)
		growstack.Grow()
		if w.after != nil {
			<-w.after
		}
		c.e.unqueued(w)
		c.run(ctx, w)
		c.do(c.ended)
	}()
}

// ended has the next turn run, and says that the one that ran is over once the delivery of its outcome was tried.
func (c *conversation) ended() {
	over, shown := c.running.Swap(nil).over, c.shown
	c.e.wg.Go(func() {
		<-shown // deliver ends it in any case
		close(over)
	})
}

// Asked implements turn.Conversation.
func (c *conversation) Asked(t orchestrator.Turn, req cli.Request, begun *atomic.Bool) {
	c.do(func() {
		now := *c.running.Load()
		now.turn, now.req, now.begun = t, &req, begun
		c.running.Store(&now)
		if req.Began.IsZero() && !t.Bypass.IsZero() && !c.e.now().Before(t.Bypass) { // over since it was prepared
			now.cancel(turn.ErrBypassOver)
		}
	})
}

// ahead counts the turns before a new one.
func (c *conversation) ahead() int {
	n := len(c.queue)
	if c.running.Load() != nil {
		n++
	}
	return n
}

// find gives the place of a turn in the queue; -1 if it does not wait.
func (c *conversation) find(id cli.TurnID) int {
	return slices.IndexFunc(c.queue, func(w waiting) bool { return w.turn.ID == id })
}

func (c *conversation) remove(i int) waiting {
	w := c.queue[i]
	c.queue = slices.Delete(c.queue, i, i+1)
	return w
}

// inbox handles messages one after the other, in the order they came. Whoever sends one waits for it, and handles it where no
// other is before it, which saves a change of goroutines; a goroutine handles those that came while it did. So nothing outlives
// its senders. The state that messages change belongs to the message that is being handled.
type inbox struct {
	mu       sync.Mutex // of messages alone: no message is handled under it
	messages []message  // the first is being handled
}

// message is a function to call when it is the turn of a message.
type message struct {
	call    func()
	handled chan struct{}
}

// handle calls f after the messages that came before, and returns when f has.
func (in *inbox) handle(f func()) {
	m := message{f, make(chan struct{})}
	if !in.add(m) {
		<-m.handled
		return
	}
	m.call()
	if next, ok := in.next(); ok {
		go in.serve(next)
	}
}

// add says whether a message is the first.
func (in *inbox) add(m message) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = append(in.messages, m)
	return len(in.messages) == 1
}

func (in *inbox) serve(m message) {
	for ok := true; ok; m, ok = in.next() {
		m.call()
		close(m.handled)
	}
}

// next gives the message after the one that was handled; false if none waits.
func (in *inbox) next() (message, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = slices.Delete(in.messages, 0, 1)
	if len(in.messages) == 0 {
		return message{}, false
	}
	return in.messages[0], true
}
