package conversation

import (
	"context"
	"fmt"
	"sync"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/turn"
)

var _ orchestrator.Outsiders = (*Engine)(nil)

// OpenOutside implements orchestrator.Outsiders.
func (e *Engine) OpenOutside(ctx context.Context, o orchestrator.Outsider) (orchestrator.ActiveTurn, func(), error) {
	if err := e.moveOutsider(ctx, o); err != nil {
		return orchestrator.ActiveTurn{}, nil, err
	}
	req, err := e.SideRequest(ctx, o.Conversation())
	if err != nil {
		return orchestrator.ActiveTurn{}, nil, fmt.Errorf("find where an MCP client works: %w", err)
	}
	req.Turn = cli.TurnID(orchestrator.OutsideTurn + o.Name + ":" + e.opts.NewID())
	req.Permission, req.Attended = cli.Ask, true
	t := orchestrator.Turn{
		ID: req.Turn, Session: orchestrator.SessionID(req.Session), Agent: o.Agent(), Sandbox: req.Sandbox,
		Prompt: orchestrator.Prompt{Conversation: o.Conversation(), Person: o.Owner,
			Rights: orchestrator.Rights{Of: orchestrator.RightsOfOutside}},
	}
	var reading sync.WaitGroup
	redactor := turn.NewRedactor(reading.Go, func() *secrets.Set { return e.secretsOf(req) })
	// The requests need a context that outlives ctx: they are withdrawn after ctx is done.
	requests := e.approvals.Open(context.WithoutCancel(ctx), approval.RunningTurn{Turn: t, Dir: req.Dir, Mode: cli.Ask,
		Known: redactor.Known, Learn: redactor.Learn, Show: func(cli.Event) {}})
	workers := &turn.Helpers{}
	end := func() {
		workers.End()
		requests.Drain()
		requests.Close()
		reading.Wait()
	}
	hide := func(text string) string { return redactor.Known().String(text) }
	return orchestrator.ActiveTurn{Turn: t, Request: req, Life: ctx, Hide: hide, Help: workers.Join}, end, nil
}

func (e *Engine) moveOutsider(ctx context.Context, o orchestrator.Outsider) error {
	conv, err := e.load(ctx, o.Conversation())
	if err != nil {
		return err
	}
	// Resolve the links in o.Dir only once, because agents may create other links later. The result stays in conv.Dir.
	if o.Dir == "" || conv.Dir != "" {
		return nil
	}
	dir, err := e.opts.Places.Resolve("", o.Dir)
	if err != nil {
		return fmt.Errorf("work in %s: %w", o.Dir, err)
	}
	return e.change(ctx, conv.ID, func(c *orchestrator.Conversation) { c.Dir, c.Session = dir, "" },
		orchestrator.AuditEntry{What: orchestrator.AuditDirectory, Agent: o.Agent(), Title: dir})
}
