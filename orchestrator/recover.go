package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"ductor/cli"
)

// Recover takes up what the previous process left: turns that ran go on in their cards, or are shown as
// interrupted where that cannot be, and are never asked twice; outcomes the chat has not seen are shown;
// queued turns run. It returns once all of it is on its way. Call it once, before the first Submit.
func (o *Orchestrator) Recover(ctx context.Context) error {
	turns, err := o.opts.Store.OpenTurns(ctx)
	if err != nil {
		return fmt.Errorf("load open turns: %w", err)
	}
	remains, err := o.opts.Gateway.Survey(ctx, openTurns(turns))
	if err != nil {
		o.log.Error("look for what the previous process left", "err", err)
	}
	if err := o.endBypasses(ctx, turns, remains); err != nil {
		return err
	}
	if err := o.recoverAsks(ctx, turns, remains); err != nil {
		return err
	}
	left := make(map[ConversationID][]waiting)
	for _, t := range turns {
		w := waiting{turn: t, shown: t.State == TurnQueued}
		if t.State == TurnRunning {
			w.left = remains[t.ID]
		}
		left[t.Prompt.Conversation] = append(left[t.Prompt.Conversation], w)
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

// openTurns are those that an agent may be at.
func openTurns(turns []Turn) []cli.OpenTurn {
	var open []cli.OpenTurn
	for _, t := range turns {
		if t.State == TurnRunning {
			open = append(open, cli.OpenTurn{
				Turn: t.ID, Agent: t.Agent, Sandbox: t.Sandbox, Conversation: t.Prompt.Conversation.Key(), Started: t.Started,
				GivenUp: t.Crashes >= MostCrashes,
			})
		}
	}
	return open
}

// goesOn says whether the turn can run or resume.
func (w waiting) goesOn() bool {
	return w.turn.State == TurnQueued || w.left == cli.RemainsRun || w.left == cli.RemainsNothing
}

// takeUp goes on with the turn that ran, shows what ended and then serves what waits, in one conversation.
func (o *Orchestrator) takeUp(ctx context.Context, l *line, turns []waiting) {
	var ended []Turn
	var ran, wait []waiting
	for _, w := range turns {
		switch {
		case !w.goesOn():
			ended = append(ended, w.turn)
		case w.left != "": // before all that wait, of which one that was taken back may have a place before it
			ran = append(ran, w)
		default:
			wait = append(wait, w)
		}
	}
	resumed := len(ran) > 0
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.Concat(l.queue, ran, wait)
	if !o.open() {
		return
	}
	l.busy = true
	if resumed { // an abort must find it at once, and its card is in the chat already
		w, turnCtx, ok := o.take(l)
		go func() {
			defer o.wg.Done()
			o.redeliverAll(ctx, ended)
			o.work(l, w, turnCtx, ok)
		}()
		return
	}
	go func() {
		defer o.wg.Done()
		o.redeliverAll(ctx, ended)
		l.mu.Lock()
		w, turnCtx, ok := o.take(l)
		l.mu.Unlock()
		o.work(l, w, turnCtx, ok)
	}()
}

func (o *Orchestrator) redeliverAll(ctx context.Context, ended []Turn) {
	for _, t := range ended {
		o.redeliver(context.WithoutCancel(ctx), t)
	}
}

// What is said of a turn that ductor gives up, lest it crash again and again.
const (
	crashedSentence = "Given up: ductor crashed more than once while this ran. What it did until then stands."
	unshownNotice   = "⚠️ I give up to show an answer in this chat, since I crashed over it more than once. The log says what happened."
)

func (o *Orchestrator) redeliver(ctx context.Context, t Turn) {
	if t.State == TurnRunning || t.State == TurnSteered {
		sentence := interruptedSentence
		switch {
		case t.State == TurnSteered:
			sentence = steeredSentence
			o.opts.Chat.Unqueued(t)
		case t.Crashes >= MostCrashes:
			sentence = crashedSentence
		}
		t.State = TurnInterrupted
		t.Outcome = Outcome{State: TurnInterrupted, Agent: t.Agent, Model: t.Model,
			Failure: sentence, Offer: cli.ActionRetry}
		if err := o.opts.Store.FinishTurn(ctx, t.ID, o.now(), t.Outcome); err != nil {
			o.log.Error("record interrupted turn", "turn", t.ID, "err", err)
			return
		}
		o.opts.Gateway.Settled(t.ID)
	} else if t.Crashes >= MostCrashes {
		o.giveUpShowing(ctx, t)
		return
	}
	o.deliver(ctx, t, recorded(), func(ctx context.Context) error { return o.opts.Chat.Redeliver(ctx, t) })
}

// giveUpShowing says that an outcome is not shown, and no longer tries to.
func (o *Orchestrator) giveUpShowing(ctx context.Context, t Turn) {
	o.log.Error("an outcome is not shown: ductor crashed over it more than once", "turn", t.ID, "crashes", t.Crashes)
	if err := o.opts.Chat.Notice(ctx, t.Prompt.Conversation, unshownNotice); err != nil {
		o.log.Error("say that an outcome is not shown", "turn", t.ID, "err", err)
		return
	}
	if err := o.opts.Store.MarkDelivered(ctx, t.ID); err != nil {
		o.log.Error("mark turn delivered", "turn", t.ID, "err", err)
	}
}
