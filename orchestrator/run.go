package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"ductor/cli"
)

// run takes one turn from the queue to an outcome that the chat shows. ctx ends with the turn: an abort
// cancels it with cli.ErrAborted, the end of ductor with ErrShutdown, or with cli.ErrDetached when the turn is
// to go on without it.
func (o *Orchestrator) run(ctx context.Context, w waiting) {
	t := w.turn
	log := o.log.With("turn", t.ID, "chat", t.Prompt.Conversation.Chat, "topic", t.Prompt.Conversation.Topic)
	// What is recorded must be recorded although the turn was aborted.
	keep := context.WithoutCancel(ctx)
	req, started, err := o.start(ctx, keep, &t, w.left)
	switch {
	case err != nil && w.left == cli.RemainsRun, errors.Is(err, ErrDiskFailed), errors.Is(err, ErrDiskFull) && o.life.Err() != nil:
		log.Error("go on with turn; it is tried again after the next start", "err", err)
		return
	case err != nil:
		log.Error("start turn", "err", err)
		o.fail(keep, t, w.left, err)
		return
	case !started:
		return
	}
	o.begun(t, req)
	card := o.card(keep, t, w.left)
	result := o.ask(ctx, keep, t, req, card, w.left)
	if result.Detached {
		log.Info("turn goes on without ductor", "agent", t.Agent)
		o.leave(keep, card)
		return
	}
	outcome := o.outcome(ctx, t, result)
	if outcome.State == TurnAborted && !t.apart() { // its process is gone
		o.warm(keep, t.Prompt.Conversation)
	}
	o.conclude(keep, t, outcome, card, log)
}

// start settles what a turn needs and records that it runs. It waits while the disk is full. started is false for a
// turn that does not wait any more.
func (o *Orchestrator) start(ctx, keep context.Context, t *Turn, left cli.Remains) (req cli.Request, started bool, err error) {
	for {
		req, err = o.prepare(keep, t, left)
		started = err == nil
		if started && left == "" {
			started, err = o.opts.Store.StartTurn(keep, *t)
		}
		if !errors.Is(err, ErrDiskFull) || !o.awaitDisk(ctx) {
			return req, started, err
		}
	}
}

// openCard opens the card of a turn, or the one it has.
func (o *Orchestrator) openCard(ctx context.Context, t Turn, left cli.Remains) Card {
	if left == "" {
		return o.opts.Chat.Card(t)
	}
	card := o.opts.Chat.Reopen(ctx, t)
	if left == cli.RemainsNothing {
		card.Show(cli.CaughtUp{}) // nothing had been said
	}
	return card
}

// leave ends a card whose turn goes on without ductor.
func (o *Orchestrator) leave(ctx context.Context, card Card) {
	ctx, cancel := context.WithTimeout(ctx, lastDelivery)
	defer cancel()
	card.Leave(ctx)
}

// conclude records an outcome and shows it.
func (o *Orchestrator) conclude(ctx context.Context, t Turn, outcome Outcome, card Card, log *slog.Logger) {
	stored, err := o.record(ctx, log, o.ending(t.ID, outcome))
	if err != nil {
		log.Error("record how a turn ended", "err", err)
	}
	log.Info("turn ended", "state", outcome.State, "agent", outcome.Agent, "model", outcome.Model,
		"took", outcome.Duration, "cost_usd", outcome.CostUSD)
	t.Outcome = outcome
	o.deliver(ctx, t, stored, func(ctx context.Context) error { return card.Finish(ctx, outcome) })
}

// prepare settles session, agent and model of t and makes the request. A turn that was running keeps what it
// has.
func (o *Orchestrator) prepare(ctx context.Context, t *Turn, left cli.Remains) (cli.Request, error) {
	conv, err := o.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return cli.Request{}, fmt.Errorf("load conversation: %w", err)
	}
	conv = conv.wanting(t.Wants)
	if left != "" {
		return o.prepareLeft(ctx, conv, *t, left)
	}
	session, err := o.sessionFor(ctx, conv, *t)
	if err != nil {
		return cli.Request{}, err
	}
	t.Session = session.ID
	if err := o.checkDir(session.Dir); err != nil {
		return cli.Request{}, err
	}
	if t.Sandbox, err = o.sandboxOf(conv.ID, session.Dir, t.Wants.Sandbox); err != nil {
		return cli.Request{}, err
	}
	who, err := o.choice(ctx, conv, t.Sandbox)
	if err != nil {
		return cli.Request{}, err
	}
	if t.Prompt.Rights.ofChat() && o.bypassed(conv) {
		t.Bypass = conv.BypassUntil
	}
	t.Agent, t.Model, t.Started, t.State = who.agent, who.model, o.now(), TurnRunning
	return o.request(ctx, conv, session, *t, who)
}

// prepareLeft is prepare for a turn that the previous process was running. What a run has goes on where it is; what
// never reached an agent runs where it would run today, or not at all.
func (o *Orchestrator) prepareLeft(ctx context.Context, conv Conversation, t Turn, left cli.Remains) (cli.Request, error) {
	session, err := o.opts.Store.Session(ctx, t.Session)
	if err != nil {
		return cli.Request{}, fmt.Errorf("load session: %w", err)
	}
	if left == cli.RemainsNothing {
		if err := o.checkDir(session.Dir); err != nil {
			return cli.Request{}, err
		}
		in, err := o.sandboxOf(conv.ID, session.Dir, t.Wants.Sandbox)
		if err == nil && in != t.Sandbox { // where it would be recorded as running is where the next process looks for it
			err = errMoved
		}
		if err != nil {
			return cli.Request{}, err
		}
	}
	req, err := o.request(ctx, conv, session, t, choice{agent: t.Agent, model: t.Model, effort: conv.Effort})
	req.Began = t.Started
	if !t.Bypass.IsZero() { // until it is told otherwise
		req.Permission = cli.Bypass
	}
	return req, err
}

// ask runs or resumes the turn, and returns its result.
func (o *Orchestrator) ask(ctx, keep context.Context, t Turn, req cli.Request, card Card, left cli.Remains) cli.Result {
	agentSessions := &agentSessionKeeper{store: o.opts.Store, session: t.Session, env: t.agentEnv(), known: req.Resume}
	hide := o.newHider(req.Dir)
	approvals := o.newApprovals(ctx, keep, t, req, left, card, hide)
	show := func(ev cli.Event) {
		switch ev := ev.(type) {
		case cli.SessionStarted:
			agentSessions.keep(keep, ev.AgentSessionID)
		case cli.CaughtUp:
			if left == cli.RemainsRun {
				o.resumed(keep, t)
			}
		case cli.Result:
			return // the outcome says it, once it is stored
		}
		hide.pass(ev, card.Show)
		approvals.take(ev) // the card hears of an answer after the question
	}
	run := o.opts.Gateway.Run
	if left == cli.RemainsRun {
		run = o.opts.Gateway.Resume
	} else if req.Project == cli.WithoutProject {
		o.askForProject(ctx, approvals, t, &req, show)
	}
	result := run(ctx, t.Agent, req, show)
	if result.Err != nil && result.Err.Kind == cli.ResumeFailed && req.Resume != "" && ctx.Err() == nil {
		// The agent refused before it read the prompt, so asking again asks once.
		card.Show(cli.Status{Kind: cli.StatusWarning, Detail: "the agent lost this session; it goes on in a new one with the history"})
		result = o.askFresh(ctx, keep, t, req, show)
	}
	approvals.drain()
	if !result.Detached {
		o.withdrawTurn(keep, t.ID)
	}
	approvals.leave()
	if err := agentSessions.wait(); err != nil {
		o.log.Error("keep the agent's session id", "turn", t.ID, "err", err)
	}
	return hide.result(result)
}

func (o *Orchestrator) askFresh(ctx, keep context.Context, t Turn, req cli.Request, show func(cli.Event)) cli.Result {
	if err := o.opts.Store.SetAgentSession(keep, t.Session, t.agentEnv(), ""); err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	session, err := o.opts.Store.Session(keep, t.Session)
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	missed, err := o.missed(keep, session, t.agentEnv())
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	req.Prompt, _ = wording(t.Prompt)
	req.Resume, req.Prompt = "", missed+req.Prompt
	return o.opts.Gateway.Run(ctx, t.Agent, req, show)
}

// agentSessionKeeper stores the agent's own session id beside the stream, so that the first words do not wait for the disk.
type agentSessionKeeper struct {
	store   Store
	session SessionID
	env     AgentEnv

	wg    sync.WaitGroup
	known cli.AgentSessionID
	mu    sync.Mutex
	err   error
}

func (k *agentSessionKeeper) keep(ctx context.Context, id cli.AgentSessionID) {
	if id == "" || id == k.known {
		return
	}
	k.known = id
	// One writer at a time: a second id of the same turn must win over the first.
	k.wg.Wait()
	k.wg.Go(func() {
		err := k.store.SetAgentSession(ctx, k.session, k.env, id)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err = errors.Join(k.err, err)
	})
}

func (k *agentSessionKeeper) wait() error {
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// request says what the agent is asked. An agent that has no session of its own here is told the history.
func (o *Orchestrator) request(ctx context.Context, conv Conversation, s Session, t Turn, who choice) (cli.Request, error) {
	role := o.opts.Roles[o.roleOf(conv)]
	req := cli.Request{
		Turn: t.ID, Conversation: conv.ID.Key(), ChatID: conv.ID.Chat,
		Model: who.model, Effort: who.effort, ExtraArgs: o.opts.Agents[t.Agent].Args,
		Sandbox: t.Sandbox, Session: string(s.ID), Files: filesOf(t.Prompt),
		Dir: s.Dir, AddDirs: o.addDirs(conv.ID),
		Resume: s.AgentSessions[t.agentEnv()], Timeout: t.Wants.Timeout,
	}
	o.grant(&req, conv, t.Prompt.Rights)
	var err error
	if req.Project, err = o.projectAllowed(ctx, conv.ID, t, s.Dir); err != nil {
		return cli.Request{}, err
	}
	if role.Replace {
		req.SystemPrompt = role.Prompt
	} else {
		req.AppendPrompt = role.Prompt
	}
	req.Prompt, req.Images = wording(t.Prompt)
	missed, err := o.missed(ctx, s, t.agentEnv())
	if err != nil {
		return cli.Request{}, err
	}
	req.Prompt = missed + req.Prompt
	return req, nil
}

// filesOf are the files that a prompt names.
func filesOf(p Prompt) []string {
	var files []string
	for _, a := range p.Attachments {
		files = append(files, a.Path)
	}
	return files
}

// wording is the prompt as the agent reads it: pictures go along, other files are named.
func wording(p Prompt) (string, []cli.Image) {
	text := p.Text
	var images []cli.Image
	for _, a := range p.Attachments {
		if a.Image {
			images = append(images, cli.Image{Path: a.Path, MIME: a.MIME})
		}
		text += fmt.Sprintf("\n[Attached file %q (%s): %s]", a.Name, a.MIME, a.Path)
	}
	return text, images
}

// outcome says how the turn ended for the person who asked.
func (o *Orchestrator) outcome(ctx context.Context, t Turn, r cli.Result) Outcome {
	out := Outcome{
		State: TurnDone, Text: r.Text, Agent: t.Agent, Model: r.Model, Usage: r.Usage, CostUSD: r.CostUSD,
		Duration: max(o.now().Sub(t.Queued), 0), Denials: r.Denials, Fallback: r.Fallback,
	}
	switch {
	case errors.Is(context.Cause(ctx), ErrShutdown):
		out.State, out.Failure, out.Offer = TurnInterrupted, interruptedSentence, cli.ActionRetry
	case r.Err != nil && errors.Is(context.Cause(ctx), errBypassOver):
		out.State, out.Failure, out.Offer = TurnFailed, bypassOverSentence, cli.ActionRetry
	case r.Aborted:
		out.State = TurnAborted
	case r.Err != nil:
		out.State, out.Failure, out.Offer = TurnFailed, r.Err.Sentence(), r.Err.Action()
		o.log.Warn("turn failed", "turn", t.ID, "kind", r.Err.Kind, "reason", r.Err.Reason, "code", r.Err.Code,
			"detail", r.Err.Detail)
	}
	return out
}

const interruptedSentence = "Interrupted: ductor was stopped while this ran. What it did until then stands."

// fail ends a turn that could not even be started.
func (o *Orchestrator) fail(ctx context.Context, t Turn, left cli.Remains, err error) {
	f := cli.AsFailure(t.Agent, err)
	t.Outcome = Outcome{State: TurnFailed, Agent: t.Agent, Failure: f.Sentence(), Offer: f.Action()}
	t.State = TurnFailed
	finish := o.ending(t.ID, t.Outcome)
	stored, err := o.record(ctx, o.log.With("turn", t.ID), func(ctx context.Context) error {
		if left == "" {
			if _, err := o.opts.Store.StartTurn(ctx, t); err != nil {
				return fmt.Errorf("start turn: %w", err)
			}
		}
		return finish(ctx)
	})
	if err != nil {
		o.log.Error("record a turn that could not start", "turn", t.ID, "err", err)
	}
	card := o.card(ctx, t, left)
	o.deliver(ctx, t, stored, func(ctx context.Context) error { return card.Finish(ctx, t.Outcome) })
}
