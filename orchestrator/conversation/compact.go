package conversation

import (
	"context"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

// Compact implements agent.Service: it compacts the agent's context. If the agent cannot compact its context, ductor
// starts a new session of the agent with a summary of the history.
func (e *Engine) Compact(ctx context.Context, hint string, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	p.Text = hint
	return e.enqueue(ctx, e.compaction(orchestrator.Turn{Prompt: p}))
}

// compaction returns a turn for the session of t that compacts the agent's context instead of running a prompt.
func (e *Engine) compaction(t orchestrator.Turn) orchestrator.Turn {
	t.Wants.Task, t.Wants.Title = cli.TaskCompact, e.opts.Lang.Of(t.Prompt.Conversation.Chat).Text("turn.compact-title")
	return t
}

// compactFirst queues two turns: the first compacts the agent's context, and the second repeats the prompt of t. The
// second runs only if the first succeeds.
func (e *Engine) compactFirst(ctx context.Context, t orchestrator.Turn, by orchestrator.Press) (orchestrator.Receipt,
	error) {
	if err := e.opts.Store.Unrepeated(ctx, t.ID); err != nil {
		return orchestrator.Receipt{}, err
	}
	p := orchestrator.Prompt{Conversation: by.Conversation, Person: by.Person, Message: t.Prompt.Message,
		Rights: t.Prompt.Rights}
	shorter := orchestrator.Turn{Prompt: p, Session: t.Session,
		Wants: orchestrator.Wants{Agent: t.Wants.Agent, Model: t.Wants.Model, Effort: t.Wants.Effort}}
	receipt, err := e.enqueue(ctx, e.compaction(shorter))
	if err != nil || receipt.Full {
		return receipt, err
	}
	t.Wants.After = receipt.Turn
	return e.repeat(ctx, t, by)
}

// Context implements agent.Service.
func (e *Engine) Context(ctx context.Context, in orchestrator.ConversationID) (orchestrator.ContextReport, error) {
	who, req, turn, err := e.currentAgent(ctx, in)
	if err != nil {
		return orchestrator.ContextReport{}, err
	}
	r := orchestrator.ContextReport{Agent: who, Model: req.Model}
	if req.Session == "" {
		return r, nil
	}
	if r.Session, err = e.opts.Store.Session(ctx, orchestrator.SessionID(req.Session)); err != nil {
		return r, fmt.Errorf("load session: %w", err)
	}
	if req.Resume == "" {
		return r, nil
	}
	r.Fill = e.runner.Fill(ctx, who, req, turn)
	return r, nil
}

// AgentCommands implements agent.Service.
func (e *Engine) AgentCommands(ctx context.Context, in orchestrator.ConversationID) (cli.Agent, []cli.AgentCommand,
	error) {
	who, req, turn, err := e.currentAgent(ctx, in)
	if err != nil {
		return "", nil, err
	}
	list, err := e.opts.Gateway.Commands(ctx, who, req, turn)
	if err != nil {
		return who, nil, fmt.Errorf("list the commands of an agent: %w", err)
	}
	return who, list, nil
}

// RunCommand implements agent.Service.
func (e *Engine) RunCommand(ctx context.Context, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	return e.enqueue(ctx, orchestrator.Turn{Prompt: p,
		Wants: orchestrator.Wants{Purpose: orchestrator.Purpose{Task: cli.TaskCommand}}})
}

// currentAgent returns the agent of the running turn. If no turn runs, it returns the agent that the next turn would
// use.
func (e *Engine) currentAgent(ctx context.Context, in orchestrator.ConversationID) (cli.Agent, cli.Request,
	cli.TurnID, error) {
	who, req, err := e.nextRequest(ctx, in)
	if err != nil {
		return "", req, "", err
	}
	if now, err := e.ActiveTurn(in, who); err == nil {
		return who, req, now.Turn.ID, nil
	}
	return who, req, "", nil
}
