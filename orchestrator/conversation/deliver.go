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

// delivery is an outcome on its way into the chat.
type delivery struct {
	turn   orchestrator.Turn
	stored <-chan bool // see record
	show   func(context.Context, orchestrator.Outcome) error
	// changed compares the files of the turn after the chat shows the outcome; nil if the turn changed none. amend shows the outcome with
	// the changed files.
	changed func(context.Context) orchestrator.Changed
	amend   func(context.Context, orchestrator.Outcome) error
}

// deliver shows an outcome, and then what the turn changed. It waits until the chat shows the outcome and the store has it, but no longer
// than Options.DeliveryWait: a chat that cannot be reached must not keep its agent from working. The next turn then runs, and its Fanout
// holds the events for its card. Outcomes of one conversation are shown one after another.
func (c *conversation) deliver(ctx context.Context, d delivery) {
	if d.changed == nil {
		c.deliverOutcome(ctx, d, nil)
		return
	}
	rest := make(chan bool, 1)
	shown := c.deliverOutcome(ctx, d, rest)
	c.e.wg.Go(func() { rest <- c.e.amend(ctx, d, shown) })
}

// amend adds the changed files to an outcome once the chat shows it. It reports whether the chat shows all of it.
func (e *Engine) amend(ctx context.Context, d delivery, shown <-chan bool) bool {
	t, changed := d.turn, d.changed(ctx)
	if changed == (orchestrator.Changed{}) {
		return true
	}
	t.Outcome.Changed = changed
	if err := e.opts.Store.AmendOutcome(ctx, t.ID, t.Outcome); err != nil {
		e.log.Error("store what a turn changed", "turn", t.ID, "err", err)
	}
	if !<-shown {
		return true
	}
	ctx, stop := e.untilClosed(ctx)
	defer stop()
	return e.insist(e.log.With("turn", t.ID), "changes-not-shown", func() error { return d.amend(ctx, t.Outcome) })
}

// deliverOutcome returns a channel that gets whether the chat shows the outcome. rest gets whether the chat shows what the outcome lacks so
// far; it is nil for an outcome that lacks nothing.
func (c *conversation) deliverOutcome(ctx context.Context, d delivery, rest <-chan bool) <-chan bool {
	t := d.turn
	done, shown := make(chan struct{}), make(chan bool, 1)
	e := c.e
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
		delivered := e.insist(log, "outcome-not-delivered", func() error {
			defer tried() // an outcome that fails to be shown must not hold up those after it for ever
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
		e.opts.Gateway.Settled(t.ID) // what shows the outcome has committed it
		mark := func() {
			if err := e.opts.Store.MarkDelivered(context.WithoutCancel(ctx), t.ID); err != nil {
				log.Error("mark turn delivered", "err", err)
			}
		}
		if rest == nil {
			mark()
		} else { // a restart before then goes on with it
			e.wg.Go(func() {
				if <-rest {
					mark()
				}
			})
		}
		_, _ = e.opts.Store.Session(ctx, t.Session) // the next prompt finds it in memory
	})
	if t.Outcome.State == orchestrator.TurnAborted { // who stopped it wants what is next
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

// delivering registers the delivery of an outcome as the last of its conversation. before is closed once the delivery
// before it was tried; tried says that about this one, and may be called more than once. giveUp is called with
// errNotWanted when the user does not want to see the outcome any more.
func (c *conversation) delivering(t orchestrator.Turn, giveUp context.CancelCauseFunc) (before <-chan struct{}, tried func()) {
	shown := make(chan struct{})
	c.do(func() {
		before, c.shown = c.shown, shown
		if t.Outcome.State != orchestrator.TurnAborted { // that it was aborted is said in any case
			c.showing[t.ID] = giveUp
		}
	})
	return before, sync.OnceFunc(func() { close(shown) })
}

// lastShown is closed once the delivery of the last outcome was tried.
func (c *conversation) lastShown() (shown <-chan struct{}) {
	c.do(func() { shown = c.shown })
	return shown
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// untilClosed gives a context that ends some time after the orchestrator was told to end.
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

// lastDelivery is how long a shutdown waits for the chat to show what has ended.
const lastDelivery = 5 * time.Second

// errNotWanted says that the user does not want to see the rest of an outcome.
var errNotWanted = errors.New("the user does not want the rest of the answer")

// giveUpShowing ends the deliveries of outcomes and gives the turn of one of them; empty if there is none.
func (c *conversation) giveUpShowing() (turn cli.TurnID) {
	for id, giveUp := range c.showing {
		giveUp(errNotWanted)
		turn = id
	}
	return turn
}

// record has the store keep what is so already: it is in the chat, or will be. Where the store fails, that is tried again
// beside all else, until it goes well or the orchestrator ends; the channel says which. The error is that of the first
// try.
func (e *Engine) record(ctx context.Context, log *slog.Logger, write func(context.Context) error) (<-chan bool, error) {
	done := make(chan bool, 1)
	err := write(ctx)
	if err == nil || !e.open() {
		done <- err == nil
		return done, err
	}
	go func() {
		defer e.wg.Done()
		done <- e.insist(log, "not-recorded", func() error { return write(ctx) })
	}()
	return done, err
}

// recorded is what record gives for what is kept already.
func recorded() <-chan bool {
	done := make(chan bool, 1)
	done <- true
	return done
}

// insist does something again and again until it goes well; false if the orchestrator ends before.
func (e *Engine) insist(log *slog.Logger, trouble string, f func() error) bool {
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

// longestPause is that between two tries.
const longestPause = 5 * time.Minute

// ending stores how a turn ended. One that has ended in the store is left as it is there.
func (e *Engine) ending(t orchestrator.Turn, begun bool) func(context.Context) error {
	ended, id := e.now(), t.ID
	return func(ctx context.Context) error {
		if !begun { // it reached no agent
			if _, err := e.opts.Store.StartTurn(ctx, t, cli.Start{}); err != nil {
				return fmt.Errorf("start turn: %w", err)
			}
		}
		err := e.opts.Store.FinishTurn(ctx, id, ended, t.Outcome)
		if err == nil {
			return nil
		}
		if t, missing := e.opts.Store.Turn(ctx, id); missing == nil && t.State != orchestrator.TurnQueued && t.State != orchestrator.TurnRunning {
			e.log.Error("finish turn", "turn", id, "err", err)
			return nil
		}
		return fmt.Errorf("finish turn: %w", err)
	}
}

// diskState is the state of the disk, and a channel that is closed once that has changed.
func (e *Engine) diskState() (orchestrator.DiskState, <-chan struct{}) {
	if e.opts.Disk == nil {
		return orchestrator.DiskWorks, nil
	}
	state, changed := e.opts.Disk.Disk()
	return state, changed.Done()
}

// diskFull is an error while the disk is full.
func (e *Engine) diskFull() error {
	if state, _ := e.diskState(); state == orchestrator.DiskFull {
		return orchestrator.ErrDiskFull
	}
	return nil
}

// AwaitDisk implements turn.Conversation.
func (c *conversation) AwaitDisk(ctx context.Context) bool { return c.e.awaitDisk(ctx) }

// awaitDisk waits while the disk is full. False: ctx ended before, or it is not known when there is room.
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
