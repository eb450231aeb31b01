package conversation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// delivery is the delivery of an outcome to the chat.
type delivery struct {
	turn   orchestrator.Turn
	stored <-chan bool // the result of record
	show   func(context.Context, orchestrator.Outcome) error
	// changed computes the file changes of the turn after the chat shows the outcome, and amend adds them to the shown
	// outcome. changed is nil if there are no changes to compute.
	changed func(context.Context) orchestrator.Changed
	amend   func(context.Context, orchestrator.Outcome) error
}

// deliver shows an outcome, and then the turn's file changes. It waits until the chat shows the outcome and the store
// has it, but at most for Options.DeliveryWait: an unreachable chat must not delay the agent. Then the next turn runs.
// The events of that turn wait in its Fanout, so that the outcomes of a conversation are shown one after another.
func (c *conversation) deliver(ctx context.Context, d delivery) {
	if d.changed == nil {
		c.deliverOutcome(ctx, d, nil)
		return
	}
	rest := make(chan bool, 1)
	shown := c.deliverOutcome(ctx, d, rest)
	c.e.wg.Go(func() { rest <- c.e.amend(ctx, d, shown) })
}

// amend adds the file changes to an outcome that the chat already shows. It reports whether the chat then shows the
// complete outcome.
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
	return e.retryUntilDone(e.log.With("turn", t.ID), "changes-not-shown",
		func() error { return d.amend(ctx, t.Outcome) })
}

// deliverOutcome shows an outcome. The returned channel receives true if the chat shows it. rest receives true if the
// chat shows the parts that are added later; it is nil if nothing is added.
func (c *conversation) deliverOutcome(ctx context.Context, d delivery, rest <-chan bool) <-chan bool {
	t := d.turn
	done, shown := make(chan struct{}), make(chan bool, 1)
	e, keep := c.e, ctx
	ctx, giveUp := context.WithCancelCause(ctx)
	before, tried := c.delivering(t, giveUp)
	e.wg.Go(func() {
		defer close(done)
		defer c.do(func() { delete(c.showing, t.ID) })
		defer giveUp(nil)
		defer tried()
		ctx, stop := e.untilClosed(ctx)
		defer stop()
		select {
		case <-before:
		case <-ctx.Done():
		}
		log := e.log.With("turn", t.ID)
		wanted := true
		delivered := e.retryUntilDone(log, "outcome-not-delivered", func() error {
			defer tried() // later deliveries wait only for the first try
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
		e.opts.Gateway.Settled(t.ID) // the outcome is already committed
		mark := func() {
			if err := e.opts.Store.MarkDelivered(context.WithoutCancel(ctx), t.ID); err != nil {
				log.Error("mark turn delivered", "err", err)
			}
		}
		if wanted && rest == nil {
			mark()
		} else { // mark later; if ductor ends before, the next process shows the outcome
			e.wg.Go(func() {
				if (rest == nil || <-rest) && (wanted || e.withdraw(keep, d)) {
					mark()
				}
			})
		}
		_, _ = e.opts.Store.Session(ctx, t.Session) // loads the session into the store's cache for the next prompt
	})
	if t.Outcome.State == orchestrator.TurnAborted { // do not delay the next turn of the user who stopped this one
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

// withdraw removes the buttons from the card of an outcome that a user no longer wants to see. It reports whether the
// chat shows the card without buttons.
func (e *Engine) withdraw(ctx context.Context, d delivery) bool {
	o, log := d.turn.Outcome, e.log.With("turn", d.turn.ID)
	if t, err := e.opts.Store.Turn(ctx, d.turn.ID); err == nil { // includes changes that amend has stored
		o = t.Outcome
	}
	o.Announce = orchestrator.Unwanted
	if err := e.opts.Store.AmendOutcome(ctx, d.turn.ID, o); err != nil {
		log.Error("store that an outcome is not wanted", "err", err)
	}
	ctx, stop := e.untilClosed(ctx)
	defer stop()
	return e.retryUntilDone(log, "buttons-not-removed", func() error { return d.show(ctx, o) })
}

// delivering registers a delivery as the last delivery of the conversation. before is closed once the previous delivery
// was tried. The caller calls tried, at least once, to report that this delivery was tried. If the user no longer wants
// to see the outcome, giveUp is called with errNotWanted.
func (c *conversation) delivering(t orchestrator.Turn, giveUp context.CancelCauseFunc) (before <-chan struct{},
	tried func()) {
	shown := make(chan struct{})
	c.do(func() {
		before, c.shown = c.shown, shown
		if t.Outcome.State != orchestrator.TurnAborted { // the chat always shows that a turn was aborted
			c.showing[t.ID] = giveUp
		}
	})
	return before, sync.OnceFunc(func() { close(shown) })
}

// lastShown returns a channel that is closed once the delivery of the last outcome was tried.
func (c *conversation) lastShown() (shown <-chan struct{}) {
	c.do(func() { shown = c.shown })
	return shown
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// untilClosed returns a context that ends lastDelivery after the engine starts to close.
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

// lastDelivery limits how long a shutdown waits until chats show the ended turns.
const lastDelivery = 5 * time.Second

// errNotWanted is the cause of the context if the user does not want to see the rest of an outcome.
var errNotWanted = errors.New("the user does not want the rest of the answer")

// giveUpShowing cancels the pending deliveries of outcomes. It returns the turn of one of them, or "" if it cancelled
// none.
func (c *conversation) giveUpShowing() (turn cli.TurnID) {
	for id, giveUp := range c.showing {
		giveUp(errNotWanted)
		turn = id
	}
	return turn
}

// record stores a fact that the chat shows or will show. It returns the error of the first try. If that try fails,
// record retries in the background until the write succeeds or the engine ends. The channel receives true if the write
// succeeded.
func (e *Engine) record(ctx context.Context, log *slog.Logger, write func(context.Context) error) (<-chan bool, error) {
	done := make(chan bool, 1)
	err := write(ctx)
	if err == nil || !e.open() {
		done <- err == nil
		return done, err
	}
	go func() {
		defer e.wg.Done()
		done <- e.retryUntilDone(log, "not-recorded", func() error { return write(ctx) })
	}()
	return done, err
}

// recorded returns the channel of record for a fact that is already stored.
func recorded() <-chan bool {
	done := make(chan bool, 1)
	done <- true
	return done
}

// retryUntilDone retries f until it succeeds. It returns false if the engine ends first.
func (e *Engine) retryUntilDone(log *slog.Logger, trouble string, f func() error) bool {
	for pause := e.opts.DeliveryWait; ; pause = min(2*pause, longestPause) {
		_, diskChanged := e.diskState()
		err := f()
		if err == nil {
			return true
		}
		log := log.With("err", err)
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			log.Warn(trouble+"; it is tried again now", "after", pause)
		case <-diskChanged:
			again.Stop()
		case <-e.life.Done():
			again.Stop()
			log.Warn(trouble + "; it is tried again after the next start")
			return false
		}
	}
}

// longestPause limits the pause between two tries.
const longestPause = 5 * time.Minute

// ending returns a function that stores the end of a turn. The function does not change a turn whose end is already
// stored.
func (e *Engine) ending(t orchestrator.Turn, promptSent bool) func(context.Context) error {
	ended, id := e.now(), t.ID
	return func(ctx context.Context) error {
		if !promptSent { // no agent got the prompt
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

// diskState returns the state of the disk, and a channel that is closed once the state has changed.
func (e *Engine) diskState() (orchestrator.DiskState, <-chan struct{}) {
	if e.opts.Disk == nil {
		return orchestrator.DiskWorks, nil
	}
	state, changed := e.opts.Disk.Disk()
	return state, changed.Done()
}

// diskFull returns an error while the disk is full.
func (e *Engine) diskFull() error {
	if state, _ := e.diskState(); state == orchestrator.DiskFull {
		return orchestrator.ErrDiskFull
	}
	return nil
}

// AwaitDisk implements turn.Conversation.
func (c *conversation) AwaitDisk(ctx context.Context) bool { return c.e.awaitDisk(ctx) }

// awaitDisk waits while the disk is full. It returns false if ctx ends first, or if Options.Disk is nil.
func (e *Engine) awaitDisk(ctx context.Context) bool {
	state, changed := e.diskState()
	if changed == nil || state != orchestrator.DiskFull {
		return changed != nil
	}
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}
