package conversation

import (
	"context"

	"ductor/orchestrator"
)

// quietChat is a Chat that hears of a turn with a silent word, or whose answer it may have already, once it ended with
// something else.
type quietChat struct{ orchestrator.Chat }

func isQuiet(t orchestrator.Turn) bool { return t.Wants.Silence != "" || t.Wants.Known != "" }

// known says whether an outcome is not worth telling.
func known(w orchestrator.Wants, o orchestrator.Outcome) bool {
	return o.State == orchestrator.TurnDone && (orchestrator.OnlyWord(o.Text, w.Silence) || w.Known != "" && w.Known == orchestrator.Digest(o.Text))
}

func (d quietChat) Queued(t orchestrator.Turn, ahead int) {
	if !isQuiet(t) {
		d.Chat.Queued(t, ahead)
	}
}

func (d quietChat) Unqueued(t orchestrator.Turn) {
	if !isQuiet(t) {
		d.Chat.Unqueued(t)
	}
}

func (d quietChat) Redeliver(ctx context.Context, t orchestrator.Turn) error {
	if known(t.Wants, t.Outcome) {
		return nil
	}
	return d.Chat.Redeliver(ctx, t)
}
