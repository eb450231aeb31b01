package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/steps"
)

// asking is what an agent is asked, and in which session.
type asking struct {
	req     cli.Request
	session orchestrator.Session
	instead *cli.Failure       // why the configured agent is not asked; nil if it is, or if the user chose
	ended   cli.PermissionMode // was chosen for another environment, and ended with this turn; empty for none
	steps   *steps.Recorder
	files   *fileWatch
	handed  *cli.HandedOver // that the chat does not show yet
}

// prepare settles session, agent and model of t and makes the request. A turn that was running keeps what it
// has.
func (e *Engine) prepare(ctx context.Context, c *conversation, t *orchestrator.Turn, left cli.Remains) (asking, error) {
	conv, err := e.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return asking{}, fmt.Errorf("load conversation: %w", err)
	}
	conv = wanting(conv, t.Wants)
	if left != "" {
		return e.prepareLeft(ctx, conv, *t)
	}
	if err := e.afterOther(ctx, *t); err != nil {
		return asking{}, err
	}
	budget, err := e.withinBudget(ctx, *t)
	if err != nil {
		return asking{}, err
	}
	session, err := e.sessionFor(ctx, c, conv, *t)
	if err != nil {
		return asking{}, err
	}
	t.Session = session.ID
	if err := e.checkDir(session.Dir); err != nil {
		return asking{}, err
	}
	if t.Sandbox, err = e.sandboxOf(conv.ID, session.Dir, t.Wants.Sandbox); err != nil {
		return asking{}, err
	}
	who, err := e.choice(ctx, conv, t.Sandbox)
	if err != nil {
		return asking{}, err
	}
	if conv.Agent == "" { // a user's own choice is asked, whatever is known of it
		who = e.around(ctx, *t, who)
	}
	ended := e.endElsewhere(ctx, &conv, *t)
	if t.Prompt.Rights.Of == orchestrator.RightsOfChat && e.bypassed(conv, t.Sandbox) {
		t.Bypass = conv.BypassUntil
	}
	t.Agent, t.Model, t.Started, t.State = who.agent, who.model, e.now(), orchestrator.TurnRunning
	a, err := e.attemptOf(ctx, conv, session, *t, who, budget)
	a.ended = ended
	return a, err
}

// attemptOf makes what the agent is asked in an attempt of a turn, the first and all others alike. budget is what it may cost; 0 for no
// limit.
func (e *Engine) attemptOf(ctx context.Context, conv orchestrator.Conversation, s orchestrator.Session, t orchestrator.Turn, who choice, budget float64) (asking, error) {
	req, err := e.request(ctx, conv, s, t, who)
	req.Budget = budget
	if !t.Bypass.IsZero() { // until it is told otherwise
		req.Permission = cli.Bypass
	}
	return asking{req: req, session: s, steps: &steps.Recorder{Now: e.now}, files: &fileWatch{snapshots: e.opts.Snapshots}, handed: &cli.HandedOver{}, instead: who.instead}, err
}

// prepareLeft is prepare for a turn that the previous process was running: it goes on where it is.
func (e *Engine) prepareLeft(ctx context.Context, conv orchestrator.Conversation, t orchestrator.Turn) (asking, error) {
	session, err := e.opts.Store.Session(ctx, t.Session)
	if err != nil {
		return asking{}, fmt.Errorf("load session: %w", err)
	}
	a, err := e.attemptOf(ctx, conv, session, t, choice{agent: t.Agent, model: t.Model, effort: conv.Effort}, 0)
	a.req.Began = t.Started
	return a, err
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

// handOff puts before a prompt what the agent missed of the session, and returns how much that is. What does not fit is summarized where
// a model is configured for that; it is shortened if that fails.
func (e *Engine) handOff(ctx, keep context.Context, c *conversation, s orchestrator.Session, t orchestrator.Turn, req *cli.Request, show func(cli.Event)) (handed cli.HandedOver, err error) {
	p := e.opts.Lang.Of(c.id.Chat)
	turns, err := e.missed(keep, c.last, s, t)
	if err != nil {
		return handed, err
	}
	own := s.AgentSessions[t.AgentEnv()]
	if own.Told == "" && !own.Terminal {
		e.addContext(p, req, show)
	}
	if own.Told == "" {
		e.warnOfTerminals(p, s, t.AgentEnv(), show)
	}
	told := handoff.Write(turns, "", e.turns().HandoffTokens)
	summarizer := e.summarizer(t)
	wanted := told.LeftOut > 0 && told.Turns > 0 && summarizer != nil && (e.opts.Summarizer.Model.Agent != "" || t.Wants.Summarize || summarizer.Has(keep, s.ID))
	if wanted {
		show(cli.Status{Kind: cli.StatusWaiting, Detail: p.Text("turn.summarizing", len(turns))})
		summarized, err := summarizer.Write(ctx, *req, s.ID, turns, e.turns().HandoffTokens)
		show(cli.Status{Kind: cli.StatusIdle})
		if err != nil {
			e.log.Warn("history is shortened instead of summarized", "session", s.ID, "turn", t.ID, "err", err)
		} else {
			told = summarized
		}
	}
	req.Prompt = told.Text + req.Prompt
	return cli.HandedOver{To: t.Agent, Model: t.Model, Turns: told.Turns, Tokens: told.Tokens, LeftOut: told.Whole(), Shortened: told.Shortened}, nil
}

// warnOfTerminals names the agents that know what was said in a terminal, to a user whose next agent does not.
func (e *Engine) warnOfTerminals(p lang.Printer, s orchestrator.Session, who orchestrator.AgentEnv, show func(cli.Event)) {
	for of, has := range s.AgentSessions {
		if has.Terminal && of != who {
			show(cli.Status{Kind: cli.StatusWarning, Detail: p.Text("turn.terminal-untold", of.Agent.Name(), who.Agent.Name())})
		}
	}
}

// addContext puts before the first prompt of an agent in a session the files that its project names.
func (e *Engine) addContext(p lang.Printer, req *cli.Request, show func(cli.Event)) {
	project := e.projectOf(req.Dir)
	text, left := handoff.Context(project.Dir, project.Context)
	for _, l := range left {
		show(cli.Status{Kind: cli.StatusWarning, Detail: p.Text("turn.context-left-out", l.File, l.Err.Error())})
	}
	req.Prompt = text + req.Prompt
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
	return withoutRepeats(slices.DeleteFunc(turns, isCompaction), repeats(turns, t)), nil
}

// repeats returns the turn of which t asks the prompt once more; empty if there is none. A job that ActionLater made does, unless a user
// changed its prompt.
func repeats(turns []orchestrator.Turn, t orchestrator.Turn) cli.TurnID {
	id, later := strings.CutPrefix(string(t.Wants.Job), laterJob)
	if later && slices.ContainsFunc(turns, func(h orchestrator.Turn) bool {
		return h.ID == cli.TurnID(id) && strings.HasPrefix(t.Prompt.Text, h.Prompt.Text)
	}) {
		return cli.TurnID(id)
	}
	return t.Again
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
