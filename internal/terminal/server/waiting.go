package server

import (
	"context"
	"sync"

	"ductor/cli"
)

// waiting is what the sessions of terminals wait for the owner with. The zero value is ready.
type waiting struct {
	mu   sync.Mutex
	next int
	all  map[int]waits
}

type waits struct {
	session cli.AgentSessionID
	stop    context.CancelFunc
}

// begin gives a context that ends when its session goes on without the owner. done ends it too.
func (w *waiting) begin(ctx context.Context, session cli.AgentSessionID) (_ context.Context, done func()) {
	ctx, stop := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[int]waits{}
	}
	id := w.next
	w.next++
	w.all[id] = waits{session, stop}
	return ctx, func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
	}
}

// over says that a session waits for nothing any more: its user answered at the terminal, and the CLI tells its hook nothing of that.
func (w *waiting) over(session cli.AgentSessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.session == session {
			one.stop()
		}
	}
}
