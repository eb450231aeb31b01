package orchestrator

import (
	"context"

	"ductor/cli"
)

// quietChat is a Chat that hears of a turn with a silent word, or whose answer it may have already, once it ended with
// something else.
type quietChat struct{ Chat }

func isQuiet(t Turn) bool { return t.Wants.Silence != "" || t.Wants.Known != "" }

// known says whether an outcome is not worth telling.
func (w Wants) known(o Outcome) bool {
	return o.State == TurnDone && (OnlyWord(o.Text, w.Silence) || w.Known != "" && w.Known == Digest(o.Text))
}

func (d quietChat) Card(t Turn) Card {
	if isQuiet(t) {
		return quietCard{d.Chat, t}
	}
	return d.Chat.Card(t)
}

func (d quietChat) Reopen(ctx context.Context, t Turn) Card {
	if isQuiet(t) {
		return quietCard{d.Chat, t}
	}
	return d.Chat.Reopen(ctx, t)
}

func (d quietChat) Queued(t Turn, ahead int) {
	if !isQuiet(t) {
		d.Chat.Queued(t, ahead)
	}
}

func (d quietChat) Unqueued(t Turn) {
	if !isQuiet(t) {
		d.Chat.Unqueued(t)
	}
}

func (d quietChat) Redeliver(ctx context.Context, t Turn) error {
	if t.Wants.known(t.Outcome) {
		return nil
	}
	return d.Chat.Redeliver(ctx, t)
}

// quietCard shows nothing before the outcome.
type quietCard struct {
	chat Chat
	turn Turn
}

func (quietCard) Show(cli.Event)        {}
func (quietCard) Leave(context.Context) {}

func (c quietCard) Finish(ctx context.Context, o Outcome) error {
	c.turn.State, c.turn.Outcome = o.State, o
	return quietChat{c.chat}.Redeliver(ctx, c.turn)
}
