// Package conversation runs conversations: their queues, turns and sessions. It also passes history to agents, adds
// prompts to running turns, shows outcomes, and continues after a restart.
//
// Package bot shows conversations in Telegram, package cli runs the agents, and internal/store stores everything.
// Package orchestrator defines the interfaces to them.
package conversation

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/internal/growstack"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation/inbox"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/turn"
)

// conversation holds the queue and the running turn of one conversation. Only functions that run in its inbox may
// access its fields, because there is no mutex. These functions also make the database commits that change the queue.
type conversation struct {
	inbox  inbox.Inbox[conversation]
	e      *Engine
	at     atomic.Pointer[orchestrator.ConversationID] // current ID; it changes if a group becomes a supergroup
	active active                                      // any goroutine may use its methods

	queue   []waiting
	start   start
	cleared int // how often a user has emptied the queue
	// showing contains a function for each outcome that the chat does not show yet. If the function is called, ductor
	// no longer tries to show the outcome.
	showing map[cli.TurnID]context.CancelCauseFunc
	shown   <-chan struct{} // closed once ductor has tried to show the newest outcome
	last    lastTurn
	titles  sessions.Titles
}

// active contains the running turns and the pending aborts of a conversation. An abort reads this data without waiting
// for the inbox.
//
// A conversation can have several running turns: when a group becomes a supergroup, another conversation may already
// have the new ID. The group's conversation then absorbs the other conversation, whose running turn continues (see
// absorb).
type active struct {
	running  atomic.Pointer[running] // nil if no turn runs; only functions in the inbox may store it
	aborts   atomic.Int32            // number of aborts that are not stored yet; see mayStart
	absorbed atomic.Pointer[active]
}

// turns returns the running turns of the conversation and of all conversations that it absorbed. Each conversation has
// at most one running turn.
func (a *active) turns() (all []*running) {
	for ; a != nil; a = a.absorbed.Load() {
		if r := a.running.Load(); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// first returns the first of the running turns, or nil.
func (a *active) first() *running {
	for _, r := range a.turns() {
		return r
	}
	return nil
}

// turn returns the running turn with the given ID, or nil.
func (a *active) turn(id cli.TurnID) *running {
	for _, r := range a.turns() {
		if r.turn.ID == id {
			return r
		}
	}
	return nil
}

// replace replaces the running turn r by a changed copy. It also finds r in a conversation that this conversation
// absorbed.
func (a *active) replace(r, changed *running) {
	for ; a != nil && !a.running.CompareAndSwap(r, changed); a = a.absorbed.Load() {
	}
}

func (a *active) aborting() bool {
	return a != nil && (a.aborts.Load() > 0 || a.absorbed.Load().aborting())
}

type lastTurn struct {
	turn   turn.Last
	absent turn.Absences
}

// start controls when queued turns run after a restart of ductor.
type start struct {
	later bool // if true, no turn starts before the chat shows the outcomes from before the restart
	// redelivered is closed once the chat shows the outcomes from before the restart. It is nil in a conversation
	// without turns from before the restart.
	redelivered <-chan struct{}
}

type waiting struct {
	turn    orchestrator.Turn
	shown   bool        // the chat shows that the turn waits
	remains cli.Remains // state of a turn that began before a restart; empty for a new turn
	// cardOpened is true if the chat may contain a card of the turn from before a restart.
	cardOpened bool
}

// running describes the running turn. It is immutable: every change stores a new value.
type running struct {
	turn    orchestrator.Turn
	started time.Time
	req     *cli.Request // the request to the agent; nil until the request is prepared
	// promptSent is set right before the agent gets the prompt, once the store has recorded the start of the turn. It
	// is nil as long as req is nil.
	promptSent *atomic.Bool
	ctx        context.Context // cancelled when the turn is aborted
	cancel     context.CancelCauseFunc
	retries    context.Context // cancelled when the turn ends, or when a user stops ductor from trying again
	noRetries  context.CancelFunc
	helpers    *turn.Helpers
	cleared    int           // value of conversation.cleared when the turn started
	over       chan struct{} // closed once all processes of the turn are dead and ductor has tried to show the outcome
}

// id returns the ID of the conversation. The ID changes if a group becomes a supergroup; see Engine.MoveChat.
func (c *conversation) id() orchestrator.ConversationID { return *c.at.Load() }

// do runs f in the conversation's inbox, and then starts the next turn if possible. No other function in the inbox runs
// between f and that start. So if f adds a turn to an idle conversation, a later abort finds this turn running.
// Functions in the inbox must not call do.
//
// If another conversation absorbed this one, do uses the inbox of that conversation, and passes that conversation to f.
func (c *conversation) do(f func(*conversation)) {
	c.inbox.Handle(func(c *conversation) {
		f(c)
		c.startNext()
	})
}

// mayStart reports whether the first turn of the queue may start. During an abort, new turns may not start. A turn that
// began before a restart may: its agent is already working, and an abort only stops turns that it finds in c.active.
func (c *conversation) mayStart() bool {
	if c.active.first() != nil || len(c.queue) == 0 || c.start.later {
		return false
	}
	return c.queue[0].remains != "" || !c.active.aborting()
}

func (c *conversation) startNext() {
	if !c.mayStart() || !c.e.open() {
		return
	}
	for len(c.queue) > 0 && c.dropUnpermitted(0) {
	}
	if len(c.queue) == 0 {
		c.e.wg.Done()
		return
	}
	w := c.remove(0)
	ctx, cancel := context.WithCancelCause(c.e.life)
	if w.turn.Aborting {
		cancel(cli.ErrAborted)
	}
	retries, noRetries := context.WithCancel(ctx)
	c.active.running.Store(&running{turn: w.turn, started: c.e.now(), ctx: ctx, cancel: cancel, retries: retries,
		noRetries: noRetries, over: make(chan struct{}), helpers: &turn.Helpers{}, cleared: c.cleared})
	redelivered := c.start.redelivered
	go func() {
		defer c.e.wg.Done()
		defer cancel(nil)
		growstack.GrowForTurn()
		if redelivered != nil {
			select {
			case <-redelivered:
			case <-ctx.Done():
			}
		}
		c.e.unqueued(w)
		c.run(ctx, w)
		c.do(c.turnEnded)
	}()
}

// dropUnpermitted drops a turn of the queue if the turn may no longer run. It returns true if it has dropped the turn.
func (c *conversation) dropUnpermitted(i int) bool {
	if c.permitted(c.queue[i]) {
		return false
	}
	c.e.log.Warn("a waiting prompt is cancelled: its user may no longer use ductor", "turn", c.queue[i].turn.ID)
	c.drop(i)
	return true
}

// permitted reports whether the user of a waiting turn may still use ductor. A turn that began before a restart may
// continue in any case.
func (c *conversation) permitted(w waiting) bool {
	return c.e.opts.Permits == nil || w.remains != "" || c.e.opts.Permits(w.turn)
}

// drop removes a turn from the queue and cancels it.
func (c *conversation) drop(i int) { c.e.cancelRemoved(c.remove(i)) }

// turnEnded records that the running turn of c has ended. It closes running.over once ductor has tried to show the
// outcome. owner is c, or the conversation that absorbed c.
func (c *conversation) turnEnded(owner *conversation) {
	over, shown := c.active.running.Swap(nil).over, owner.shown
	c.e.wg.Go(func() {
		<-shown // closed after one try to show the outcome, even a failed one
		close(over)
	})
}

// RequestReady implements turn.Conversation.
func (c *conversation) RequestReady(t orchestrator.Turn, req cli.Request, promptSent *atomic.Bool) {
	c.do(func(*conversation) {
		now := *c.active.running.Load()
		now.turn, now.req, now.promptSent = t, &req, promptSent
		c.active.running.Store(&now)
		// If the bypass ended while the request was prepared, the agent must not start with it.
		if req.Began.IsZero() && !t.Bypass.IsZero() && !c.e.now().Before(t.Bypass) {
			now.cancel(turn.ErrBypassOver)
		}
	})
}

func (c *conversation) ahead() int {
	return len(c.queue) + len(c.active.turns())
}

func (c *conversation) find(id cli.TurnID) int {
	return slices.IndexFunc(c.queue, func(w waiting) bool { return w.turn.ID == id })
}

func (c *conversation) remove(i int) waiting {
	w := c.queue[i]
	c.queue = slices.Delete(c.queue, i, i+1)
	return w
}
