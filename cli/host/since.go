package host

import (
	"context"
	"time"
)

// sinceWait is how long an environment may take to say since when it has kept runs.
const sinceWait = 15 * time.Second

// Knows says whether no run started after that can have been forgotten. An environment that cannot be reached knows
// nothing.
func (h *Launcher) Knows(after time.Time) bool {
	h.sinceMu.Lock()
	defer h.sinceMu.Unlock()
	if h.since.IsZero() {
		ctx, cancel := context.WithTimeout(context.Background(), sinceWait)
		defer cancel()
		at, err := h.root.Since(ctx)
		if err != nil {
			h.log.Warn("ask since when runs are kept", "err", err)
			return false
		}
		h.since = at
	}
	return after.After(h.since)
}
