package turn

import (
	"context"

	"ductor/orchestrator"
)

// QuietChat is a Chat that shows nothing while a quiet turn runs (see orchestrator.Turn.IsQuiet). It shows the outcome
// only if Wants.NeedNoMessage returns false.
type QuietChat struct{ orchestrator.Chat }

// Queued implements orchestrator.Chat.
func (d QuietChat) Queued(t orchestrator.Turn, ahead int) {
	if !t.IsQuiet() {
		d.Chat.Queued(t, ahead)
	}
}

// Unqueued implements orchestrator.Chat.
func (d QuietChat) Unqueued(t orchestrator.Turn) {
	if !t.IsQuiet() {
		d.Chat.Unqueued(t)
	}
}

// Redeliver implements orchestrator.Chat.
func (d QuietChat) Redeliver(ctx context.Context, t orchestrator.Turn) error {
	if t.Wants.NeedNoMessage(t.Outcome) {
		return nil
	}
	return d.Chat.Redeliver(ctx, t)
}
