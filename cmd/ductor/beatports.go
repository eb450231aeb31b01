package main

import (
	"context"
	"errors"
	"fmt"

	"ductor/bot"
	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// What the heartbeat asks of the rooms beside it.

// orders is the heartbeat.Runner of the orchestrator.
type orders struct{ *house }

func (o orders) Ask(ctx context.Context, order heartbeat.Order) error {
	wants := orchestrator.Wants{
		Agent: order.Agent, Model: order.Model, Effort: order.Effort, Dir: order.Dir, Timeout: order.Timeout,
		Sandbox: order.Sandbox, Silence: order.OKWord, Known: order.Known, Title: order.Title, Then: order.Then,
	}
	if order.Session == heartbeat.OwnSession {
		wants.Own = string(order.Job)
	}
	err := o.desk.SubmitOrder(ctx, orchestrator.Order{Turn: order.Turn, Wants: wants, Prompt: orchestrator.Prompt{
		Conversation: order.Conversation, Person: order.Person, Text: order.Prompt,
		Rights: order.Rights,
	}})
	switch {
	case errors.Is(err, orchestrator.ErrQueueFull):
		return heartbeat.ErrNoRoom
	case errors.Is(err, orchestrator.ErrOutsideRoot), errors.Is(err, orchestrator.ErrNotADir):
		return fmt.Errorf("It cannot run in %s: %w: %w", order.Dir, err, heartbeat.ErrRefused)
	case errors.Is(err, orchestrator.ErrBadChoice):
		return fmt.Errorf("%w: %w", err, heartbeat.ErrRefused)
	}
	return err
}

func (o orders) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	return o.db.Turn(ctx, id)
}

func (o orders) Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error) {
	st, err := o.desk.Status(ctx, id)
	return st.Running != nil || st.Queue > 0, err
}

// results is the heartbeat.Notifier. A run that had a turn was shown by the card of that turn, unless it said what the
// chat knew already. What is left is to say that it did, or why there was no turn.
type results struct{ *house }

func (r results) Report(ctx context.Context, report heartbeat.Report) error {
	err := r.show(ctx, report)
	if errors.Is(err, bot.ErrNotYet) {
		return heartbeat.ErrLater
	}
	return err
}

func (r results) show(ctx context.Context, report heartbeat.Report) error {
	if report.Silent {
		t, err := r.db.Turn(ctx, report.News.Shown)
		if err != nil {
			return err
		}
		if !t.Delivered {
			return bot.ErrNotYet
		}
		return r.bot.Chat().Remark(ctx, t, report.Note)
	}
	_, err := r.db.Turn(ctx, report.Turn)
	if !errors.Is(err, orchestrator.ErrNoTurn) {
		return err
	}
	never := orchestrator.Turn{ID: report.Turn, Prompt: orchestrator.Prompt{Conversation: report.Job.Conversation}}
	return r.bot.Chat().Say(ctx, never, report.Note, orchestrator.JobID(report.Job.ID))
}
