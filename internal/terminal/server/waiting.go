package server

import (
	"context"
	"sync"

	"ductor/cli"
)

// waiters contains the hooks that wait for an answer of the owner, with their sessions. The zero value is ready to use.
type waiters struct {
	mu   sync.Mutex
	next int
	all  map[int]waiter
}

type waiter struct {
	session cli.AgentSessionID
	stop    context.CancelFunc
}

// addWaiter returns a context that ends when release is called for the session. When the caller stops waiting, it must
// call done, which also ends the context.
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

// release ends the contexts of the hooks that wait in a session. The server calls release when the session's turn has
// ended. By then, the user has answered in the terminal. The CLI does not report such an answer to the waiting hook.
func (w *waiters) release(session cli.AgentSessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.session == session {
			one.stop()
		}
	}
}
