package conversation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ductor/cli"
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

// again is what a person wants who has a turn run once more: to see what comes.
func again(w orchestrator.Wants) orchestrator.Wants {
	w.Silence, w.Known, w.Then = "", "", ""
	return w
}

// RunAgain queues the prompt of an ended turn once more, in the same session. A turn is run again once:
// a second press gives ErrRepeated.
func (e *Engine) RunAgain(ctx context.Context, id cli.TurnID, by orchestrator.Press) (orchestrator.Receipt, error) {
	t, err := e.ended(ctx, id, by)
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	return e.repeat(ctx, t, t.Session, by)
}

// RunFresh is RunAgain in a new session of the agent, which is told the history.
func (e *Engine) RunFresh(ctx context.Context, id cli.TurnID, by orchestrator.Press) (orchestrator.Receipt, error) {
	t, err := e.ended(ctx, id, by)
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	if t.Session == "" || t.Agent == "" {
		return e.repeat(ctx, t, t.Session, by)
	}
	e.opts.Gateway.Release(by.Conversation.Key())
	// With the turn: a second press must not take away what the turn of the first has begun.
	return e.repeat(ctx, t, t.Session, by, t.AgentEnv())
}

// ShowAgain sends the outcome of an ended turn once more, as new messages.
func (e *Engine) ShowAgain(ctx context.Context, id cli.TurnID, by orchestrator.Press) error {
	t, err := e.ended(ctx, id, by)
	if err != nil {
		return err
	}
	t.Bypass = time.Time{} // its card is no longer of a turn that runs
	return e.opts.Chat.ShowAgain(ctx, t)
}

// ended loads a turn that a button names, and checks that the button's conversation may touch it.
func (e *Engine) ended(ctx context.Context, id cli.TurnID, by orchestrator.Press) (orchestrator.Turn, error) {
	t, err := e.opts.Store.Turn(ctx, id)
	if err != nil {
		return orchestrator.Turn{}, err
	}
	if t.Prompt.Conversation != by.Conversation {
		return orchestrator.Turn{}, orchestrator.ErrElsewhere
	}
	if t.State == orchestrator.TurnQueued || t.State == orchestrator.TurnRunning {
		return orchestrator.Turn{}, orchestrator.ErrStillOpen
	}
	return t, nil
}

func (e *Engine) repeat(ctx context.Context, t orchestrator.Turn, session orchestrator.SessionID, by orchestrator.Press, forget ...orchestrator.AgentEnv) (orchestrator.Receipt, error) {
	p := t.Prompt
	p.Person, p.Updates = by.Person, by.Updates
	return e.enqueue(ctx, orchestrator.Turn{Again: t.ID, Session: session, Prompt: p, Wants: again(t.Wants)}, forget...)
}
