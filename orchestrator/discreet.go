package orchestrator

import (
	"context"

	"ductor/cli"
)

// discreet is a Chat that is told of a turn with a silent word, or whose answer it may have already, once it ended with
// something else.
type discreet struct{ Chat }

func hushed(t Turn) bool { return t.Wants.Silence != "" || t.Wants.Known != "" }

// known says whether an outcome is not worth telling.
func (w Wants) known(o Outcome) bool {
	return o.State == TurnDone && (OnlyWord(o.Text, w.Silence) || w.Known != "" && w.Known == Digest(o.Text))
}

func (d discreet) Card(t Turn) Card {
	if hushed(t) {
		return hushedCard{d.Chat, t}
	}
	return d.Chat.Card(t)
}

func (d discreet) Reopen(ctx context.Context, t Turn) Card {
	if hushed(t) {
		return hushedCard{d.Chat, t}
	}
	return d.Chat.Reopen(ctx, t)
}

func (d discreet) Queued(t Turn, ahead int) {
	if !hushed(t) {
		d.Chat.Queued(t, ahead)
	}
}

func (d discreet) Unqueued(t Turn) {
	if !hushed(t) {
		d.Chat.Unqueued(t)
	}
}

func (d discreet) Redeliver(ctx context.Context, t Turn) error {
	if t.Wants.known(t.Outcome) {
		return nil
	}
	return d.Chat.Redeliver(ctx, t)
}

// hushedCard shows nothing before the outcome.
type hushedCard struct {
	chat Chat
	turn Turn
}

func (hushedCard) Show(cli.Event)        {}
func (hushedCard) Leave(context.Context) {}

func (c hushedCard) Finish(ctx context.Context, o Outcome) error {
	c.turn.State, c.turn.Outcome = o.State, o
	return discreet{c.chat}.Redeliver(ctx, c.turn)
}
