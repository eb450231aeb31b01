package conversation

import (
	"cmp"
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// runLater creates a job that runs the prompt of a turn again when the agent's usage limit ends. If the limit has ended
// already, runLater runs the prompt now.
func (e *Engine) runLater(ctx context.Context, t orchestrator.Turn,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	at := t.Outcome.Recovery.At
	switch {
	case at.IsZero() || e.opts.Jobs == nil:
		return receipt, orchestrator.ErrBadChoice
	case !at.After(e.now()):
		return e.repeat(ctx, t, by)
	}
	c, err := e.conversation(by.Conversation)
	if err == nil {
		receipt.At, err = c.scheduleLaterFor(ctx, t, at, by)
	}
	return receipt, err
}

// postpone stops a running turn, and creates a job that runs the prompt of the turn when the earliest usage limit of
// its agent ends.
func (e *Engine) postpone(ctx context.Context, id cli.TurnID,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	c, r, err := e.replaceable(id, by)
	switch {
	case err != nil:
		return receipt, err
	case e.opts.Jobs == nil:
		return receipt, orchestrator.ErrStillOpen
	}
	all, err := e.opts.Store.PlanLimits(ctx)
	at := cli.LimitsOf(all, r.turn.Agent, r.turn.Entry.Account).Reset(e.now())
	if err != nil || at.IsZero() {
		return receipt, cmp.Or(err, orchestrator.ErrBadChoice)
	}
	receipt.Turn = id
	receipt.At, err = c.scheduleLaterFor(ctx, r.turn, at, by)
	created := err == nil
	if errors.Is(err, orchestrator.ErrRepeated) {
		// The job exists if an earlier press of the button created it, or if ductor crashed after this press had
		// created it. In both cases the turn must still be stopped. If no job exists, another turn already repeats the
		// prompt.
		_, err = e.opts.Jobs.Job(ctx, orchestrator.LaterJob(id), by.Conversation)
		if errors.Is(err, orchestrator.ErrNoJob) {
			err = orchestrator.ErrRepeated
		}
	}
	if err != nil {
		return receipt, err
	}
	stopped, err := e.stopTurn(ctx, id, by, &runsAgain{by, receipt.At})
	// If the turn was not stopped, delete the new job, because the prompt would run twice. If the turn was stopped,
	// keep the job even after an error, such as a full disk, because only the job still has the prompt.
	if !stopped && created {
		err = errors.Join(err, e.later().Cancel(context.WithoutCancel(ctx), id, by))
	}
	return receipt, err
}

// scheduleLaterFor calls scheduleLater for a user who pressed a button. The call also works after the engine was
// closed. The job gets the rights of the chat if the turn and the user both have them. The permission mode of such a
// job is at most the current mode of the chat, and at most ask if the chat is in the mode bypass.
func (c *conversation) scheduleLaterFor(ctx context.Context, t orchestrator.Turn, at time.Time,
	by orchestrator.Press) (scheduled time.Time, err error) {
	c.do(func(c *conversation) {
		var most cli.PermissionMode
		if t.Prompt.Rights.OfChat() && by.May(orchestrator.ActAsChat) {
			var conv orchestrator.Conversation
			if conv, err = c.e.load(ctx, c.id()); err != nil {
				return
			}
			if most = c.e.modeFor(conv, t.Prompt.Rights, t.Sandbox); most == cli.Bypass {
				most = cli.Ask
			}
		}
		scheduled, err = c.scheduleLater(ctx, t, at, most)
	})
	return scheduled, err
}

// scheduleLater creates a job that runs the prompt of a turn at the given time; see later.Prompts. It must run in the
// inbox.
func (c *conversation) scheduleLater(ctx context.Context, t orchestrator.Turn, at time.Time,
	maxMode cli.PermissionMode) (time.Time, error) {
	t.Prompt.Conversation = c.id()
	effort, err := c.e.effortOf(ctx, t)
	if err != nil {
		return at, err
	}
	return c.e.later().Schedule(ctx, t, at, effort, maxMode)
}

// effortOf returns the effort that the conversation would use now for the agent and the model of a turn. If the
// conversation would use another agent or model, effortOf returns "".
func (e *Engine) effortOf(ctx context.Context, t orchestrator.Turn) (cli.Effort, error) {
	conv, err := e.load(ctx, t.Prompt.Conversation)
	if err != nil {
		return "", err
	}
	who, err := e.chooseAgent(cli.AtOnce(ctx), t.Wants.Override(conv), t.Sandbox)
	if err != nil || who.Agent != t.Agent || who.Model != t.Model {
		return "", nil //nolint:nilerr // without an agent, nothing is chosen
	}
	return who.Effort, nil
}

// RunLater implements turn.Conversation.
func (c *conversation) RunLater(ctx context.Context, t orchestrator.Turn, at time.Time) (err error) {
	c.do(func(c *conversation) { _, err = c.scheduleLater(ctx, t, at, "") })
	return err
}

// cancelRetries prevents further attempts of a turn. It deletes the job that would run the prompt later; see
// later.Prompts. If the turn has not ended, cancelRetries also cancels its retries. If the card of an ended turn offers
// ActionDrop, Receipt.Turn is empty, and the caller must remove the card's buttons.
func (e *Engine) cancelRetries(ctx context.Context, id cli.TurnID, by orchestrator.Press) (orchestrator.Receipt,
	error) {
	t, err := e.endedTurn(ctx, id, by)
	receipt := orchestrator.Receipt{Turn: id}
	switch {
	case errors.Is(err, orchestrator.ErrStillOpen):
		c, err := e.conversation(by.Conversation)
		if err != nil {
			return receipt, err
		}
		if r := c.active.turn(id); r != nil {
			r.noRetries()
		}
	case err != nil:
		return receipt, err
	case t.Outcome.Recovery.Offers(orchestrator.ActionDrop):
		receipt.Turn = ""
	}
	return receipt, e.later().Cancel(ctx, id, by)
}
