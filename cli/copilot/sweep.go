package copilot

import (
	"context"

	"ductor/cli"
)

// letGo says whether somebody let go of a process, which goes on then.
func (hs *hubs) letGo(h *hub) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.detached
}

// sweep ends the process after an aborted turn that ran tools: the protocol has no environment for a session, by
// which what its tools started could be told from what those of others did. That happens at once when no other turn
// runs in it, else with the last of them. Sessions are gone on with by their ids, in another process.
func (t *turn) sweep(ran bool) {
	h := t.hub
	h.mu.Lock()
	was := h.spoiled
	h.spoiled = h.spoiled || t.cut != "" && ran
	h.doomed = h.doomed || h.spoiled
	spoiled := h.spoiled
	h.mu.Unlock()
	if !spoiled {
		return
	}
	if !h.alone(t.slot) || t.s.provider.hubs.letGo(h) {
		if !was { // a later ductor is to end it all the same
			h.record(cli.SpoilMark, t.s.provider.opts.Logger)
		}
		return
	}
	if err := h.stop(context.WithoutCancel(t.ctx), h.grace); err != nil {
		t.s.provider.opts.Logger.Error("a copilot with what an aborted turn started did not end", "err", err)
	}
}
