// Package later lets jobs run prompts again when a usage limit has ended.
package later

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Prompts manages the jobs that run the prompts of earlier turns again; see orchestrator.LaterJob.
type Prompts struct {
	Jobs  orchestrator.Jobs
	Store orchestrator.Store
}

// Schedule creates a job that runs the prompt of a turn again, and returns the time of its run: up to a second after
// at. It returns ErrRepeated if another turn or job already repeats the prompt, and ErrBadChoice if no job can run the
// prompt. Turn.RepeatedAt explains effort and maxMode.
func (p Prompts) Schedule(ctx context.Context, t orchestrator.Turn, at time.Time, effort cli.Effort,
	maxMode cli.PermissionMode) (time.Time, error) {
	in := t.Prompt.Conversation
	if !t.MayRunLater() {
		return at, orchestrator.ErrBadChoice
	}
	if _, err := p.Jobs.Job(ctx, orchestrator.LaterJob(t.ID), in); !errors.Is(err, orchestrator.ErrNoJob) {
		return at, cmp.Or(err, orchestrator.ErrRepeated)
	}
	if err := p.Store.Unrepeated(ctx, t.ID); err != nil {
		return at, err
	}
	at = at.Truncate(time.Second).Add(time.Second)
	if _, err := p.Jobs.AddJob(ctx, t.RepeatedAt(at, effort, maxMode)); err != nil {
		return at, fmt.Errorf("add a job: %w", err)
	}
	return at, nil
}

// Cancel deletes the job that would run the prompt of a turn again, and the jobs of messages that were sent to this
// turn. It does nothing if no such jobs exist. It returns ErrRepeated if the prompt has run again already.
func (p Prompts) Cancel(ctx context.Context, id cli.TurnID, by orchestrator.Press) error {
	if p.Jobs == nil {
		return nil
	}
	if err := p.Store.Unrepeated(ctx, id); err != nil {
		return err
	}
	all, err := p.Jobs.Jobs(ctx, by.Conversation)
	for _, job := range all {
		err = errors.Join(err, p.cancelOf(ctx, job.Job.ID, id, by))
	}
	return err
}

// cancelOf deletes the given job if the job runs the prompt of the turn with the given ID, or a message that was sent
// to that turn.
func (p Prompts) cancelOf(ctx context.Context, job orchestrator.JobID, id cli.TurnID, by orchestrator.Press) error {
	repeats, later := job.Repeats()
	if !later {
		return nil
	}
	t, err := p.Store.Turn(ctx, repeats)
	if err == nil && (t.ID == id || t.Entry.Into == id) {
		err = p.Jobs.DeleteJob(ctx, job, by)
	}
	if errors.Is(err, orchestrator.ErrNoTurn) || errors.Is(err, orchestrator.ErrNoJob) {
		return nil
	}
	return err
}

// Repeats reports whether another turn or job repeats the prompt of a turn.
func (p Prompts) Repeats(ctx context.Context, t orchestrator.Turn) (bool, error) {
	err := p.Store.Unrepeated(ctx, t.ID)
	if errors.Is(err, orchestrator.ErrRepeated) {
		return true, nil
	}
	if err != nil || p.Jobs == nil {
		return false, err
	}
	_, err = p.Jobs.Job(ctx, orchestrator.LaterJob(t.ID), t.Prompt.Conversation)
	if errors.Is(err, orchestrator.ErrNoJob) {
		return false, nil
	}
	return err == nil, err
}

// Restore completes an order that comes from a job of Schedule. A job has only text, so Restore adds the files of the
// earlier turn to the prompt of the order. It returns the ID of the earlier turn, and the completed prompt. If the
// order does not come from such a job, if a user has changed the job's prompt, or if another turn already repeats the
// earlier turn, the ID is empty and the prompt is unchanged.
func (p Prompts) Restore(ctx context.Context, order orchestrator.Order) (again cli.TurnID, _ orchestrator.Prompt,
	err error) {
	prompt := order.Prompt
	id, later := order.Wants.Job.Repeats()
	if !later {
		return "", prompt, nil
	}
	t, err := p.Store.Turn(ctx, id)
	if err == nil {
		err = p.Store.Unrepeated(ctx, id)
	}
	if errors.Is(err, orchestrator.ErrNoTurn) || errors.Is(err, orchestrator.ErrRepeated) ||
		!strings.HasPrefix(prompt.Text, t.Prompt.Text) {
		return "", prompt, nil
	}
	if prompt.Text == t.Prompt.OnlyText() {
		prompt.Text, prompt.Attachments, prompt.Quotes = t.Prompt.Text, t.Prompt.Attachments, t.Prompt.Quotes
	}
	return id, prompt, err
}
