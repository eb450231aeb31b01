package conversation

import (
	"context"
	"errors"
	"log/slog"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
	"ductor/orchestrator/spending"
	"ductor/orchestrator/turn"
)

// runningTurn runs one turn, from the queue to its outcome. It is not safe for concurrent use.
type runningTurn struct {
	e       *Engine
	c       *conversation
	ctx     context.Context // cancelled when the turn must end
	record  context.Context // never cancelled, because the outcome of an aborted turn must be stored, too
	waiting waiting

	turn       orchestrator.Turn
	session    orchestrator.Session
	running    *turn.Turn // nil before the turn is prepared
	promptSent bool
}

func (r *runningTurn) log() *slog.Logger {
	in := r.turn.Prompt.Conversation
	return r.e.log.With("turn", r.turn.ID, "chat", in.Chat, "topic", in.Topic)
}

// run prepares the turn, runs it, and records and shows its outcome. The caller cancels ctx to abort the turn.
func (c *conversation) run(ctx context.Context, w waiting) {
	r := &runningTurn{e: c.e, c: c, ctx: ctx, record: context.WithoutCancel(ctx), waiting: w, turn: w.turn}
	p, err := r.prepareWithRetry()
	now := c.active.running.Load()
	r.running = c.e.runner.New(ctx, turn.Start{
		Conversation: c, Turn: r.turn, Session: r.session, Resumes: w.remains == cli.RemainsRun, Began: now.started,
		Retries: now.retries, Last: c.last.turn,
	})
	if err != nil {
		r.failToStart(err)
		return
	}
	r.openCard()
	// If the agent kept running during a restart of ductor, the card already shows the notes about the preparation.
	if w.remains != cli.RemainsRun {
		r.showNotes(p)
	}
	result, promptSent := r.running.Run(p.req)
	r.promptSent = promptSent
	r.turn = r.running.Turn()
	now.helpers.End()
	r.handleUnread(result)
	if result.Detached {
		r.leave()
		return
	}
	r.finish(p.req, result)
	if w.remains == cli.RemainsRun && (result.Err.Died() || result.Aborted && r.stoppedToRepeat()) {
		// It is unknown whether the agent has read some messages that the previous process sent to it. Offer to run
		// these messages again.
		for _, t := range c.e.doubtSteered(r.record, r.turn.ID, result.Steered.Read...) {
			c.redeliver(r.record, t)
		}
	}
}

// stoppedToRepeat reports whether a user stopped the turn before a restart in order to run its prompt again. The store
// does not contain which button the user pressed, so stoppedToRepeat checks whether a turn or a job repeats the prompt.
func (r *runningTurn) stoppedToRepeat() bool {
	if !r.waiting.turn.Aborting {
		return false
	}
	repeats, err := r.e.later().Repeats(r.record, r.turn)
	if err != nil {
		r.log().Error("find out whether the prompt of a stopped turn runs again", "err", err)
	}
	return repeats
}

// showNotes shows notes above the answer, about what the preparation of the turn found.
func (r *runningTurn) showNotes(p preparation) {
	if p.instead != nil {
		r.running.Events.Show(cli.Substituted{By: r.turn.Agent, Why: p.instead})
	}
	texts := r.e.opts.Lang.Of(r.c.id().Chat)
	notice := func(text string) { r.running.Events.Show(cli.Status{Kind: cli.StatusNotice, Detail: text}) }
	if p.endedMode != "" {
		notice(texts.Text("turn.mode-ended", p.endedMode))
	}
	for _, s := range r.c.last.absent.Update(p.req.Absent) {
		notice(texts.Text("servers.without", s.Name, s.Why))
	}
}

func (r *runningTurn) finish(req cli.Request, result cli.Result) {
	outcome := r.running.Finish(result)
	if r.turn.Wants.Purpose.Job != "" {
		outcome.Short = r.shorten(req, outcome.Text)
	}
	// The abort killed the agent's process, so start a process for the next turn.
	if outcome.State == orchestrator.TurnAborted && !r.turn.IsSeparate() {
		r.e.warmLater(r.record, r.c.id(), afterAbort)
	}
	changed := r.running.Events.EndFiles()
	if changed != nil && r.turn.IsQuiet() { // no user waits for the outcome, so compute the changes before showing it
		outcome.Changed, changed = changed(r.record), nil
	}
	r.turn.Outcome = outcome
	r.conclude(changed)
	r.c.last.turn = turn.Last{Session: r.turn.Session, Messages: r.session.Totals.Messages + 1, Turn: r.turn.ID}
}

// shorten returns a shorter version of a job's result if the result is too long for the chat. Otherwise it returns "".
func (r *runningTurn) shorten(req cli.Request, text string) string {
	short, is := r.e.opts.Shorten.Shorten(r.ctx, req, text, side.MostResult)
	if !is {
		return ""
	}
	return short
}

// prepareWithRetry prepares the first attempt of the turn. While the disk is full, it tries again.
//
// If the turn began before a restart, prepareWithRetry tries only once: the agent is running, and a user must be able
// to abort it.
func (r *runningTurn) prepareWithRetry() (preparation, error) {
	for {
		full := r.e.retrier().DiskFull()
		if full == nil || r.waiting.remains == cli.RemainsRun {
			p, err := r.prepare()
			if !errors.Is(err, orchestrator.ErrDiskFull) {
				return p, err
			}
			full = err
		}
		if !r.e.retrier().AwaitDisk(r.ctx) {
			return preparation{}, full
		}
	}
}

// failToStart handles a turn that could not be prepared. In these cases, the turn stays in the store for the next
// process:
//   - The agent is still running from before a restart.
//   - The disk or the database is broken.
//   - The disk is full, and ductor is shutting down.
//
// In all other cases, the turn fails.
func (r *runningTurn) failToStart(err error) {
	state, _ := r.e.retrier().DiskState()
	full := errors.Is(err, orchestrator.ErrDiskFull) && r.e.life.Err() != nil
	lost := errors.Is(err, orchestrator.ErrDiskFailed) && state != orchestrator.DiskWorks ||
		errors.Is(err, orchestrator.ErrDamaged)
	if r.waiting.remains == cli.RemainsRun || lost || full {
		r.log().Error("continue a turn; it is tried again after the next start", "err", err)
		return
	}
	r.log().Error("start turn", "err", err)
	r.turn.Outcome = r.running.Failed(cli.AsFailure(r.turn.Agent, err))
	r.turn.State = orchestrator.TurnFailed
	r.promptSent = r.waiting.remains != ""
	r.openCard()
	r.conclude(nil)
}

// openCard opens the card of the turn, or continues the card from before a restart. It first waits until the chat shows
// the previous outcome, so that the messages of two turns do not mix. A quiet turn (see Turn.IsQuiet) has no card.
func (r *runningTurn) openCard() {
	if r.turn.IsQuiet() {
		return
	}
	t := r.turn
	var shown <-chan struct{}
	r.c.do(func(c *conversation) { shown = c.shown })
	if v := r.e.opts.Viewers; v != nil {
		r.running.Events.SetViewers(v.Follow(t, r.waiting.remains == cli.RemainsRun))
	}
	r.running.Events.SetCard(func() orchestrator.Card {
		if !r.waiting.cardOpened {
			return r.e.opts.Chat.Card(t)
		}
		card := r.e.opts.Chat.Reopen(r.record, t)
		if r.waiting.remains != cli.RemainsRun {
			card.Show(cli.CaughtUp{})
		}
		return card
	})
	select {
	case <-shown:
		r.running.Events.Card()
		return
	default:
	}
	r.e.wg.Go(func() {
		<-shown // closed after one attempt to show the outcome, successful or not
		r.running.Events.Card()
	})
}

// leave saves the card of a turn that continues while ductor restarts, so that the next process can continue the card.
func (r *runningTurn) leave() {
	r.log().Info("turn continues without ductor", "agent", r.turn.Agent)
	r.running.Events.LeaveFiles()
	if r.turn.IsQuiet() {
		return
	}
	ctx, cancel := context.WithTimeout(r.record, lastDelivery)
	defer cancel()
	r.running.Events.Card().Leave(ctx)
}

// conclude stores the outcome of the turn and shows it. Then it calls changed, which may be nil, and adds the file
// changes to the outcome.
func (r *runningTurn) conclude(changed func(context.Context) orchestrator.Changed) {
	e, t, log := r.e, r.turn, r.log()
	t.Outcome.Announce = r.c.announcement(r.record, t)
	end := e.opts.Budgets.CountUntil(e.ending(t, r.promptSent), spending.SpenderOf(t), t.Outcome.CostUSD)
	stored, err := e.retrier().Record(r.record, log, end)
	if err != nil {
		log.Error("record the end of a turn", "err", err)
	}
	log.Info("turn ended", "state", t.Outcome.State, "agent", t.Outcome.Agent, "model", t.Outcome.Model,
		"took", t.Outcome.Duration, "cost_usd", t.Outcome.CostUSD)
	if t.Outcome.State == orchestrator.TurnAborted {
		if err := e.opts.Chat.Withdraw(r.record, t); err != nil {
			log.Error("withdraw messages of an aborted turn", "err", err)
		}
	}
	d := delivery{turn: t, stored: stored, changed: changed}
	if t.IsQuiet() {
		d.show = func(ctx context.Context, o orchestrator.Outcome) error {
			ended := t
			ended.State = o.State
			return e.opts.Chat.Redeliver(ctx, ended)
		}
	} else {
		// If a user aborts during the delivery, the chat must not show the rest of the answer.
		r.running.Events.EndCard()
		if v := e.opts.Viewers; v != nil {
			d.begun = func() { v.Ended(t) }
		}
		d.show = func(ctx context.Context, o orchestrator.Outcome) error {
			return r.running.Events.Card().Finish(ctx, o)
		}
		d.amend = func(ctx context.Context, o orchestrator.Outcome) error {
			return r.running.Events.Card().Amend(ctx, o)
		}
	}
	r.c.deliver(r.record, d)
	e.warnOfBudgets(r.record, t)
}

// announcement selects whether a separate message notifies the user that a turn has ended. An aborted turn needs no
// such message.
func (c *conversation) announcement(ctx context.Context, t orchestrator.Turn) orchestrator.Announcement {
	e := c.e
	if t.Outcome.State == orchestrator.TurnAborted || t.Started.IsZero() {
		return orchestrator.NotAnnounced
	}
	conv, err := e.opts.Store.Conversation(ctx, c.id())
	if err != nil {
		e.log.Warn("load the notify mode for the end of a turn", "turn", t.ID, "err", err)
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
