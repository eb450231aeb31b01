package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// RunAgain queues the prompt of an ended turn once more, in the same session. A turn is run again once:
// a second press gives ErrRepeated.
func (o *Orchestrator) RunAgain(ctx context.Context, id cli.TurnID, by Press) (Receipt, error) {
	t, err := o.ended(ctx, id, by)
	if err != nil {
		return Receipt{}, err
	}
	return o.repeat(ctx, t, t.Session, by)
}

// RunFresh is RunAgain in a new session of the agent, which is told the history.
func (o *Orchestrator) RunFresh(ctx context.Context, id cli.TurnID, by Press) (Receipt, error) {
	t, err := o.ended(ctx, id, by)
	if err != nil {
		return Receipt{}, err
	}
	if t.Session == "" || t.Agent == "" {
		return o.repeat(ctx, t, t.Session, by)
	}
	o.opts.Gateway.Release(by.Conversation.Key())
	// With the turn: a second press must not take away what the turn of the first has begun.
	return o.repeat(ctx, t, t.Session, by, t.agentEnv())
}

// ShowAgain sends the outcome of an ended turn once more, as new messages.
func (o *Orchestrator) ShowAgain(ctx context.Context, id cli.TurnID, by Press) error {
	t, err := o.ended(ctx, id, by)
	if err != nil {
		return err
	}
	t.Bypass = time.Time{} // its card is no longer of a turn that runs
	return o.opts.Chat.ShowAgain(ctx, t)
}

// ended loads a turn that a button names, and checks that the button's conversation may touch it.
func (o *Orchestrator) ended(ctx context.Context, id cli.TurnID, by Press) (Turn, error) {
	t, err := o.opts.Store.Turn(ctx, id)
	if err != nil {
		return Turn{}, err
	}
	if t.Prompt.Conversation != by.Conversation {
		return Turn{}, ErrElsewhere
	}
	if t.State == TurnQueued || t.State == TurnRunning {
		return Turn{}, ErrStillOpen
	}
	return t, nil
}

func (o *Orchestrator) repeat(ctx context.Context, t Turn, session SessionID, by Press, forget ...AgentEnv) (Receipt, error) {
	p := t.Prompt
	p.Person, p.Updates = by.Person, by.Updates
	return o.enqueue(ctx, Turn{Again: t.ID, Session: session, Prompt: p, Wants: t.Wants.again()}, forget...)
}
