package conversation

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// Choose implements bot.Desk.
func (e *Engine) Choose(ctx context.Context, id cli.TurnID, what orchestrator.Action,
	by orchestrator.Press) (orchestrator.Receipt, error) {
	if what == orchestrator.ActionDrop {
		return e.cancelRetries(ctx, id, by)
	}
	t, err := e.endedTurn(ctx, id, by)
	account, other := what.Account()
	switch {
	case errors.Is(err, orchestrator.ErrStillOpen) && what == orchestrator.ActionLater:
		return e.postpone(ctx, id, by)
	case errors.Is(err, orchestrator.ErrStillOpen) && other:
		return e.switchAccount(ctx, id, account, by)
	}
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	if !t.Outcome.Recovery.Offers(what) && what != orchestrator.ActionAgain && what != orchestrator.ActionFresh {
		return orchestrator.Receipt{}, orchestrator.ErrBadChoice
	}
	t.Wants = t.Wants.Shown()
	if other {
		return e.continueAs(ctx, t, account, by)
	}
	if _, ok := what.Mode(); ok {
		return e.repeatAfter(ctx, t, what, by)
	}
	switch what {
	case orchestrator.ActionAgain:
		return e.repeat(ctx, t, by)
	case orchestrator.ActionFresh, orchestrator.ActionSummary:
		if t.Session == "" || t.Agent == "" {
			return e.repeat(ctx, t, by)
		}
		e.opts.Gateway.Release(by.Conversation.Key())
		t.Wants.Summarize = what == orchestrator.ActionSummary
		if t.Outcome.Recovery.Kind == cli.Refused {
			t.Prompt = handoff.WithoutPictures(t.Prompt)
		}
		// One transaction must reset the agent's session and store the turn. Otherwise a second press of the button
		// could delete the session that the turn of the first press has already started.
		return e.repeat(ctx, t, by, t.AgentEnv())
	case orchestrator.ActionLift:
		return e.liftBudgets(ctx, t, by)
	case orchestrator.ActionCompact:
		return e.compactFirst(ctx, t, by)
	case orchestrator.ActionHandOff:
		return e.continueWith(ctx, t, by)
	case orchestrator.ActionLater:
		return e.runLater(ctx, t, by)
	}
	return orchestrator.Receipt{}, orchestrator.ErrBadChoice
}

// repeat queues the prompt of an ended turn once more, in the same session.
func (e *Engine) repeat(ctx context.Context, t orchestrator.Turn, by orchestrator.Press,
	forget ...orchestrator.AgentEnv) (orchestrator.Receipt, error) {
	return e.enqueue(ctx, t.Repeated(by), forget...)
}

// repeatAfter changes the conversation as the action demands, and then queues the prompt of an ended turn once more. If
// it returns an error or if the queue is full, it has not changed the conversation.
func (e *Engine) repeatAfter(ctx context.Context, t orchestrator.Turn, what orchestrator.Action,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	var in *conversation
	again := t.Repeated(by)
	// While this function runs in the inbox, the new turn cannot start. So the change happens before the turn starts.
	err = e.do(by.Conversation, func(c *conversation) error {
		if err := e.opts.Store.Unrepeated(ctx, t.ID); err != nil {
			return err
		}
		if in, receipt.Full = c, c.full(); receipt.Full {
			return nil
		}
		var before orchestrator.Conversation
		if err := e.save(ctx, by.Conversation, func(c *orchestrator.Conversation) {
			before = *c
			what.Apply(c, t)
		}, what.Audit(by.Person)...); err != nil {
			return err
		}
		// First save the change, then append the turn. append marks the press as handled. So if ductor crashed after
		// append, it would not repeat the press, and an unsaved change would be lost.
		if receipt, err = c.append(ctx, &again); err != nil {
			err = errors.Join(err, e.opts.Store.SaveConversation(ctx, before))
		}
		return err
	})
	if err == nil {
		in.showQueued(again, receipt.Ahead)
	}
	return receipt, err
}

// continueWith runs the prompt of a turn with another agent, which also becomes the agent of the conversation. But the
// conversation keeps its agent if Wants.Agent selected the agent of the turn, or if the turn does not have the rights
// of the chat.
func (e *Engine) continueWith(ctx context.Context, t orchestrator.Turn, by orchestrator.Press) (orchestrator.Receipt,
	error) {
	other := t.Outcome.Recovery.Other
	if other == "" {
		return orchestrator.Receipt{}, orchestrator.ErrBadChoice
	}
	own := t.Wants.Agent != ""
	t.Wants.Agent, t.Wants.Model, t.Wants.Effort = other, "", ""
	receipt, err := e.repeat(ctx, t, by)
	if err != nil || receipt.Full || own || !t.Prompt.Rights.OfChat() {
		return receipt, err
	}
	return receipt, e.SetModel(ctx, by.Conversation, other, "", "")
}

// replaceable returns a running turn and its conversation if a user may stop the turn and run its prompt again, at once
// or later. It returns ErrStillOpen if the agent does not have the prompt yet, or if the turn belongs to a job.
func (e *Engine) replaceable(id cli.TurnID, by orchestrator.Press) (*conversation, *running, error) {
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return nil, nil, err
	}
	r := c.active.turn(id)
	switch {
	case r == nil || r.req == nil || orchestrator.IsJobTurn(id):
		return nil, nil, orchestrator.ErrStillOpen
	case !by.MayEnd(r.turn) || by.Precedes(r.turn):
		return nil, nil, orchestrator.ErrNotAllowed
	}
	return c, r, nil
}

// ShowAgain implements bot.Desk.
func (e *Engine) ShowAgain(ctx context.Context, id cli.TurnID, by orchestrator.Press) error {
	t, err := e.endedTurn(ctx, id, by)
	if err != nil {
		return err
	}
	t.Bypass = time.Time{} // the bypass has ended together with the turn
	return e.opts.Chat.ShowAgain(ctx, t)
}

// endedTurn loads a turn after a user has pressed a button on its card. It returns an error if the turn has not ended,
// or if it belongs to another conversation.
func (e *Engine) endedTurn(ctx context.Context, id cli.TurnID, by orchestrator.Press) (orchestrator.Turn, error) {
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
