package copilot

import (
	"context"

	"ductor/cli"
)

// letGo says whether a session detached from a process, which then goes on.
func (hs *servers) letGo(h *server) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.detached
}

// sweep ends the process after an aborted turn that ran tools: the protocol has no environment for a session, by
// which what its tools started could be told from what those of others did. That happens at once when no other turn
// runs in it, else with the last of them. Sessions are resumed by their ids, in another process.
func (t *turn) sweep(ran bool) {
	h := t.server
	h.mu.Lock()
	was := h.leftovers
	h.leftovers = h.leftovers || t.cut != "" && ran && !t.replaced()
	h.ending = h.ending || h.leftovers
	leftovers := h.leftovers
	h.mu.Unlock()
	if !leftovers {
		return
	}
	if !h.alone(t.slot) || t.s.provider.servers.letGo(h) {
		if !was { // the next process is to end it all the same
			h.record(cli.SpoilMark, t.s.provider.opts.Logger)
		}
		return
	}
	if err := h.stop(context.WithoutCancel(t.ctx), h.grace); err != nil {
		t.s.provider.opts.Logger.Error("a copilot with what an aborted turn started did not end", "err", err)
	}
}

// replaced says whether copilot ended the turn for the user's next message: it ends the tools that run then, too.
func (t *turn) replaced() bool { return cli.Replaced(t.ctx) && t.p.ended && t.stopped == nil }
