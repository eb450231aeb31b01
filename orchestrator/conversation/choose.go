package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/turn"
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
	t.Wants = withoutJobWants(t.Wants)
	if other {
		return e.continueAs(ctx, t, account, by)
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
	return e.enqueue(ctx, repetition(t, by), forget...)
}

// repetition returns a new turn with the prompt, the session and the settings of t.
func repetition(t orchestrator.Turn, by orchestrator.Press) orchestrator.Turn {
	p := t.Prompt
	p.Person, p.Updates = by.Person, by.Updates
	return orchestrator.Turn{Again: t.ID, Session: t.Session, Prompt: p, Wants: t.Wants}
}

// unrepeated returns ErrRepeated if another turn already repeats this turn, or if a job will do so later. The caller
// must be in the inbox. Otherwise another press could repeat the turn right after the check.
func (e *Engine) unrepeated(ctx context.Context, id cli.TurnID, in orchestrator.ConversationID) error {
	if _, err := e.waitingJob(ctx, id, in); !errors.Is(err, orchestrator.ErrNoJob) {
		return cmp.Or(err, orchestrator.ErrRepeated)
	}
	return e.opts.Store.Unrepeated(ctx, id)
}

// continueWith runs the prompt of a turn with another agent. It also makes that agent the agent of the conversation,
// unless the turn's order named an agent.
func (e *Engine) continueWith(ctx context.Context, t orchestrator.Turn,
	by orchestrator.Press) (orchestrator.Receipt, error) {
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

// laterJob returns the ID of the job that runs the prompt of a turn again later.
func laterJob(id cli.TurnID) orchestrator.JobID {
	return orchestrator.JobID(turn.LaterJob + string(id))
}

// waitingJob returns the job that will run the prompt of a turn again later, or ErrNoJob.
func (e *Engine) waitingJob(ctx context.Context, id cli.TurnID,
	in orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	if e.opts.Jobs == nil {
		return orchestrator.JobStatus{}, orchestrator.ErrNoJob
	}
	return e.opts.Jobs.Job(ctx, laterJob(id), in)
}

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
	receipt.At, err = e.scheduleLaterFor(ctx, t, at, by)
	return receipt, err
}

// replaceable returns a running turn if a user may stop it and run its prompt again, at once or later. It returns
// ErrStillOpen if the agent does not have the prompt yet, or if the turn belongs to a job.
func (e *Engine) replaceable(id cli.TurnID, by orchestrator.Press) (*running, error) {
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return nil, err
	}
	r := c.running.Load()
	switch {
	case !r.is(id) || r.req == nil || orchestrator.IsJobTurn(id):
		return nil, orchestrator.ErrStillOpen
	case !by.MayEnd(r.turn) || by.Precedes(r.turn):
		return nil, orchestrator.ErrNotAllowed
	}
	return r, nil
}

// postpone stops a running turn. It creates a job that runs the prompt of the turn when the earliest usage limit of its
// agent ends.
func (e *Engine) postpone(ctx context.Context, id cli.TurnID,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	r, err := e.replaceable(id, by)
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
	receipt.At, err = e.scheduleLaterFor(ctx, r.turn, at, by)
	created := err == nil
	if errors.Is(err, orchestrator.ErrRepeated) {
		// If the job exists already, the turn must still be stopped: the user pressed the button before, or ductor
		// crashed while it handled this press. If no job exists, another turn already repeats the prompt.
		if _, err = e.waitingJob(ctx, id, by.Conversation); errors.Is(err, orchestrator.ErrNoJob) {
			err = orchestrator.ErrRepeated
		}
	}
	if err != nil {
		return receipt, err
	}
	// An error here means that the turn has just ended without an abort.
	if err = e.StopTurn(ctx, id, by); err != nil && created {
		err = errors.Join(err, e.opts.Jobs.DeleteJob(ctx, laterJob(id), by))
	}
	return receipt, err
}

// scheduleLaterFor calls scheduleLater in the inbox for a user who pressed a button. The job gets the rights of the chat only if
// both the turn and the user have them. The permission mode of the job is then limited to the mode that the chat has
// now. It is never bypass.
func (e *Engine) scheduleLaterFor(ctx context.Context, t orchestrator.Turn, at time.Time,
	by orchestrator.Press) (scheduled time.Time, err error) {
	err = e.do(by.Conversation, func(*conversation) error {
		var most cli.PermissionMode
		if t.Prompt.Rights.OfChat() && by.May(orchestrator.ActAsChat) {
			conv, err := e.load(ctx, by.Conversation)
			if err != nil {
				return err
			}
			if most = e.modeFor(conv, t.Prompt.Rights, t.Sandbox); most == cli.Bypass {
				most = cli.Ask
			}
		}
		scheduled, err = e.scheduleLater(ctx, t, at, most)
		return err
	})
	return scheduled, err
}

// scheduleLater creates a job that runs the prompt of a turn at a time. It returns ErrRepeated if another turn or job
// already repeats the prompt. The parameter most limits the permission mode of the job. If it is empty, the job does
// not get the rights of the chat.
func (e *Engine) scheduleLater(ctx context.Context, t orchestrator.Turn, at time.Time,
	most cli.PermissionMode) (time.Time, error) {
	in := t.Prompt.Conversation
	if err := e.unrepeated(ctx, t.ID, in); err != nil {
		return at, err
	}
	if err := e.deleteFinishedLater(ctx, in, t.Prompt.Person); err != nil {
		return at, err
	}
	prompt := t.Prompt.Text
	for _, a := range t.Prompt.Attachments {
		prompt += handoff.Attached(a)
	}
	at = at.Truncate(time.Second).Add(time.Second)
	j := orchestrator.Job{
		ID: laterJob(t.ID), Conversation: in, Person: t.Prompt.Person, Prompt: prompt,
		JobTiming: orchestrator.JobTiming{
			Schedule: "at " + at.UTC().Format(time.DateTime), QuietHours: orchestrator.QuietHours{Zone: "UTC"},
		},
		JobTurn: orchestrator.JobTurn{
			Session: orchestrator.SharedSession, Agent: t.Agent, Model: t.Model, Timeout: t.Wants.Timeout,
		},
	}
	if most != "" {
		j.Rights = orchestrator.Rights{Of: orchestrator.RightsOfPress, Mode: most}
	}
	if _, err := e.opts.Jobs.AddJob(ctx, j); err != nil {
		return at, fmt.Errorf("add a job: %w", err)
	}
	return at, nil
}

// RunLater implements turn.Conversation.
func (c *conversation) RunLater(ctx context.Context, t orchestrator.Turn, at time.Time) (err error) {
	c.do(func() { _, err = c.e.scheduleLater(ctx, t, at, "") })
	return err
}

// deleteFinishedLater deletes the jobs that scheduleLater created earlier and that have run.
func (e *Engine) deleteFinishedLater(ctx context.Context, in orchestrator.ConversationID,
	person orchestrator.PersonID) error {
	all, err := e.opts.Jobs.Jobs(ctx, in)
	if err != nil {
		return err
	}
	for _, st := range all {
		if strings.HasPrefix(string(st.Job.ID), turn.LaterJob) && st.Next.IsZero() && st.Open == 0 {
			if err := e.opts.Jobs.DeleteJob(ctx, st.Job.ID,
				orchestrator.Press{Conversation: in, Person: person}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cancelRetries makes ductor stop trying a turn again. It cancels the retries of a running turn, and the job that would
// run the turn later. If the buttons of the turn's card will change because of that, Receipt.Turn is the turn.
func (e *Engine) cancelRetries(ctx context.Context, id cli.TurnID, by orchestrator.Press) (orchestrator.Receipt,
	error) {
	t, err := e.endedTurn(ctx, id, by)
	if errors.Is(err, orchestrator.ErrStillOpen) {
		c, err := e.conversation(by.Conversation)
		if err != nil {
			return orchestrator.Receipt{}, err
		}
		if r := c.running.Load(); r.is(id) {
			r.noRetries()
		}
		return orchestrator.Receipt{Turn: id}, nil
	}
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	if !t.Outcome.Recovery.Offers(orchestrator.ActionDrop) {
		return orchestrator.Receipt{Turn: id}, nil
	}
	st, err := e.waitingJob(ctx, t.ID, by.Conversation)
	switch {
	case errors.Is(err, orchestrator.ErrNoJob):
		return orchestrator.Receipt{}, nil
	case err != nil:
		return orchestrator.Receipt{}, err
	}
	return orchestrator.Receipt{}, e.opts.Jobs.DeleteJob(ctx, st.Job.ID, by)
}

// withoutJobWants removes the settings with which a job hides its results. A user who runs the turn again wants to see
// the result.
func withoutJobWants(w orchestrator.Wants) orchestrator.Wants {
	w.Silence, w.Known, w.Card.Then, w.After, w.Summarize = "", "", "", "", false
	return w
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

// endedTurn loads a turn when a user has pressed a button below it. It returns an error if the turn has not ended, or
// if it belongs to another conversation.
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
