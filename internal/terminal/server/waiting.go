package server

import (
	"context"
	"sync"

	"ductor/cli"
)

// waiters contains the sessions in terminals that wait for an answer of the owner. The zero value is ready to use.
type waiters struct {
	mu   sync.Mutex
	next int
	all  map[int]waiter
}

type waiter struct {
	session cli.AgentSessionID
	stop    context.CancelFunc
}

// addWaiter returns a context that ends when release is called for the session. The caller must call done when it stops
// waiting, which also ends the context.
func (w *waiters) addWaiter(ctx context.Context, session cli.AgentSessionID) (_ context.Context, done func()) {
	ctx, stop := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[int]waiter{}
	}
	id := w.next
	w.next++
	w.all[id] = waiter{session, stop}
	return ctx, func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
	}
}

// release ends the contexts of a session, because its user has answered in the terminal. The server infers that from a
// later event, since the CLI does not inform the waiting hook.
func (w *waiters) release(session cli.AgentSessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.session == session {
			one.stop()
		}
	}
}
