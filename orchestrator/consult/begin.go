package consult

import (
	"context"

	"ductor/orchestrator"
)

// Begin implements orchestrator.Consults.
func (e *Engine) Begin(ctx context.Context, in orchestrator.ConversationID) (_ context.Context, end func()) {
	ctx, _, end = e.begin(ctx, in)
	return ctx, end
}

func (e *Engine) begin(ctx context.Context, in orchestrator.ConversationID) (_ context.Context, one *question,
	end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	one = &question{conversation: in, lanes: map[lane]bool{}, cancel: cancel}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asking[one] = true
	return context.WithValue(ctx, questionKey{}, one), one, func() {
		cancel(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.asking, one)
	}
}

// enter counts an agent as running until the caller calls leave. If ctx does not come from Begin, enter first registers
// the question, as Begin does.
//
// The agent must start a new session if another question is using its session, or if its session belongs to another
// directory. In both cases, enter sets r.by.fresh.
func (e *Engine) enter(ctx context.Context, r *asking) (_ context.Context, leave func(), err error) {
	end := func() {}
	one, begun := ctx.Value(questionKey{}).(*question)
	if !begun {
		ctx, one, end = e.begin(ctx, r.Conversation)
	}
	of := lane{r.session.ID, r.entry.AgentEnv()}
	err = context.Cause(ctx)
	if err == nil {
		err = e.register(one, r, of)
	}
	if err != nil {
		end()
		return ctx, nil, err
	}
	return ctx, func() {
		e.mu.Lock()
		one.running--
		if !r.by.fresh {
			delete(one.lanes, of)
		}
		e.mu.Unlock()
		end()
		e.wg.Done()
	}, nil
}

// register counts an agent as running. If the conversation already has mostAtOnce running agents, it returns
// ErrTooManyConsults.
func (e *Engine) register(one *question, r *asking, of lane) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return orchestrator.ErrShutdown
	}
	busy := 0
	r.by.fresh = r.by.fresh || r.session.Dir != r.at.Dir
	for other := range e.asking {
		if other.conversation != one.conversation {
			continue
		}
		r.by.fresh = r.by.fresh || other.lanes[of]
		busy += other.running
	}
	if busy >= mostAtOnce {
		return orchestrator.ErrTooManyConsults
	}
	one.running++
	if !r.by.fresh {
		one.lanes[of] = true
	}
	e.wg.Add(1)
	return nil
}
