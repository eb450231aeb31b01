package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// preparation is the request of the first attempt of a turn, with what the card shows before it.
type preparation struct {
	req       cli.Request
	instead   *cli.Failure       // of the configured agent, in whose place another runs the turn; nil for none
	endedMode cli.PermissionMode // a mode that the user chose for another environment and that ended with this turn; "" for none
}

// prepare chooses session, agent and model of the turn and makes the request. A turn that the previous process was running keeps its own.
func (r *runningTurn) prepare() (preparation, error) {
	e, t := r.e, &r.turn
	conv, err := e.opts.Store.Conversation(r.keep, t.Prompt.Conversation)
	if err != nil {
		return preparation{}, fmt.Errorf("load conversation: %w", err)
	}
	conv = wanting(conv, t.Wants)
	if r.waiting.left != "" {
		return r.prepareLeft(conv)
	}
	if err := e.afterOther(r.keep, *t); err != nil {
		return preparation{}, err
	}
	budget, err := e.withinBudget(r.keep, *t)
	if err != nil {
		return preparation{}, err
	}
	if r.session, err = e.sessionFor(r.keep, r.c, conv, *t); err != nil {
		return preparation{}, err
	}
	t.Session = r.session.ID
	if err := e.checkDir(r.session.Dir); err != nil {
		return preparation{}, err
	}
	if t.Sandbox, err = e.sandboxOf(conv.ID, r.session.Dir, t.Wants.Sandbox); err != nil {
		return preparation{}, err
	}
	who, err := e.choice(r.keep, conv, t.Sandbox)
	if err != nil {
		return preparation{}, err
	}
	if conv.Agent == "" { // a user's own choice is asked, whatever is known of it
		who = r.around(who)
	}
	ended := e.endElsewhere(r.keep, &conv, *t)
	if t.Prompt.Rights.Of == orchestrator.RightsOfChat && e.bypassed(conv, t.Sandbox) {
		t.Bypass = conv.BypassUntil
	}
	t.Agent, t.Model, t.Started, t.State = who.agent, who.model, e.now(), orchestrator.TurnRunning
	req, err := r.request(conv, who, budget)
	return preparation{req: req, instead: who.instead, endedMode: ended}, err
}

// request makes the request of an attempt, the first and all others alike. budget limits its cost; 0 for no limit.
func (r *runningTurn) request(conv orchestrator.Conversation, who choice, budget float64) (cli.Request, error) {
	req, err := r.e.request(r.keep, conv, r.session, r.turn, who)
	req.Budget = budget
	if !r.turn.Bypass.IsZero() { // until it is told otherwise
		req.Permission = cli.Bypass
	}
	return req, err
}

// prepareLeft prepares a turn that the previous process was running.
func (r *runningTurn) prepareLeft(conv orchestrator.Conversation) (p preparation, err error) {
	if r.session, err = r.e.opts.Store.Session(r.keep, r.turn.Session); err != nil {
		return preparation{}, fmt.Errorf("load session: %w", err)
	}
	p.req, err = r.request(conv, choice{agent: r.turn.Agent, model: r.turn.Model, effort: conv.Effort}, 0)
	p.req.Began = r.turn.Started
	return p, err
}

// prepareAgain makes the request of another attempt, by who.
func (r *runningTurn) prepareAgain(who choice) (cli.Request, error) {
	conv, err := r.e.opts.Store.Conversation(r.keep, r.turn.Prompt.Conversation)
	if err != nil {
		return cli.Request{}, err
	}
	if r.session, err = r.e.opts.Store.Session(r.keep, r.turn.Session); err != nil {
		return cli.Request{}, err
	}
	budget, err := r.e.withinBudget(r.keep, r.turn)
	if err != nil {
		return cli.Request{}, err
	}
	r.turn.Agent, r.turn.Model = who.agent, who.model
	return r.request(wanting(conv, r.turn.Wants), who, budget)
}

// request says what the agent is asked, without what it missed.
func (e *Engine) request(ctx context.Context, conv orchestrator.Conversation, s orchestrator.Session, t orchestrator.Turn, who choice) (cli.Request, error) {
	role, _ := e.role(e.roleOf(conv))
	req := cli.Request{
		Turn: t.ID, Conversation: conv.ID.Key(), ChatID: conv.ID.Chat, Lang: e.opts.Lang.In(conv.ID.Chat),
		Model: who.model, Effort: who.effort, ExtraArgs: e.turns().Agents[t.Agent].Args,
		Sandbox: t.Sandbox, Session: string(s.ID), Files: filesOf(t.Prompt),
		Dir: s.Dir, AddDirs: e.addDirs(conv.ID),
		Resume: s.AgentSessions[t.AgentEnv()].ID, Timeout: t.Wants.Timeout, Task: t.Wants.Task,
	}
	e.grant(&req, conv, t.Prompt.Rights)
	if e.opts.Servers != nil {
		req.Servers = e.opts.Servers(conv.ID, t.AgentEnv())
	}
	var err error
	if req.Project, err = e.approvals.Project(ctx, conv.ID, t, s.Dir); err != nil {
		return cli.Request{}, err
	}
	if role.Replace {
		req.SystemPrompt = role.Prompt
	} else {
		req.AppendPrompt = role.Prompt
	}
	req.AppendPrompt = strings.TrimSpace(req.AppendPrompt + "\n\n" + e.opts.Instruction)
	req.Prompt, req.Images = wording(t.Prompt)
	return req, nil
}

// filesOf are the files that a prompt names.
func filesOf(p orchestrator.Prompt) []string {
	var files []string
	for _, a := range p.Attachments {
		files = append(files, a.Path)
	}
	return files
}

// wording is the prompt as the agent reads it: pictures go along, other files are named.
func wording(p orchestrator.Prompt) (string, []cli.Image) {
	text := p.Text
	var images []cli.Image
	for _, a := range p.Attachments {
		if a.Image {
			images = append(images, cli.Image{Path: a.Path, MIME: a.MIME})
		}
		text += handoff.Attached(a)
	}
	return text, images
}

// handOff puts before the prompt the history of the session that the agent missed. If the history does not fit, the configured model
// summarizes it; without one, or if that fails, ductor shortens it.
func (a *attempt) handOff() error {
	e, t, p := a.e, a.turn, a.printer()
	turns, err := e.missed(a.keep, a.c.last, a.session, t)
	if err != nil {
		return err
	}
	own := a.session.AgentSessions[t.AgentEnv()]
	if own.Told == "" && !own.Terminal {
		a.addContext()
	}
	if own.Told == "" {
		a.warnOfTerminals()
	}
	told := handoff.Write(turns, "", e.turns().HandoffTokens)
	if s := e.summarizer(t); s != nil && told.LeftOut > 0 && told.Turns > 0 &&
		(e.opts.Summarizer.Model.Agent != "" || t.Wants.Summarize || s.Has(a.keep, a.session.ID)) {
		waits := cli.Status{Kind: cli.StatusWaiting, Detail: p.Text("turn.summarizing", len(turns))}
		told = a.summarize(s, turns, told, waits)
	}
	a.req.Prompt = told.Text + a.req.Prompt
	a.known.Hand(cli.HandedOver{
		To: t.Agent, Model: t.Model, Turns: told.Turns, Tokens: told.Tokens, LeftOut: told.Whole(), Shortened: told.Shortened,
	})
	return nil
}

// summarize has a model summarize history, and shows meanwhile that the turn waits for it. It returns otherwise if that fails.
func (a *attempt) summarize(s *handoff.Summarizer, turns []orchestrator.Turn, otherwise handoff.Told, waits cli.Status) handoff.Told {
	a.event(waits)
	summarized, err := s.Write(a.ctx, a.req, a.session.ID, turns, a.e.turns().HandoffTokens)
	a.event(cli.Status{Kind: cli.StatusIdle})
	if err != nil {
		a.log().Warn("history is shortened instead of summarized", "session", a.session.ID, "err", err)
		return otherwise
	}
	return summarized
}

// warnOfTerminals names the agents that know what was said in a terminal, to a user whose next agent does not.
func (a *attempt) warnOfTerminals() {
	who := a.turn.AgentEnv()
	for of, has := range a.session.AgentSessions {
		if has.Terminal && of != who {
			text := a.printer().Text("turn.terminal-untold", of.Agent.Name(), who.Agent.Name())
			a.event(cli.Status{Kind: cli.StatusWarning, Detail: text})
		}
	}
}

// addContext puts before the first prompt of an agent in a session the files that its project names.
func (a *attempt) addContext() {
	project := a.e.projectOf(a.req.Dir)
	text, left := handoff.Context(project.Dir, project.Context)
	for _, l := range left {
		text := a.printer().Text("turn.context-left-out", l.File, l.Err.Error())
		a.event(cli.Status{Kind: cli.StatusWarning, Detail: text})
	}
	a.req.Prompt = text + a.req.Prompt
}

// mostMissed limits the turns that are read for an agent that joins a session. A budget of tokens rarely has room for more.
const mostMissed = 1000

// missed lists the turns of a session that the agent of t does not know, for its next prompt. Those that t repeats have the same
// prompt, so only what they answered is among them.
func (e *Engine) missed(ctx context.Context, last lastTurn, s orchestrator.Session, t orchestrator.Turn) ([]orchestrator.Turn, error) {
	who := t.AgentEnv()
	told := s.AgentSessions[who].Told
	if s.Messages == 0 || told == t.ID { // which an attempt before was told
		return nil, nil
	}
	if told != "" && last == (lastTurn{s.ID, s.Messages, told}) {
		return nil, nil
	}
	if told != "" {
		newest, err := e.opts.Store.History(ctx, s.ID, 1)
		if err != nil {
			return nil, fmt.Errorf("load last turn: %w", err)
		}
		if len(newest) == 0 || newest[0].ID == told {
			return nil, nil
		}
	}
	turns, err := e.opts.Store.History(ctx, s.ID, mostMissed)
	if err != nil {
		return nil, fmt.Errorf("load history: %w", err)
	}
	turns = turns[slices.IndexFunc(turns, func(h orchestrator.Turn) bool { return h.ID == told })+1:]
	if told != "" { // else a session that was forgotten had them
		turns = slices.DeleteFunc(turns, func(h orchestrator.Turn) bool { return h.AgentEnv() == who && asked(h) })
	}
	return withoutRepeats(slices.DeleteFunc(turns, isCompaction), t.Again), nil
}

// hasAnswered reports whether the agent of a turn has said anything in a session, or knows it from a terminal: what it does not know any
// more is lost then.
func (e *Engine) hasAnswered(ctx context.Context, s orchestrator.Session, t orchestrator.Turn) bool {
	turns, err := e.opts.Store.History(ctx, s.ID, mostMissed)
	if err != nil {
		e.log.Warn("look up whether an agent has answered", "session", s.ID, "err", err)
	}
	return s.AgentSessions[t.AgentEnv()].Terminal || slices.ContainsFunc(turns, func(h orchestrator.Turn) bool {
		return h.AgentEnv() == t.AgentEnv() && h.Outcome.Text != ""
	})
}

// asked reports whether the agent of a turn that ended knows it, although no prompt with its history was accepted: a command of its own,
// or a message that was added to a turn.
func asked(t orchestrator.Turn) bool {
	return t.Wants.Task != cli.TaskPrompt || t.State == orchestrator.TurnSteered
}

// withoutRepeats takes out of turns, which are in order, those to which again leads back: their prompt is about to be asked once more.
// What they answered before they failed stays.
func withoutRepeats(turns []orchestrator.Turn, again cli.TurnID) []orchestrator.Turn {
	for i := len(turns) - 1; i >= 0 && again != ""; i-- {
		if turns[i].ID != again {
			continue
		}
		again = turns[i].Again
		turns[i].Prompt.Text, turns[i].Prompt.Attachments = handoff.Repeated, nil
		if turns[i].Outcome.Text == "" {
			turns = slices.Delete(turns, i, i+1)
		}
	}
	return turns
}
