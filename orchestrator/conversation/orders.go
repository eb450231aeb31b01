package conversation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ductor/orchestrator"
)

// SubmitOrder puts a turn at the end of its conversation's queue, and never does anything to a turn that runs. It is
// durable when it returns. An order whose turn is there already, in whatever state, changes nothing and is no error.
// ErrQueueFull, and nothing stored, for a full queue; ErrOutsideRoot and ErrNotADir for a directory that cannot be,
// ErrBadChoice for no word of Wants.Sandbox. Whether there is a sandbox shows when the turn runs.
func (e *Engine) SubmitOrder(ctx context.Context, order orchestrator.Order) error {
	if e.opts.Orders == nil {
		return orchestrator.ErrNoOrders
	}
	_, err := e.opts.Store.Turn(ctx, order.Turn)
	if err == nil || !errors.Is(err, orchestrator.ErrNoTurn) {
		return err
	}
	w := order.Wants
	if !slices.Contains([]string{"", orchestrator.SandboxDocker, orchestrator.SandboxOff}, w.Sandbox) {
		return fmt.Errorf("sandbox %q: %w", w.Sandbox, orchestrator.ErrBadChoice)
	}
	if w.Dir != "" {
		if w.Own == "" || !filepath.IsAbs(w.Dir) {
			return fmt.Errorf("%s: %w", w.Dir, orchestrator.ErrNotADir)
		}
		if w.Dir, err = e.resolveDir("", w.Dir); err != nil {
			return err
		}
	}
	receipt, err := e.enqueue(ctx, orchestrator.Turn{ID: order.Turn, Prompt: order.Prompt, Wants: w})
	if err == nil && receipt.Full {
		err = orchestrator.ErrQueueFull
	}
	return err
}

// wanting is what a conversation chose, with what a turn wants otherwise.
func wanting(c orchestrator.Conversation, w orchestrator.Wants) orchestrator.Conversation {
	if w.Agent != "" {
		c.Agent, c.Model, c.Effort = w.Agent, w.Model, w.Effort
	}
	if w.Dir != "" {
		c.Dir = w.Dir
	}
	return c
}

// apart says whether a turn is none of what people talk about in its conversation, or has rights of its own: what they
// write before is not for its agent.
func apart(t orchestrator.Turn) bool {
	return t.Wants.Own != "" || isQuiet(t) || !t.Prompt.Rights.OfChat()
}

// ownSession gives the session of a name, or begins it anew: the reset rules hold for it too, and a session has
// one directory.
func (e *Engine) ownSession(ctx context.Context, conv orchestrator.Conversation, t orchestrator.Turn) (orchestrator.Session, error) {
	id, err := e.opts.Orders.OwnSession(ctx, conv.ID, t.Wants.Own)
	if err != nil {
		return orchestrator.Session{}, fmt.Errorf("find session: %w", err)
	}
	if id != "" {
		s, err := e.opts.Store.Session(ctx, id)
		if err == nil && !e.expired(s) && s.Dir == e.dirOf(conv) {
			return s, nil
		}
		if err != nil && !errors.Is(err, orchestrator.ErrNoSession) {
			return orchestrator.Session{}, fmt.Errorf("load session: %w", err)
		}
	}
	s := e.newSession(conv, t)
	if err := e.opts.Orders.CreateOwnSession(ctx, t.Wants.Own, s); err != nil {
		return orchestrator.Session{}, fmt.Errorf("create session: %w", err)
	}
	return s, nil
}
