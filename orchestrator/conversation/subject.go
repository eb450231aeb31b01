package conversation

import (
	"context"
	"errors"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

// Subject implements bot.Desk.
func (e *Engine) Subject(ctx context.Context, in orchestrator.ConversationID, id cli.TurnID) (s orchestrator.Subject,
	err error) {
	t, err := e.opts.Store.Turn(ctx, id)
	if errors.Is(err, orchestrator.ErrNoTurn) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("load the turn of a replied message: %w", err)
	}
	s = orchestrator.Subject{Said: true, Text: t.Outcome.Text, Job: t.Wants.Job, Title: t.Wants.Title}
	conv, err := e.opts.Store.Conversation(ctx, in)
	if err != nil || conv.Session == "" || t.Session != conv.Session {
		return s, err
	}
	session, err := e.opts.Store.Session(ctx, conv.Session)
	if err != nil || e.expired(session) {
		return s, err
	}
	var waiting int
	var r *running
	if err := e.do(in, func(c *conversation) error {
		waiting, r = len(c.queue), c.active.first()
		return nil
	}); err != nil {
		return s, err
	}
	s.Here = true
	if waiting > 0 || r != nil && r.turn.Session == t.Session {
		s.Newest = waiting == 0 && r.turn.ID == t.ID
		return s, nil
	}
	newest, err := e.opts.Store.History(ctx, session.ID, 1)
	s.Newest = err == nil && len(newest) == 1 && newest[0].ID == t.ID
	return s, err
}
