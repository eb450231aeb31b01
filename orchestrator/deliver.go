package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// deliver waits until the chat shows the outcome, and what record gave for it says that it is kept, but not for ever: a
// chat that cannot be reached must not keep its agent from working. The rest of the wait goes on beside the next turn.
func (o *Orchestrator) deliver(ctx context.Context, t Turn, stored <-chan bool, show func(context.Context) error) {
	done := make(chan struct{})
	o.wg.Go(func() {
		defer close(done)
		ctx, stop := o.untilClosed(ctx)
		defer stop()
		ctx, shown := o.wanted(ctx, t)
		defer shown()
		log := o.log.With("turn", t.ID)
		delivered := o.insist(log, "outcome not delivered", func() error {
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
	wait := time.NewTimer(o.opts.DeliveryWait)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
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
