package conversation

import (
	"context"

	"ductor/orchestrator"
)

// quietChat is the Chat for turns of jobs that may have nothing to report (see isQuiet). It shows nothing while such a
// turn runs. It shows the outcome only if Wants.NeedNoMessage returns false.
type quietChat struct{ orchestrator.Chat }

func isQuiet(t orchestrator.Turn) bool { return t.Wants.Silence != "" || t.Wants.Known != "" }

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
	if t.Wants.NeedNoMessage(t.Outcome) {
		return nil
	}
	return d.Chat.Redeliver(ctx, t)
}
