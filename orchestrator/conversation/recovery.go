package conversation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// witness is a card that knows whether anything ran in its turn.
type witness struct {
	orchestrator.Card

	mu     sync.Mutex
	ran    bool                          // text, a tool or a request was shown
	tools  map[cli.ToolID]bool           // that began; false for one that has not run, such as one that waits for its user
	asks   map[cli.ApprovalID]cli.ToolID // that no user has allowed
	failed []cli.Agent                   // in whose place another runs the turn
}

func newWitness(card orchestrator.Card) *witness {
	return &witness{Card: card, tools: map[cli.ToolID]bool{}, asks: map[cli.ApprovalID]cli.ToolID{}}
}

// Show implements orchestrator.Card.
func (w *witness) Show(ev cli.Event) {
	w.mu.Lock()
	switch ev := ev.(type) {
	case cli.TextDelta:
		w.ran = w.ran || ev.Text != ""
	case cli.ToolStarted:
		w.ran = true
		w.tools[ev.ID] = !slices.Contains(slices.Collect(maps.Values(w.asks)), ev.ID)
	case cli.ToolEnded:
		w.toolRan(ev.ID, ev.Err == "" || ev.ExitCode != nil)
	case cli.ApprovalAsked:
		w.ran = true
		w.asks[ev.ID] = ev.Started
		if _, began := w.tools[ev.Started]; began {
			w.tools[ev.Started] = false
		}
	case cli.ApprovalWithdrawn:
		w.toolRan(w.asks[ev.ID], ev.Allowed)
		if ev.Allowed {
			delete(w.asks, ev.ID)
		}
	case cli.FileChanged, cli.QuestionAsked:
		w.ran = true
	case cli.Substituted:
		w.failed = append(w.failed, ev.Why.Agent)
	}
	w.mu.Unlock()
	w.Card.Show(ev)
}

// toolRan notes that a tool that began ran, if it did.
func (w *witness) toolRan(id cli.ToolID, ran bool) {
	if was, began := w.tools[id]; began {
		w.tools[id] = was || ran
	}
}

// seen reports whether anything was shown of the turn, and returns how many tools ran in it.
func (w *witness) seen() (ran bool, tools int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ran := range w.tools {
		if ran {
			tools++
		}
	}
	return w.ran, tools
}

// attempts counts what followed failures of a turn without asking.
type attempts struct {
	repeated    bool // it ran once more
	substituted bool // by another agent
	retries     int  // after pauses
}

// attempt runs the turn, and runs it once more as long as that follows from its failure without asking: nothing of it ran.
func (e *Engine) attempt(ctx, keep context.Context, c *conversation, t *orchestrator.Turn, a asking, card *witness, left cli.Remains) (result cli.Result, begun bool) {
	var so attempts
	for {
		started := left == cli.RemainsRun
		begun = begun || started
		result, started = e.askOnce(ctx, keep, c, *t, a, card, left)
		begun = begun || started
		who, ok := e.follows(ctx, c, *t, &result, card, &so)
		if !ok {
			break
		}
		next, err := e.prepareAgain(keep, t, who)
		if err != nil {
			e.log.Error("run a turn once more", "turn", t.ID, "err", err)
			break
		}
		next.steps, next.files, next.handed = a.steps, a.files, a.handed
		a, left = next, ""
	}
	result.Fallback = result.Fallback || so.repeated
	if !result.Aborted && !result.Detached && e.life.Err() == nil {
		e.opts.Breakers.Ended(t.Sandbox, t.Agent, result.Err)
	}
	return result, begun
}

// prepareAgain is prepare for a turn that runs once more, by who.
func (e *Engine) prepareAgain(ctx context.Context, t *orchestrator.Turn, who choice) (asking, error) {
	conv, err := e.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return asking{}, err
	}
	session, err := e.opts.Store.Session(ctx, t.Session)
	if err != nil {
		return asking{}, err
	}
	budget, err := e.withinBudget(ctx, *t)
	if err != nil {
		return asking{}, err
	}
	t.Agent, t.Model = who.agent, who.model
	return e.attemptOf(ctx, wanting(conv, t.Wants), session, *t, who, budget)
}

// follows says who runs a turn once more without being asked for, if that follows from its failure; it waits for the moment.
func (e *Engine) follows(ctx context.Context, c *conversation, t orchestrator.Turn, result *cli.Result, card *witness, so *attempts) (who choice, ok bool) {
	f := result.Err
	ran, _ := card.seen()
	if f == nil || ran || result.Text != "" || ctx.Err() != nil || result.Aborted || result.Detached {
		return choice{}, false
	}
	same := choice{agent: t.Agent, model: t.Model}
	if conv, err := e.opts.Store.Conversation(context.WithoutCancel(ctx), t.Prompt.Conversation); err == nil {
		same.effort = wanting(conv, t.Wants).Effort
	}
	switch e.automatic(f.Kind) {
	case orchestrator.AutomaticOnce:
		if so.repeated || result.Fallback || errors.Is(f, cli.ErrStale) || !e.opts.Breakers.MayRepeat(t.Sandbox, t.Agent) {
			return choice{}, false
		}
		so.repeated = true
		return same, true
	case orchestrator.AutomaticRetries:
		if so.retries >= e.turns().Retries || !e.opts.Breakers.MayRepeat(t.Sandbox, t.Agent) {
			return choice{}, false
		}
		so.retries++
		return same, e.pause(ctx, c, t, result, card, so.retries)
	case orchestrator.AutomaticSubstitute:
		other, ok := e.substitute(ctx, t, t.Agent, card)
		if so.substituted || !ok {
			return choice{}, false
		}
		so.substituted = true
		e.opts.Breakers.Ended(t.Sandbox, t.Agent, f)
		card.Show(cli.Substituted{By: other.agent, Why: f})
		return other, true
	}
	return choice{}, false
}

// around gives the configured substitute of an agent that is left alone for a while, if a turn may go to it: the turn
// did not name that agent. One that only reached its limit is left alone where the configuration hands limits over.
func (e *Engine) around(ctx context.Context, t orchestrator.Turn, who choice) choice {
	resting := e.opts.Breakers.Open(t.Sandbox, who.agent)
	limited := resting != nil && resting.Kind == cli.LimitReached
	if resting == nil || limited && e.turns().Limits != orchestrator.LimitHandOff || t.Again != "" {
		return who
	}
	other, ok := e.substitute(ctx, t, who.agent, nil)
	if !ok {
		return who
	}
	other.instead = resting
	return other
}

// substitute returns the configured agent that may run a turn in place of another without being asked for.
func (e *Engine) substitute(ctx context.Context, t orchestrator.Turn, of cli.Agent, card *witness) (choice, bool) {
	other, configured := e.opts.Gateway.Substitute(ctx, t.Sandbox, e.exhausted(ctx, t, of, card))
	if other == "" || !configured || t.Wants.Agent != "" || !t.Prompt.Rights.OfChat() {
		return choice{}, false
	}
	own := e.turns().Agents[other]
	return choice{agent: other, model: own.Model, effort: own.Effort}, true
}

// exhausted lists the agents that a turn is not handed to: the one that failed it just now, those that failed it before or whose turns it
// repeats, and those that are left alone for a while.
func (e *Engine) exhausted(ctx context.Context, t orchestrator.Turn, agent cli.Agent, card *witness) []cli.Agent {
	all := []cli.Agent{agent}
	if card != nil {
		card.mu.Lock()
		all = append(all, card.failed...)
		card.mu.Unlock()
	}
	for _, f := range e.opts.Breakers.All(t.Sandbox) {
		all = append(all, f.Agent)
	}
	for id := t.Again; id != ""; {
		before, err := e.opts.Store.Turn(ctx, id)
		if err != nil || before.State != orchestrator.TurnFailed {
			break
		}
		all, id = append(all, before.Agent), before.Again
	}
	return all
}

// automatic says what follows a kind of failure without asking, as it is configured.
func (e *Engine) automatic(kind cli.FailureKind) orchestrator.Automatic {
	what := orchestrator.RemedyOf(kind).Automatic
	if what != orchestrator.AutomaticConfigured {
		return what
	}
	if e.turns().Limits == orchestrator.LimitHandOff {
		return orchestrator.AutomaticSubstitute
	}
	return orchestrator.AutomaticNothing
}

// pauseStep is how often a card says how long a pause still lasts.
const pauseStep = 5 * time.Second

// pause waits before a retry, and shows for how long. False if the turn ends instead: it was aborted, which result then says,
// or a user wants no more retries.
func (e *Engine) pause(ctx context.Context, c *conversation, t orchestrator.Turn, result *cli.Result, card *witness, retry int) bool {
	p := e.opts.Lang.Of(c.id.Chat)
	wanted := c.running.Load().retries
	end := e.now().Add(e.turns().RetryAfter << (retry - 1))
	for left := end.Sub(e.now()); left > 0; left = end.Sub(e.now()) {
		span := p.Span(left.Round(time.Second))
		why := p.Text("turn.retry-in", span, retry, e.turns().Retries)
		if result.Err.Kind == cli.APIFailed {
			why = p.Text("turn.retry-failed", span, retry, e.turns().Retries)
		}
		card.Show(cli.Status{Kind: cli.StatusPaused, Detail: why})
		step := time.NewTimer(min(left, pauseStep))
		select {
		case <-step.C:
		case <-wanted.Done():
			step.Stop()
			if cause := context.Cause(ctx); errors.Is(cause, cli.ErrAborted) {
				*result = cli.Cut(ctx, t.Agent)
			}
			return false
		}
	}
	card.Show(cli.Status{Kind: cli.StatusIdle})
	return ctx.Err() == nil
}

// failed is the outcome of a turn with a failure, and what a user can do about it.
func (e *Engine) failed(ctx context.Context, t orchestrator.Turn, f *cli.Failure, card *witness) orchestrator.Outcome {
	p := e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	out := orchestrator.Outcome{State: orchestrator.TurnFailed, Agent: t.Agent, Failure: f.Sentence(p), Recovery: e.recovery(ctx, t, f, card)}
	if f.Kind == cli.BadOutput {
		out.Recovery.Raw = f.Detail
	}
	if f.Kind == cli.Refused && out.Recovery.Offers(orchestrator.ActionFresh) {
		out.Failure += " " + p.Text("turn.refused-again")
	}
	ran := false
	if card != nil {
		var tools int
		ran, tools = card.seen()
		if ran && f.Kind == cli.TimedOut {
			out.Failure += " " + p.Text("turn.kept")
		}
		if tools > 0 {
			out.Failure += " " + p.Text("turn.ran", tools)
		}
	}
	if f.Kind != cli.LimitReached || e.turns().Limits != orchestrator.LimitWait || ran || !out.Recovery.Offers(orchestrator.ActionLater) || !t.Prompt.Rights.OfChat() {
		return out
	}
	if _, err := e.later(ctx, t, out.Recovery.At, ""); err != nil {
		e.log.Error("have a turn run when the limit of its agent ends", "turn", t.ID, "err", err)
		return out
	}
	out.Failure += " " + p.Text("turn.runs-at", p.Clock(out.Recovery.At.Local(), e.now()))
	out.Recovery.Offer = []orchestrator.Action{orchestrator.ActionDrop}
	return out
}

// recovery is what a user can do about a failure of a turn: of what its kind has, what can be done of this turn.
func (e *Engine) recovery(ctx context.Context, t orchestrator.Turn, f *cli.Failure, card *witness) orchestrator.Recovery {
	r := orchestrator.Recovery{Kind: f.Kind}
	later := e.opts.Jobs != nil && f.ResetAt.After(e.now()) && !orchestrator.IsJobTurn(t.ID)
	offer := orchestrator.RemedyOf(f.Kind).Offer
	if f.Kind == cli.Refused && e.refusedBefore(ctx, t) {
		offer = []orchestrator.Action{orchestrator.ActionFresh}
	}
	for _, a := range offer {
		switch a {
		case orchestrator.ActionLater:
			if !later {
				continue
			}
			r.At = f.ResetAt
		case orchestrator.ActionLogIn:
			if e.opts.Owner == 0 || !e.opts.Gateway.CanLogIn(t.Sandbox, f.Agent) {
				continue
			}
			r.Who = f.Agent
		case orchestrator.ActionDrop:
			if !later {
				continue
			}
		case orchestrator.ActionAgain:
			if later { // it would fail
				continue
			}
		case orchestrator.ActionHandOff:
			if r.Other, _ = e.opts.Gateway.Substitute(ctx, t.Sandbox, e.exhausted(ctx, t, f.Agent, card)); r.Other == "" {
				continue
			}
		}
		r.Offer = append(r.Offer, a)
	}
	return r
}

// refusedBefore reports whether the turn before t in its session was refused too, by the same agent: something in the session, such as a
// picture that the model's API cannot read, may have every prompt refused.
func (e *Engine) refusedBefore(ctx context.Context, t orchestrator.Turn) bool {
	if t.Session == "" {
		return false
	}
	last, err := e.opts.Store.History(ctx, t.Session, 1)
	if err != nil {
		e.log.Warn("look up whether the turn before was refused", "turn", t.ID, "err", err)
	}
	return len(last) > 0 && last[0].AgentEnv() == t.AgentEnv() && last[0].Outcome.Recovery.Kind == cli.Refused
}

// loginWait is how long a code that logs an agent in is waited for; the agents' own codes expire then too.
const loginWait = 15 * time.Minute

// logIn logs the agent of a turn in. The owner gets the code in the private chat, and how that ended.
func (e *Engine) logIn(ctx context.Context, t orchestrator.Turn) error {
	agent, in, p := t.Outcome.Recovery.Who, t.Sandbox, e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	if agent == "" || e.opts.Owner == 0 || !e.opts.Gateway.CanLogIn(in, agent) {
		return orchestrator.ErrBadChoice
	}
	if _, runs := e.logins.LoadOrStore(orchestrator.AgentEnv{Agent: agent, Sandbox: in}, true); runs {
		return nil
	}
	if !e.open() {
		return orchestrator.ErrShutdown
	}
	owner := orchestrator.ConversationID{Chat: int64(e.opts.Owner)}
	tell := func(text string) {
		if err := e.opts.Chat.Notice(context.WithoutCancel(ctx), owner, text); err != nil {
			e.log.Warn("tell the owner about a log-in", "agent", agent, "err", err)
		}
	}
	go func() {
		defer e.wg.Done()
		defer e.logins.Delete(orchestrator.AgentEnv{Agent: agent, Sandbox: in})
		ctx, cancel := context.WithTimeout(e.life, loginWait)
		defer cancel()
		err := e.opts.Gateway.LogIn(ctx, in, agent, func(d cli.DeviceCode) { tell(p.Text("turn.log-in", d.Agent.Name(), d.URL, d.Code)) })
		switch {
		case err == nil:
			tell(p.Text("turn.logged-in", agent.Name()))
		case e.life.Err() == nil:
			e.log.Warn("log an agent in", "agent", agent, "err", err)
			tell(p.Text("turn.not-logged-in", agent.Name(), cli.ShortLine(err.Error())))
		}
	}()
	return nil
}
