package copilot

import (
	"context"
	"log/slog"
	"time"

	"ductor/cli"
)

// restWait is how long it may take to record that a process rests, when it is let go of.
const restWait = 5 * time.Second

// busier counts one more turn in. It is called before the turn is asked for.
func (h *hub) busier() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
}

// quieter counts the turn out if nothing is left of it. After the last one it is recorded that the process rests: what
// begins a turn is queued after that, if the turn was counted in later.
func (t *turn) quieter() {
	refused := t.p.failure != nil && !t.p.begun && t.cut == ""
	if !t.p.ended && !refused && !t.unasked {
		return
	}
	h := t.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy--
	if h.busy > 0 || h.doomed || h.spoiled {
		return
	}
	h.record(cli.RestMark, t.s.provider.opts.Logger)
}

// record queues a mark of no turn.
func (h *hub) record(what cli.TurnID, log *slog.Logger) {
	mark := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), restWait)
		defer cancel()
		return h.process.Begin(ctx, cli.Mark{Turn: what, Output: h.handled.Load()})
	}
	_ = h.frames.offer(outgoing{before: mark, failed: func(err error) { // if that fails, it is gone
		log.Debug("what a copilot does is not noted", "what", string(what), "pid", h.process.PID(), "err", err)
	}})
}

// unload puts a session away that an earlier ductor may have left loaded in the process, so that it is resumed as it is
// asked for now. What is not loaded cannot be put away, and need not be.
func (h *hub) unload(ctx context.Context, id cli.AgentSessionID) {
	if h.former && h.slot(id) == nil {
		_ = h.call(ctx, "session.destroy", map[string]any{"sessionId": id}, nil)
	}
}
