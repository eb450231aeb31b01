package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
)

// deliver waits until the chat shows the outcome, and what record gave for it says that it is kept, but not for ever: a
// chat that cannot be reached must not keep its agent from working. The next turn then runs, and its card waits: see
// heldCard. Outcomes of one conversation are shown one after another.
func (o *Orchestrator) deliver(ctx context.Context, t Turn, stored <-chan bool, show func(context.Context) error) {
	done := make(chan struct{})
	before, tried := o.delivering(t)
	o.wg.Go(func() {
		defer close(done)
		defer tried()
		ctx, stop := o.untilClosed(ctx)
		defer stop()
		ctx, shown := o.wanted(ctx, t)
		defer shown()
		select {
		case <-before:
		case <-ctx.Done():
		}
		log := o.log.With("turn", t.ID)
		delivered := o.insist(log, "outcome not delivered", func() error {
			defer tried() // an outcome that fails to be shown must not hold up those after it for ever
			err := show(ctx)
			if context.Cause(ctx) == errNotWanted {
				return nil
			}
			return err
		})
		if !delivered || !<-stored {
			return
		}
		if err := o.opts.Store.MarkDelivered(context.WithoutCancel(ctx), t.ID); err != nil {
			log.Error("mark turn delivered", "err", err)
		}
	})
	if t.Outcome.State == TurnAborted { // who stopped it wants what is next
		return
	}
	wait := time.NewTimer(o.opts.DeliveryWait)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
}

// delivering registers the delivery of an outcome as the last of its conversation. before is closed once the delivery
// before it was tried; tried says that about this one, and may be called more than once.
func (o *Orchestrator) delivering(t Turn) (before <-chan struct{}, tried func()) {
	shown := make(chan struct{})
	tried = sync.OnceFunc(func() { close(shown) })
	l, err := o.line(t.Prompt.Conversation)
	if err != nil {
		tried()
		return shown, tried
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.shown
	if before == nil {
		before = closedChannel()
	}
	l.shown = shown
	return before, tried
}

// lastShown is closed once the delivery of the last outcome of the conversation was tried.
func (o *Orchestrator) lastShown(id ConversationID) <-chan struct{} {
	l, err := o.line(id)
	if err != nil {
		return closedChannel()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil {
		return closedChannel()
	}
	return l.shown
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// wanted gives a context that ends with errNotWanted when the user does not want to see the outcome of t any more.
// done says that it is shown.
func (o *Orchestrator) wanted(ctx context.Context, t Turn) (_ context.Context, done func()) {
	l, err := o.line(t.Prompt.Conversation)
	if err != nil || t.Outcome.State == TurnAborted { // that it was aborted is said in any case
		return ctx, func() {}
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.showing == nil {
		l.showing = map[cli.TurnID]context.CancelCauseFunc{}
	}
	l.showing[t.ID] = giveUp
	return ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.showing, t.ID)
		giveUp(nil)
	}
}

// untilClosed gives a context that ends some time after the orchestrator was told to end.
func (o *Orchestrator) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	o.wg.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-o.life.Done():
		}
		last := time.NewTimer(lastDelivery)
		defer last.Stop()
		select {
		case <-ctx.Done():
		case <-last.C:
			cancel()
		}
	})
	return ctx, cancel
}

// lastDelivery is how long a shutdown waits for the chat to show what has ended.
const lastDelivery = 5 * time.Second

// errNotWanted says that the user does not want to see the rest of an outcome.
var errNotWanted = errors.New("the user does not want the rest of the answer")

// giveUpShowing ends the deliveries of outcomes and gives the turn of one of them; empty if there is none. l.mu is
// held.
func (l *line) giveUpShowing() (turn cli.TurnID) {
	for id, giveUp := range l.showing {
		giveUp(errNotWanted)
		turn = id
	}
	return turn
}
