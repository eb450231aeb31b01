package turn

import (
	"context"
	"sync"

	"ductor/orchestrator"
)

// Helpers counts the other agents that work for a running turn. The turn waits for them before it ends. The zero value
// is ready to use.
type Helpers struct {
	mu   sync.Mutex
	over bool
	ends map[*context.CancelCauseFunc]bool
	wg   sync.WaitGroup
}

// Join implements ActiveTurn.Help: it registers another agent.
func (h *Helpers) Join(ctx context.Context) (_ context.Context, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return ctx, nil, orchestrator.ErrNoTurn
	}
	ctx, end := context.WithCancelCause(ctx)
	if h.ends == nil {
		h.ends = map[*context.CancelCauseFunc]bool{}
	}
	h.ends[&end] = true
	h.wg.Add(1)
	return ctx, func() {
		end(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.ends, &end)
		h.wg.Done()
	}, nil
}

// End stops the other agents and waits until their processes have ended.
func (h *Helpers) End() {
	h.mu.Lock()
	h.over = true
	for end := range h.ends {
		(*end)(orchestrator.ErrNoTurn)
	}
	h.mu.Unlock()
	h.wg.Wait()
}
