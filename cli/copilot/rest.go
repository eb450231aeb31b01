package copilot

import (
	"context"
	"log/slog"

	"ductor/cli"
)

// turnStarted increments the active-turn count. It is called before the turn is asked for.
func (h *server) turnStarted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
}

// turnEnded decrements the active-turn count if nothing is left of the turn and, at zero, records that the process is idle: what
// begins a turn is queued after that, if the turn was counted in later.
func (t *turn) turnEnded() {
	refused := t.p.failure != nil && !t.p.begun && t.cut == ""
	if !t.p.ended && !refused && !t.unsent {
		return
	}
	h := t.server
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy--
	if h.busy > 0 || h.ending || h.leftovers {
		return
	}
	h.record(cli.RestMark, t.s.provider.opts.Logger)
}

// record queues a mark of no turn.
func (h *server) record(what cli.TurnID, log *slog.Logger) {
	h.peer.Mark(cli.Mark{Turn: what}, func(err error) {
		log.Debug("what a copilot does is not noted", "what", string(what), "pid", h.process.PID(), "err", err)
	})
}

// unload puts a session away that the previous ductor process may have left loaded, so that it is resumed as it is
// asked for now. What is not loaded cannot be put away, and need not be.
func (h *server) unload(ctx context.Context, id cli.AgentSessionID) {
	if h.former && h.slot(id) == nil {
		_ = h.call(ctx, "session.destroy", map[string]any{"sessionId": id}, nil)
	}
}
