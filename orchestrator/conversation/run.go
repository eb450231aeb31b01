package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/side"
)

// run takes one turn from the queue to an outcome that the chat shows. ctx ends with the turn: an abort
// cancels it with cli.ErrAborted, the end of ductor with ErrShutdown, or with cli.ErrDetached when the turn is
// to go on without it.
func (e *Engine) run(ctx context.Context, c *conversation, w waiting) {
	t := w.turn
	log := e.log.With("turn", t.ID, "chat", t.Prompt.Conversation.Chat, "topic", t.Prompt.Conversation.Topic)
	// What is recorded must be recorded although the turn was aborted.
	keep := context.WithoutCancel(ctx)
	asking, err := e.start(ctx, keep, c, &t, w.left)
	switch {
	case err != nil && w.left == cli.RemainsRun, errors.Is(err, orchestrator.ErrDiskFailed), errors.Is(err, orchestrator.ErrDamaged), errors.Is(err, orchestrator.ErrDiskFull) && e.life.Err() != nil:
		log.Error("continue a turn; it is tried again after the next start", "err", err)
		return
	case err != nil:
		log.Error("start turn", "err", err)
		e.fail(keep, c, w, t, err)
		return
	}
	card := newWitness(c.card(keep, t, w))
	if asking.instead != nil {
		card.Show(cli.Substituted{By: t.Agent, Why: asking.instead})
	}
	if asking.ended != "" {
		card.Show(cli.Status{Kind: cli.StatusWarning, Detail: e.opts.Lang.Of(c.id.Chat).Text("turn.mode-ended", asking.ended)})
	}
	result, begun := e.attempt(ctx, keep, c, &t, asking, card, w.left)
	c.running.Load().helpers.end()
	if cli.Replaced(ctx) && len(result.Unread) > 0 {
		c.do(func() { c.giveBack(keep, result.Unread) })
	}
	if result.Detached {
		log.Info("turn goes on without ductor", "agent", t.Agent)
		asking.files.leave()
		e.leave(keep, card)
		return
	}
	outcome := e.outcome(ctx, t, c.running.Load().started, result, card)
	if t.Wants.Purpose.Job != "" {
		outcome.Short = e.shorten(ctx, asking.req, outcome.Text)
	}
	if outcome.State == orchestrator.TurnAborted && !apart(t) { // its process is gone
		e.warm(keep, t.Prompt.Conversation)
	}
	outcome.Steps = e.keepSteps(keep, t, asking.steps.Steps())
	changed := asking.files.end()
	if changed != nil && isQuiet(t) { // nobody waits for it
		outcome.Changed, changed = changed(keep), nil
	}
	t.Outcome = outcome
	e.conclude(keep, c, t, begun, card, changed)
	c.last = lastTurn{t.Session, asking.session.Messages + 1, t.ID}
}

// shorten is what the chat shows of a long result of a job; empty for all of it.
func (e *Engine) shorten(ctx context.Context, at cli.Request, text string) string {
	short, is := e.opts.Shorten.Shorten(ctx, at, text, side.MostResult)
	if !is {
		return ""
	}
	return short
}

// keepSteps stores the steps of a turn before the chat offers them, and returns how many there are.
func (e *Engine) keepSteps(ctx context.Context, t orchestrator.Turn, steps []orchestrator.Step) int {
	if len(steps) > 0 {
		if err := e.opts.Store.SaveSteps(ctx, t.ID, e.now(), steps); err != nil {
			e.log.Warn("keep the steps of a turn", "turn", t.ID, "err", err)
		}
	}
	return len(steps)
}

// start settles what a turn needs. It waits while the disk is full.
func (e *Engine) start(ctx, keep context.Context, c *conversation, t *orchestrator.Turn, left cli.Remains) (asking, error) {
	for {
		full := e.diskFull()
		if full == nil {
			a, err := e.prepare(keep, c, t, left)
			if !errors.Is(err, orchestrator.ErrDiskFull) {
				return a, err
			}
			full = err
		}
		if !e.awaitDisk(ctx) {
			return asking{}, full
		}
	}
}

// beginning stores where t begins, and that it runs. It waits while the disk is full, unless the turn is to end.
func (e *Engine) beginning(turn context.Context, t orchestrator.Turn, begun *atomic.Bool) func(context.Context, cli.Start) error {
	return func(ctx context.Context, at cli.Start) error {
		for {
			ok, err := e.opts.Store.StartTurn(ctx, t, at)
			switch {
			case errors.Is(err, orchestrator.ErrDiskFull) && e.awaitDisk(turn):
				continue
			case err != nil:
				return fmt.Errorf("start turn: %w", err)
			case !ok:
				return orchestrator.ErrNotWaiting
			}
			begun.Store(true)
			return nil
		}
	}
}

// openCard opens the card of a turn, or the one it has.
func (e *Engine) openCard(ctx context.Context, t orchestrator.Turn, w waiting) orchestrator.Card {
	if !w.inherited {
		return e.opts.Chat.Card(t)
	}
	card := e.opts.Chat.Reopen(ctx, t)
	if w.left != cli.RemainsRun {
		card.Show(cli.CaughtUp{}) // nothing had been said
	}
	return card
}

// leave ends a card whose turn goes on without ductor.
func (e *Engine) leave(ctx context.Context, card orchestrator.Card) {
	ctx, cancel := context.WithTimeout(ctx, lastDelivery)
	defer cancel()
	card.Leave(ctx)
}

// amend adds to the outcome of a turn what the turn changed, once the chat shows the outcome. It reports whether the chat shows all of it.
func (e *Engine) amend(ctx context.Context, t orchestrator.Turn, changed orchestrator.Changed, show func(context.Context, orchestrator.Outcome) error, shown <-chan bool) bool {
	if changed == (orchestrator.Changed{}) {
		return true
	}
	t.Outcome.Changed = changed
	if err := e.opts.Store.AmendOutcome(ctx, t.ID, t.Outcome); err != nil {
		e.log.Error("store what a turn changed", "turn", t.ID, "err", err)
	}
	if !<-shown {
		return true
	}
	ctx, stop := e.untilClosed(ctx)
	defer stop()
	return e.insist(e.log.With("turn", t.ID), "changes-not-shown", func() error { return show(ctx, t.Outcome) })
}

// conclude records the outcome of a turn and shows it, and adds what the turn changed, unless changed is nil.
func (e *Engine) conclude(ctx context.Context, c *conversation, t orchestrator.Turn, begun bool, card orchestrator.Card, changed func(context.Context) orchestrator.Changed) {
	log := e.log.With("turn", t.ID, "chat", t.Prompt.Conversation.Chat, "topic", t.Prompt.Conversation.Topic)
	t.Outcome.Announce = e.announcement(ctx, t, t.Outcome)
	stored, err := e.record(ctx, log, e.ending(t, begun))
	if err != nil {
		log.Error("record how a turn ended", "err", err)
	}
	log.Info("turn ended", "state", t.Outcome.State, "agent", t.Outcome.Agent, "model", t.Outcome.Model,
		"took", t.Outcome.Duration, "cost_usd", t.Outcome.CostUSD)
	if t.Outcome.State == orchestrator.TurnAborted {
		if err := e.opts.Chat.Withdraw(ctx, t); err != nil {
			log.Error("withdraw what the agent of an aborted turn said", "err", err)
		}
	}
	c.deliverAll(ctx, t, stored, func(ctx context.Context) error { return card.Finish(ctx, t.Outcome) }, changed, card.Amend)
	e.warnOfBudgets(ctx, t)
}

// deliverAll is deliver for an outcome to which amend adds what the turn changed; changed is nil for a turn that changed nothing.
func (c *conversation) deliverAll(ctx context.Context, t orchestrator.Turn, stored <-chan bool, show func(context.Context) error,
	changed func(context.Context) orchestrator.Changed, amend func(context.Context, orchestrator.Outcome) error,
) {
	if changed == nil {
		c.deliver(ctx, t, stored, nil, show)
		return
	}
	rest := make(chan bool, 1)
	shown := c.deliver(ctx, t, stored, rest, show)
	c.e.wg.Go(func() { rest <- c.e.amend(ctx, t, changed(ctx), amend, shown) })
}

// askOnce asks the agent of a turn, and says whether the turn has begun.
func (e *Engine) askOnce(ctx, keep context.Context, c *conversation, t orchestrator.Turn, a asking, card orchestrator.Card, left cli.Remains) (cli.Result, bool) {
	begun := &atomic.Bool{}
	begun.Store(left == cli.RemainsRun)
	started := e.beginning(ctx, t, begun)
	a.req.Started = func(ctx context.Context, at cli.Start) error {
		err := started(ctx, at)
		if err == nil {
			a.files.begin(t, a.req.Dir, false)
			c.takeParts(keep, t)
		}
		return err
	}
	if left == cli.RemainsRun {
		a.files.begin(t, a.req.Dir, true)
	}
	c.asked(t, a.req, begun)
	result := e.ask(ctx, keep, c, t, a, card, left)
	return result, begun.Load()
}

// ask runs or resumes the turn, and returns its result.
func (e *Engine) ask(ctx, keep context.Context, c *conversation, t orchestrator.Turn, a asking, card orchestrator.Card, left cli.Remains) cli.Result {
	req := a.req
	known := newKnowledge(e.opts.Store, t, req.Resume, a.handed, card.Show)
	hide := e.newHider(req)
	requests := e.approvals.Open(ctx, approval.Running{
		Turn: t, Dir: req.Dir, Mode: req.Permission, Tools: toolsOf(t.Agent, req), Allowed: tools.Own(t.Agent, req.AllowedTools),
		Resumed: left == cli.RemainsRun, Secrets: hide,
		Show: func(ev cli.Event) {
			a.steps.Take(ev)
			card.Show(ev)
		},
	})
	show := func(ev cli.Event) {
		known.learn(keep, ev)
		switch ev.(type) {
		case cli.CaughtUp:
			if left == cli.RemainsRun {
				c.resumed(keep, t)
			}
		case cli.Result, cli.PromptAccepted:
			return // the outcome says the one, once it is stored
		}
		hide.pass(ev, func(ev cli.Event) {
			a.steps.Take(ev)
			a.files.take(ev)
			card.Show(ev)
		})
		requests.Take(ev) // the card hears of an answer after the question
	}
	run := e.opts.Gateway.Run
	if left == cli.RemainsRun {
		run = e.opts.Gateway.Resume
	} else if req.Project == cli.WithoutProject {
		req.Project = requests.AskForProject(ctx, show)
	}
	result := e.before(ctx, keep, c, a, t, &req, known, show, left)
	switch {
	case result.Err != nil || result.Text != "":
	case req.Task == cli.TaskCompact && req.Resume != "":
		a.req = req
		result = e.compact(ctx, keep, a, t, left, show)
	default:
		result = run(ctx, t.Agent, req, show)
	}
	if result.Err != nil && result.Err.Kind == cli.ResumeFailed && req.Resume != "" && req.Task == cli.TaskPrompt && ctx.Err() == nil {
		// The agent refused before it read the prompt, so asking again asks once.
		if e.hasAnswered(keep, a.session, t) {
			card.Show(cli.Status{Kind: cli.StatusWarning, Detail: e.opts.Lang.Of(c.id.Chat).Text("turn.session-lost")})
		}
		result = e.askFresh(ctx, keep, c, t, req, known, show)
	}
	known.ended()
	requests.Drain()
	if !result.Detached {
		e.approvals.WithdrawTurn(keep, t.ID)
	}
	requests.Close()
	if err := known.wait(); err != nil {
		e.log.Error("store what an agent knows of a session", "turn", t.ID, "err", err)
	}
	return hide.result(result)
}

// before puts before the prompt what the agent missed. The agent is not asked if the result has an error or a text.
func (e *Engine) before(ctx, keep context.Context, c *conversation, a asking, t orchestrator.Turn, req *cli.Request, known *knowledge, show func(cli.Event), left cli.Remains) (r cli.Result) {
	switch {
	case left == cli.RemainsRun: // it was told already
	case req.Task == cli.TaskCommand: // nothing may come before it
	case req.Task == cli.TaskCompact:
		if req.Resume == "" {
			r.Text = e.opts.Lang.Of(c.id.Chat).Text("turn.nothing-to-compact")
		}
	default:
		handed, err := e.handOff(ctx, keep, c, a.session, t, req, show)
		known.hands(handed)
		r.Err = cli.AsFailure(t.Agent, err)
	}
	return r
}

func (e *Engine) askFresh(ctx, keep context.Context, c *conversation, t orchestrator.Turn, req cli.Request, known *knowledge, show func(cli.Event)) cli.Result {
	if err := e.opts.Store.SetAgentSession(keep, t.Session, t.AgentEnv(), ""); err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	session, err := e.opts.Store.Session(keep, t.Session)
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	req.Resume, known.own = "", "" // the new session may have the same id
	req.Prompt, _ = wording(t.Prompt)
	handed, err := e.handOff(ctx, keep, c, session, t, &req, show)
	known.hands(handed)
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	return e.opts.Gateway.Run(ctx, t.Agent, req, show)
}

// outcome says how the turn ended for the person who asked. began is when this process took it up: the time since then is measured
// also where the clock was set back.
func (e *Engine) outcome(ctx context.Context, t orchestrator.Turn, began time.Time, r cli.Result, card *witness) orchestrator.Outcome {
	p := e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	out := orchestrator.Outcome{
		State: orchestrator.TurnDone, Text: r.Text, Agent: t.Agent, Model: r.Model, Usage: r.Usage, CostUSD: r.CostUSD,
		Duration: max(e.now().Sub(t.Queued), e.now().Sub(began), 0), Denials: r.Denials, Fallback: r.Fallback,
		Ending: orchestrator.Ending{Fill: r.Fill},
	}
	switch {
	case errors.Is(context.Cause(ctx), orchestrator.ErrShutdown):
		out.State, out.Failure, out.Recovery = orchestrator.TurnInterrupted, p.Text("turn.interrupted"), orchestrator.Repeatable()
	case r.Err != nil && errors.Is(context.Cause(ctx), errBypassOver):
		out.State, out.Failure, out.Recovery = orchestrator.TurnFailed, p.Text("turn.bypass-stopped"), orchestrator.Repeatable()
	case r.Aborted:
		out.State = orchestrator.TurnAborted
	case r.Err != nil:
		failed := e.failed(context.WithoutCancel(ctx), t, r.Err, card)
		out.State, out.Failure, out.Recovery = failed.State, failed.Failure, failed.Recovery
		e.log.Warn("turn failed", "turn", t.ID, "kind", r.Err.Kind, "reason", r.Err.Reason, "code", r.Err.Code,
			"detail", r.Err.Detail)
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

// fail ends a turn that could not even be started.
func (e *Engine) fail(ctx context.Context, c *conversation, w waiting, t orchestrator.Turn, err error) {
	t.Outcome = e.failed(ctx, t, cli.AsFailure(t.Agent, err), nil)
	t.State = orchestrator.TurnFailed
	e.conclude(ctx, c, t, w.left != "", c.card(ctx, t, w), nil)
}
