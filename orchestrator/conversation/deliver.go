package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

type delivery struct {
	turn   orchestrator.Turn
	stored <-chan bool // from Retrier.Record; receives true once the store contains the outcome
	show   func(context.Context, orchestrator.Outcome) error
	// begun is called as soon as an abort can stop the delivery. It may be nil.
	begun func()
	// changed computes the file changes of the turn. It is nil if the turn changed no file. ductor calls changed after
	// the chat shows the outcome, and then calls amend to add the changes to the message in the chat.
	changed func(context.Context) orchestrator.Changed
	amend   func(context.Context, orchestrator.Outcome) error
}

// deliver shows an outcome, and afterwards the file changes of the turn. It returns once the chat shows the outcome and
// the store contains it, because then the next turn can run.
//
// deliver waits at most Options.DeliveryWait, so that the next turn can also run if the chat is unreachable. The card
// of the next turn still opens only after ductor has tried to show this outcome.
func (c *conversation) deliver(ctx context.Context, d delivery) {
	if d.changed == nil {
		c.deliverOutcome(ctx, d, nil)
		return
	}
	rest := make(chan bool, 1)
	shown := c.deliverOutcome(ctx, d, rest)
	c.e.wg.Go(func() { rest <- c.e.amend(ctx, d, shown) })
}

// amend adds the file changes to an outcome that the chat shows. It returns true if nothing remains to be shown.
func (e *Engine) amend(ctx context.Context, d delivery, shown <-chan bool) bool {
	t, changed := d.turn, d.changed(ctx)
	if changed == (orchestrator.Changed{}) {
		return true
	}
	t.Outcome.Changed = changed
	if err := e.opts.Store.AmendOutcome(ctx, t.ID, t.Outcome); err != nil {
		e.log.Error("store the changes of a turn", "turn", t.ID, "err", err)
	}
	if !<-shown {
		return true
	}
	ctx, stop := e.untilClosed(ctx)
	defer stop()
	return e.retrier().UntilDone(e.log.With("turn", t.ID), "changes-not-shown",
		func() error { return d.amend(ctx, t.Outcome) })
}

// deliverOutcome shows an outcome. The returned channel receives true once the chat shows the outcome, or false if
// ductor no longer tries to show it.
//
// If the caller will add file changes to the outcome, it passes the channel amended, and sends true to amended once the
// chat shows the file changes. Without file changes, amended is nil.
func (c *conversation) deliverOutcome(ctx context.Context, d delivery, amended <-chan bool) <-chan bool {
	t := d.turn
	done, shown := make(chan struct{}), make(chan bool, 1)
	e, keep := c.e, ctx
	ctx, giveUp := context.WithCancelCause(ctx)
	previous, tried := c.delivering(t, giveUp)
	if d.begun != nil {
		d.begun()
	}
	e.wg.Go(func() {
		defer close(done)
		defer c.do(func(c *conversation) { delete(c.showing, t.ID) })
		defer giveUp(nil)
		defer tried()
		ctx, stop := e.untilClosed(ctx)
		defer stop()
		select {
		case <-previous:
		case <-ctx.Done():
		}
		log := e.log.With("turn", t.ID)
		wanted := true
		delivered := e.retrier().UntilDone(log, "outcome-not-delivered", func() error {
			defer tried() // after one attempt, successful or not, the next outcome may be shown
			err := d.show(ctx, t.Outcome)
			if wanted = err == nil || context.Cause(ctx) != errNotWanted; !wanted {
				return nil
			}
			return err
		})
		shown <- delivered && wanted
		if !delivered || !<-d.stored {
			return
		}
		e.opts.Gateway.Settled(t.ID) // the store contains the outcome, so the agent's output is no longer needed
		mark := func() {
			if err := e.opts.Store.MarkDelivered(context.WithoutCancel(ctx), t.ID); err != nil {
				log.Error("mark turn delivered", "err", err)
			}
		}
		if wanted && amended == nil {
			mark()
		} else {
			e.wg.Go(func() {
				if (amended == nil || <-amended) && (wanted || e.withdraw(keep, d)) {
					mark()
				}
			})
		}
		_, _ = e.opts.Store.Session(ctx, t.Session) // puts the session into the store's cache for the next prompt
	})
	if t.Outcome.State == orchestrator.TurnAborted { // after an abort, the next turn does not wait for the chat
		return shown
	}
	wait := time.NewTimer(e.opts.DeliveryWait)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
	return shown
}

// withdraw removes the buttons from a card if the user no longer wants to see its outcome. It returns true if it has
// removed the buttons.
func (e *Engine) withdraw(ctx context.Context, d delivery) bool {
	o, log := d.turn.Outcome, e.log.With("turn", d.turn.ID)
	if t, err := e.opts.Store.Turn(ctx, d.turn.ID); err == nil {
		o = t.Outcome
	}
	o.Announce = orchestrator.Unwanted
	if err := e.opts.Store.AmendOutcome(ctx, d.turn.ID, o); err != nil {
		log.Error("store that an outcome is not wanted", "err", err)
	}
	ctx, stop := e.untilClosed(ctx)
	defer stop()
	return e.retrier().UntilDone(log, "buttons-not-removed", func() error { return d.show(ctx, o) })
}

// delivering registers a delivery as the newest of the conversation. ductor closes the channel previous once it has
// tried to show the previous outcome. The caller must call done once it has tried to show its own outcome; a second
// call of done does nothing. ductor calls giveUp with errNotWanted if the user no longer wants to see the caller's
// outcome.
func (c *conversation) delivering(t orchestrator.Turn, giveUp context.CancelCauseFunc) (previous <-chan struct{},
	done func()) {
	shown := make(chan struct{})
	c.do(func(c *conversation) {
		previous, c.shown = c.shown, shown
		if t.Outcome.State != orchestrator.TurnAborted { // always show that a turn was aborted
			c.showing[t.ID] = giveUp
		}
	})
	return previous, sync.OnceFunc(func() { close(shown) })
}

// untilClosed returns a context that is cancelled together with ctx. If the engine closes first, the context ends after
// the duration lastDelivery.
func (e *Engine) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	e.wg.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-e.life.Done():
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

// lastDelivery limits how long ductor tries to show outcomes while it shuts down.
const lastDelivery = 5 * time.Second

var errNotWanted = errors.New("the user does not want the rest of the answer")

// giveUpShowing makes ductor give up showing the outcomes that the chat does not show yet. It returns one of their
// turns, or "" if there were none.
func (c *conversation) giveUpShowing() (turn cli.TurnID) {
	for id, giveUp := range c.showing {
		giveUp(errNotWanted)
		turn = id
	}
	return turn
}

// ending returns a function that stores the end of a turn. The function may be called several times.
func (e *Engine) ending(t orchestrator.Turn, promptSent bool) func(context.Context) error {
	ended, id := e.now(), t.ID
	return func(ctx context.Context) error {
		if !promptSent { // the start of the turn is not stored yet
			if _, err := e.opts.Store.StartTurn(ctx, t, cli.Start{}); err != nil {
				return fmt.Errorf("start turn: %w", err)
			}
		}
		err := e.opts.Store.FinishTurn(ctx, id, ended, t.Outcome)
		if err == nil {
			return nil
		}
		if t, missing := e.opts.Store.Turn(ctx, id); missing == nil && t.State != orchestrator.TurnQueued &&
			t.State != orchestrator.TurnRunning {
			e.log.Error("finish turn", "turn", id, "err", err)
			return nil
		}
		return fmt.Errorf("finish turn: %w", err)
	}
}

// AwaitDisk implements turn.Conversation.
func (c *conversation) AwaitDisk(ctx context.Context) bool { return c.e.retrier().AwaitDisk(ctx) }
