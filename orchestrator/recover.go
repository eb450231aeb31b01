package orchestrator

import (
	"context"
	"fmt"

	"ductor/cli"
)

// Recover takes up what an earlier ductor left: turns that ran are shown as interrupted, never run again
// by themselves; outcomes the chat has not seen are shown; queued turns run. It returns once all of it is
// on its way. Call it once, before the first Submit.
func (o *Orchestrator) Recover(ctx context.Context) error {
	turns, err := o.opts.Store.OpenTurns(ctx)
	if err != nil {
		return fmt.Errorf("load open turns: %w", err)
	}
	left := make(map[ConversationID][]Turn)
	for _, t := range turns {
		left[t.Prompt.Conversation] = append(left[t.Prompt.Conversation], t)
	}
	for id, turns := range left {
		l, err := o.line(id)
		if err != nil {
			return err
		}
		o.takeUp(ctx, l, turns)
	}
	return nil
}

// takeUp shows what ended and then serves what waits, in one conversation.
func (o *Orchestrator) takeUp(ctx context.Context, l *line, turns []Turn) {
	var ended []Turn
	l.mu.Lock()
	for _, t := range turns {
		if t.State == TurnQueued {
			l.queue = append(l.queue, waiting{turn: t, shown: true})
			continue
		}
		ended = append(ended, t)
	}
	l.busy = true // so that nothing runs before what ended is shown
	l.mu.Unlock()
	if !o.open() {
		return
	}
	go func() {
		defer o.wg.Done()
		for _, t := range ended {
			o.redeliver(context.WithoutCancel(ctx), t)
		}
		l.mu.Lock()
		w, ctx, ok := o.take(l)
		l.mu.Unlock()
		o.work(l, w, ctx, ok)
	}()
}

func (o *Orchestrator) redeliver(ctx context.Context, t Turn) {
	if t.State == TurnRunning {
		t.State = TurnInterrupted
		t.Outcome = Outcome{State: TurnInterrupted, Agent: t.Agent, Model: t.Model,
			Failure: interruptedSentence, Offer: cli.ActionRetry}
		if err := o.opts.Store.FinishTurn(ctx, t.ID, o.now(), t.Outcome); err != nil {
			o.log.Error("record interrupted turn", "turn", t.ID, "err", err)
			return
		}
	}
	o.deliver(ctx, t, func(ctx context.Context) error { return o.opts.Chat.Redeliver(ctx, t) })
}
