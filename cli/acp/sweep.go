package acp

import "context"

// The protocol has no environment for a session, by which what its tools started could be told from what those of
// others did. So a process in which a turn was aborted that ran tools is ended: at once when no turn runs in it, else
// with the last of them. Its sessions are gone on with by their ids, in another process.

func (h *host) turnBegins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turns++
}

// turnOver counts a turn out that emitted its Result; aborted says that what it started may still run. It returns
// when that is dead, unless other turns run.
func (h *host) turnOver(ctx context.Context, aborted bool) {
	h.mu.Lock()
	h.turns--
	h.doomed = h.doomed || aborted
	doomed, end := h.doomed, h.doomed && h.turns == 0 && !h.detached
	h.mu.Unlock()
	if doomed {
		h.taint()
	}
	if !end {
		return
	}
	o := h.provider.opts
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Grace+stopSlack)
	defer cancel()
	if err := h.process.Stop(ctx, o.Grace); err != nil {
		o.Logger.Error("an agent with what an aborted turn started did not end", "agent", string(o.Agent), "err", err)
	}
}
