package conversation

import (
	"context"
	"errors"
	"log/slog"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
	"ductor/orchestrator/turn"
)

// runningTurn runs one turn: it prepares the turn, runs its agent, passes the events on and records the outcome. One goroutine runs it.
type runningTurn struct {
	e *Engine
	c *conversation
	// ctx ends with the turn. An abort cancels it with cli.ErrAborted, the end of ductor with ErrShutdown, or with cli.ErrDetached if the
	// turn continues without ductor.
	ctx     context.Context
	keep    context.Context // never ends: ductor records what happened even if the turn was aborted
	waiting waiting

	turn    orchestrator.Turn
	session orchestrator.Session // in which the turn runs
	events  *turn.Fanout
	handed  cli.HandedOver // history that the agent got and the card does not show yet
	begun   bool           // the store has where an attempt begins
}

func (c *conversation) runningTurn(ctx context.Context, w waiting) *runningTurn {
	return &runningTurn{
		e: c.e, c: c, ctx: ctx, keep: context.WithoutCancel(ctx), waiting: w, turn: w.turn, events: turn.NewFanout(c.e.now),
	}
}

func (r *runningTurn) log() *slog.Logger {
	in := r.turn.Prompt.Conversation
	return r.e.log.With("turn", r.turn.ID, "chat", in.Chat, "topic", in.Topic)
}

func (r *runningTurn) printer() lang.Printer { return r.e.opts.Lang.Of(r.c.id.Chat) }

// run runs the turn from the queue to an outcome that the chat shows.
func (r *runningTurn) run() {
	e := r.e
	first, err := r.prepareWithRetry()
	if err != nil {
		r.failToStart(err)
		return
	}
	r.openCard()
	if first.instead != nil {
		r.events.Show(cli.Substituted{By: r.turn.Agent, Why: first.instead})
	}
	if first.endedMode != "" {
		r.events.Show(cli.Status{Kind: cli.StatusWarning, Detail: r.printer().Text("turn.mode-ended", first.endedMode)})
	}
	result := r.runAttempts(first.req)
	r.c.running.Load().helpers.end()
	if cli.Replaced(r.ctx) && len(result.Unread) > 0 {
		r.c.do(func() { r.c.giveBack(r.keep, result.Unread) })
	}
	if result.Detached {
		r.leave()
		return
	}
	outcome := r.outcome(result)
	if r.turn.Wants.Purpose.Job != "" {
		outcome.Short = r.shorten(first.req, outcome.Text)
	}
	if outcome.State == orchestrator.TurnAborted && !apart(r.turn) { // its process is gone
		e.warm(r.keep, r.turn.Prompt.Conversation)
	}
	outcome.Steps = r.saveSteps()
	changed := r.events.EndFiles()
	if changed != nil && isQuiet(r.turn) { // nobody waits for it
		outcome.Changed, changed = changed(r.keep), nil
	}
	r.turn.Outcome = outcome
	r.conclude(changed)
	r.c.last = lastTurn{r.turn.Session, r.session.Messages + 1, r.turn.ID}
}

// shorten returns the text that the chat shows in place of a long result of a job, or "" if it shows the whole result.
func (r *runningTurn) shorten(req cli.Request, text string) string {
	short, is := r.e.opts.Shorten.Shorten(r.ctx, req, text, side.MostResult)
	if !is {
		return ""
	}
	return short
}

// saveSteps stores the steps of the turn before the chat offers them, and returns how many there are.
func (r *runningTurn) saveSteps() int {
	steps := r.events.Steps()
	if len(steps) > 0 {
		if err := r.e.opts.Store.SaveSteps(r.keep, r.turn.ID, r.e.now(), steps); err != nil {
			r.log().Warn("keep the steps of a turn", "err", err)
		}
	}
	return len(steps)
}

// prepareWithRetry prepares the first attempt, and retries while the disk is full.
func (r *runningTurn) prepareWithRetry() (preparation, error) {
	for {
		full := r.e.diskFull()
		if full == nil {
			p, err := r.prepare()
			if !errors.Is(err, orchestrator.ErrDiskFull) {
				return p, err
			}
			full = err
		}
		if !r.e.awaitDisk(r.ctx) {
			return preparation{}, full
		}
	}
}

// failToStart ends a turn that could not be prepared. If the disk prevents that, the next process tries again.
func (r *runningTurn) failToStart(err error) {
	full := errors.Is(err, orchestrator.ErrDiskFull) && r.e.life.Err() != nil
	if r.waiting.left == cli.RemainsRun || errors.Is(err, orchestrator.ErrDiskFailed) || full {
		r.log().Error("continue a turn; it is tried again after the next start", "err", err)
		return
	}
	r.log().Error("start turn", "err", err)
	r.turn.Outcome = r.failed(cli.AsFailure(r.turn.Agent, err))
	r.turn.State = orchestrator.TurnFailed
	r.begun = r.waiting.left != ""
	r.openCard()
	r.conclude(nil)
}

// openCard opens the card of the turn, or the card that it has, once the chat shows the outcome before it: the parts of two answers do not
// mix. A quiet turn has no card.
func (r *runningTurn) openCard() {
	if isQuiet(r.turn) {
		return
	}
	t, shown := r.turn, r.c.lastShown()
	r.events.SetCard(func() orchestrator.Card {
		if !r.waiting.inherited {
			return r.e.opts.Chat.Card(t)
		}
		card := r.e.opts.Chat.Reopen(r.keep, t)
		if r.waiting.left != cli.RemainsRun {
			card.Show(cli.CaughtUp{}) // nothing was shown before
		}
		return card
	})
	select {
	case <-shown:
		r.events.Card()
		return
	default:
	}
	r.e.wg.Go(func() {
		<-shown // deliver closes it in any case
		r.events.Card()
	})
}

// leave saves the card of a turn that continues without ductor, so that the next process can continue the card.
func (r *runningTurn) leave() {
	r.log().Info("turn goes on without ductor", "agent", r.turn.Agent)
	r.events.LeaveFiles()
	if isQuiet(r.turn) {
		return
	}
	ctx, cancel := context.WithTimeout(r.keep, lastDelivery)
	defer cancel()
	r.events.Card().Leave(ctx)
}

// conclude records the outcome of the turn and shows it, and adds the changed files, unless changed is nil.
func (r *runningTurn) conclude(changed func(context.Context) orchestrator.Changed) {
	e, t, log := r.e, r.turn, r.log()
	t.Outcome.Announce = e.announcement(r.keep, t, t.Outcome)
	stored, err := e.record(r.keep, log, e.ending(t, r.begun))
	if err != nil {
		log.Error("record how a turn ended", "err", err)
	}
	log.Info("turn ended", "state", t.Outcome.State, "agent", t.Outcome.Agent, "model", t.Outcome.Model,
		"took", t.Outcome.Duration, "cost_usd", t.Outcome.CostUSD)
	if t.Outcome.State == orchestrator.TurnAborted {
		if err := e.opts.Chat.Withdraw(r.keep, t); err != nil {
			log.Error("withdraw what the agent of an aborted turn said", "err", err)
		}
	}
	d := delivery{turn: t, stored: stored, changed: changed}
	if isQuiet(t) {
		d.show = func(ctx context.Context, o orchestrator.Outcome) error {
			ended := t
			ended.State = o.State
			return e.opts.Chat.Redeliver(ctx, ended)
		}
	} else {
		d.show = func(ctx context.Context, o orchestrator.Outcome) error { return r.events.Card().Finish(ctx, o) }
		d.amend = func(ctx context.Context, o orchestrator.Outcome) error { return r.events.Card().Amend(ctx, o) }
	}
	r.c.deliver(r.keep, d)
	e.warnOfBudgets(r.keep, t)
}

// outcome makes the outcome of a turn out of the result of its last attempt.
func (r *runningTurn) outcome(result cli.Result) orchestrator.Outcome {
	p, now, cause := r.printer(), r.e.now(), context.Cause(r.ctx)
	out := orchestrator.Outcome{
		State: orchestrator.TurnDone, Text: result.Text, Agent: r.turn.Agent, Model: result.Model, Usage: result.Usage,
		CostUSD: result.CostUSD, Denials: result.Denials, Fallback: result.Fallback, Ending: orchestrator.Ending{Fill: result.Fill},
		// The second difference uses the monotonic clock, so that it is right even if the clock was set back.
		Duration: max(now.Sub(r.turn.Queued), now.Sub(r.c.running.Load().started), 0),
	}
	switch {
	case errors.Is(cause, orchestrator.ErrShutdown):
		out.State, out.Failure, out.Recovery = orchestrator.TurnInterrupted, p.Text("turn.interrupted"), orchestrator.Repeatable()
	case result.Err != nil && errors.Is(cause, errBypassOver):
		out.State, out.Failure, out.Recovery = orchestrator.TurnFailed, p.Text("turn.bypass-stopped"), orchestrator.Repeatable()
	case result.Aborted:
		out.State = orchestrator.TurnAborted
	case result.Err != nil:
		failed := r.failed(result.Err)
		out.State, out.Failure, out.Recovery = failed.State, failed.Failure, failed.Recovery
		r.e.log.Warn("turn failed", "turn", r.turn.ID, "kind", result.Err.Kind, "reason", result.Err.Reason, "code", result.Err.Code,
			"detail", result.Err.Detail)
	}
	return out
}

// announcement says whether the end of a turn is told in a message of its own. Whoever aborted a turn knows that it ended.
func (e *Engine) announcement(ctx context.Context, t orchestrator.Turn, o orchestrator.Outcome) orchestrator.Announcement {
	if o.State == orchestrator.TurnAborted || t.Started.IsZero() {
		return orchestrator.NotAnnounced
	}
	conv, err := e.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		e.log.Warn("look up whether the end of a turn notifies", "turn", t.ID, "err", err)
	}
	now := e.now()
	switch mode := e.settingsOf(conv).Notify; {
	case mode == orchestrator.NotifyNever, mode == orchestrator.NotifyLong && now.Sub(t.Started) <= e.turns().LongTurn:
		return orchestrator.NotAnnounced
	case e.opts.QuietHour != nil && e.opts.QuietHour(now):
		return orchestrator.Muted
	}
	return orchestrator.Announced
}
