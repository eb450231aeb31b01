package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ductor/cli"
)

// record has the store keep what is so already: it is in the chat, or will be. Where the store fails, that is tried again
// beside all else, until it goes well or the orchestrator ends; the channel says which. The error is that of the first
// try.
func (o *Orchestrator) record(ctx context.Context, log *slog.Logger, write func(context.Context) error) (<-chan bool, error) {
	done := make(chan bool, 1)
	err := write(ctx)
	if err == nil || !o.open() {
		done <- err == nil
		return done, err
	}
	go func() {
		defer o.wg.Done()
		done <- o.insist(log, "not recorded", func() error { return write(ctx) })
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
func (o *Orchestrator) insist(log *slog.Logger, trouble string, f func() error) bool {
	for pause := o.opts.DeliveryWait; ; pause = min(2*pause, longestPause) {
		_, diskChanged := o.diskState()
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
		case <-o.life.Done():
			again.Stop()
			log.Warn(trouble + "; it is tried again after the next start")
			return false
		}
	}
}

// longestPause is that between two tries.
const longestPause = 5 * time.Minute

// ending stores how a turn ended. One that has ended in the store is left as it is there.
func (o *Orchestrator) ending(id cli.TurnID, outcome Outcome) func(context.Context) error {
	ended := o.now()
	return func(ctx context.Context) error {
		err := o.opts.Store.FinishTurn(ctx, id, ended, outcome)
		if err == nil {
			o.opts.Gateway.Settled(id)
			return nil
		}
		if t, missing := o.opts.Store.Turn(ctx, id); missing == nil && t.State != TurnQueued && t.State != TurnRunning {
			o.log.Error("finish turn", "turn", id, "err", err)
			return nil
		}
		return fmt.Errorf("finish turn: %w", err)
	}
}
