// Package conversation runs conversations: their queues, turns and sessions. It also handles history, steering,
// delivery and recovery.
//
// Package bot shows conversations in Telegram, package cli runs the agents, and internal/store stores everything.
// Package orchestrator defines the interfaces to them.
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

// conversation is the queue of one conversation, with its running turn. Only functions that run in the inbox access its
// state. They also make the commits that change the queue, so no lock is held during a commit.
type conversation struct {
	inbox inbox
	e     *Engine
	id    orchestrator.ConversationID

	// running is the running turn, or nil. All goroutines may load it. Only functions in the inbox store a new value.
	running atomic.Pointer[running]

	aborts  atomic.Int32 // unrecorded aborts; until they are recorded, no queued turn starts
	queue   []waiting
	start   start
	cleared int // number of aborts that emptied the queue
	// showing has a function for each outcome that the chat does not show yet. The function cancels the delivery.
	showing map[cli.TurnID]context.CancelCauseFunc
	shown   <-chan struct{} // closed once the last outcome was delivered or its delivery failed
	last    lastTurn        // used by the running turn
	titles  titles
}

type lastTurn struct {
	turn   turn.Last
	absent map[string]string // reasons why the turn did not get some MCP servers of the owner, by server
}

// start determines when queued turns start after a restart of ductor.
type start struct {
	later bool // start turns only after the outcomes of the previous process are shown
	// redelivered is closed when the chat shows the outcomes of the previous process. It is nil if all of them are
	// shown.
	redelivered <-chan struct{}
}

type waiting struct {
	turn    orchestrator.Turn
	shown   bool        // the chat shows that the turn waits
	remains cli.Remains // what the previous process left of the turn; empty for a turn that has not run
	// cardOpened is set if the previous process may have opened the turn's card.
	cardOpened bool
	after      <-chan struct{} // closed when the turn may run; nil: immediately
}

// running is a running turn. A running is immutable.
type running struct {
	turn    orchestrator.Turn
	started time.Time
	req     *cli.Request // the request to the agent; nil until it is prepared
	// promptSent is set when the store has recorded the turn's start, right before the agent gets the prompt. It is nil
	// as long as req is nil.
	promptSent *atomic.Bool
	ctx        context.Context // ends when the turn is aborted
	cancel     context.CancelCauseFunc
	retries    context.Context // ends when the turn ends or when a user wants no retries
	noRetries  context.CancelFunc
	helpers    *helpers
	cleared    int           // conversation.cleared when another message replaced this turn
	over       chan struct{} // closed once all processes are dead and the delivery of the outcome was tried
}

// is reports whether r is the turn with this ID. It returns false if r is nil.
func (r *running) is(id cli.TurnID) bool { return r != nil && r.turn.ID == id }

// do runs f in the conversation's inbox, and then starts the next turn if possible. So an abort after do finds that
// turn. Functions in the inbox must not call do.
func (c *conversation) do(f func()) {
	c.inbox.handle(func() {
		f()
		c.startNext()
	})
}

// startNext starts the first turn of the queue if no turn is running.
func (c *conversation) startNext() {
	if c.running.Load() != nil || len(c.queue) == 0 || c.start.later || c.aborts.Load() > 0 || !c.e.open() {
		return
	}
	w := c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1)
	ctx, cancel := context.WithCancelCause(c.e.life)
	if w.turn.Aborting {
		cancel(cli.ErrAborted)
	}
	retries, noRetries := context.WithCancel(ctx)
	c.running.Store(&running{turn: w.turn, started: c.e.now(), ctx: ctx, cancel: cancel, retries: retries,
		noRetries: noRetries, over: make(chan struct{}), helpers: &helpers{}})
	go func() {
		defer c.e.wg.Done()
		defer cancel(nil)
		growstack.Grow()
		if w.after != nil {
			<-w.after
		}
		c.e.unqueued(w)
		c.run(ctx, w)
		c.do(c.turnEnded)
	}()
}

// turnEnded ends the running turn; do starts the next one. turnEnded closes running.over after the delivery of the
// outcome was tried.
func (c *conversation) turnEnded() {
	over, shown := c.running.Swap(nil).over, c.shown
	c.e.wg.Go(func() {
		<-shown // deliver closes shown even if the delivery fails
		close(over)
	})
}

// RequestReady implements turn.Conversation.
func (c *conversation) RequestReady(t orchestrator.Turn, req cli.Request, promptSent *atomic.Bool) {
	c.do(func() {
		now := *c.running.Load()
		now.turn, now.req, now.promptSent = t, &req, promptSent
		c.running.Store(&now)
		if req.Began.IsZero() && !t.Bypass.IsZero() && !c.e.now().Before(t.Bypass) { // over since its preparation
			now.cancel(turn.ErrBypassOver)
		}
	})
}

// ahead returns how many turns a new turn must wait for.
func (c *conversation) ahead() int {
	n := len(c.queue)
	if c.running.Load() != nil {
		n++
	}
	return n
}

func (c *conversation) find(id cli.TurnID) int {
	return slices.IndexFunc(c.queue, func(w waiting) bool { return w.turn.ID == id })
}

func (c *conversation) remove(i int) waiting {
	w := c.queue[i]
	c.queue = slices.Delete(c.queue, i, i+1)
	return w
}

// inbox runs functions one at a time, in order. Only the function that runs may access the state of the conversation.
//
// Callers wait for their functions. If no other function runs, the caller runs its own function, which saves a switch
// of goroutines. A new goroutine runs the functions that arrive in the meantime. It ends after the last of them, so it
// does not outlive the callers.
type inbox struct {
	mu       sync.Mutex // guards messages only; not held while a function runs
	messages []message  // the first one runs now
}

// message is a function to call and a channel to close afterwards.
type message struct {
	call    func()
	handled chan struct{}
}

// handle calls f after all earlier messages and returns when f has returned.
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

// add appends a message. It returns true if m is the only message, so that the caller must run m.
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

// next removes the first message, which has been handled, and returns the next one, or false.
func (in *inbox) next() (message, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = slices.Delete(in.messages, 0, 1)
	if len(in.messages) == 0 {
		return message{}, false
	}
	return in.messages[0], true
}
