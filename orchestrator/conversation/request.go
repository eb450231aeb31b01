package conversation

import (
	"context"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/turn"
)

// preparation contains the request for the first attempt of a turn, and facts that its card shows before the answer.
type preparation struct {
	req     cli.Request
	instead *cli.Failure // the reason why another agent replaces the default agent; nil if none does
	// endedMode is a permission mode that ended because the turn runs in another environment; "" for none.
	endedMode cli.PermissionMode
}

// prepare chooses the session, agent and model of the turn, and builds the request. If the turn began before a restart,
// prepare makes the same choices as before the restart.
func (r *runningTurn) prepare() (preparation, error) {
	e, t := r.e, &r.turn
	conv, err := e.load(r.record, r.c.id())
	if err != nil {
		return preparation{}, err
	}
	conv = t.Wants.Override(conv)
	if r.waiting.remains != "" {
		return r.prepareLeft(conv)
	}
	if err := e.runner.CheckOrder(r.record, *t); err != nil {
		return preparation{}, err
	}
	budget, err := e.withinBudget(r.record, *t)
	if err != nil {
		return preparation{}, err
	}
	if r.session, err = e.sessionFor(r.record, r.c, conv, *t); err != nil {
		return preparation{}, err
	}
	t.Session = r.session.ID
	if err := e.opts.Places.CheckDir(r.session.Dir); err != nil {
		return preparation{}, err
	}
	if t.Sandbox, err = e.opts.Places.Sandbox(conv.ID, r.session.Dir, t.Wants.Sandbox); err != nil {
		return preparation{}, err
	}
	who, err := e.chooseAgent(r.record, conv, t.Sandbox)
	if err != nil {
		return preparation{}, err
	}
	if conv.Agent == "" { // an agent that a user chose is never replaced
		who = e.runner.Available(r.record, *t, who)
	}
	ended := e.endElsewhere(r.record, &conv, *t)
	if t.Prompt.Rights.Of == orchestrator.RightsOfChat && e.bypassed(conv, t.Sandbox) {
		t.Bypass = conv.BypassUntil
	}
	t.Agent, t.Model, t.Started, t.State = who.Agent, who.Model, e.now(), orchestrator.TurnRunning
	e.useAccount(r.record, conv, t)
	t.Entry.Role = e.roleOf(conv)
	req, err := e.attemptRequest(r.record, conv, r.session, *t, who)
	req.Budget = budget
	return preparation{req: req, instead: who.Instead, endedMode: ended}, err
}

// attemptRequest builds the request for one attempt of a turn. The request has no budget yet.
func (e *Engine) attemptRequest(
	ctx context.Context, conv orchestrator.Conversation, s orchestrator.Session, t orchestrator.Turn, who turn.Choice,
) (cli.Request, error) {
	req, err := e.request(ctx, conv, s, t, who)
	// After a restart, the agent of a running turn is still in the mode bypass, although the bypass of the conversation
	// has ended. CaughtUp soon switches the agent to another mode.
	if !t.Bypass.IsZero() {
		req.Permission = cli.Bypass
	}
	return req, err
}

func (r *runningTurn) prepareLeft(conv orchestrator.Conversation) (p preparation, err error) {
	if r.session, err = r.e.opts.Store.Session(r.record, r.turn.Session); err != nil {
		return preparation{}, fmt.Errorf("load session: %w", err)
	}
	who := turn.Choice{Agent: r.turn.Agent, Model: r.turn.Model, Effort: conv.Effort}
	p.req, err = r.e.attemptRequest(r.record, conv, r.session, r.turn, who)
	p.req.Began = r.turn.Started
	return p, err
}

// PrepareAgain implements turn.Conversation.
func (c *conversation) PrepareAgain(ctx context.Context, t *orchestrator.Turn, who turn.Choice) (cli.Request,
	orchestrator.Session, error) {
	conv, err := c.e.opts.Store.Conversation(ctx, c.id())
	if err != nil {
		return cli.Request{}, orchestrator.Session{}, err
	}
	session, err := c.e.opts.Store.Session(ctx, t.Session)
	if err == nil {
		err = c.e.opts.Places.CheckDir(session.Dir)
	}
	if err != nil {
		return cli.Request{}, orchestrator.Session{}, err
	}
	budget, err := c.e.withinBudget(ctx, *t)
	if err != nil {
		return cli.Request{}, orchestrator.Session{}, err
	}
	conv = t.Wants.Override(conv)
	if t.Agent != who.Agent { // otherwise the turn keeps its account
		t.Agent = who.Agent
		c.e.useAccount(ctx, conv, t)
	}
	t.Model = who.Model
	req, err := c.e.attemptRequest(ctx, conv, session, *t, who)
	req.Budget = budget
	return req, session, err
}

// request builds the request to the agent. It does not add the history that the agent has not seen.
func (e *Engine) request(ctx context.Context, conv orchestrator.Conversation, s orchestrator.Session,
	t orchestrator.Turn, who turn.Choice) (cli.Request, error) {
	role := e.roleFor(conv)
	req := cli.Request{
		Turn: t.ID, Conversation: conv.ID.Key(), ChatID: conv.ID.Chat, Lang: e.opts.Lang.In(conv.ID.Chat),
		Model: who.Model, Effort: who.Effort, Accounts: conv.Settings.Accounts.With(t.Agent, t.Entry.Account),
		ExtraArgs: e.turns().Agents[t.Agent].Args,
		Sandbox:   t.Sandbox, Session: string(s.ID), Files: orchestrator.Paths(t.Prompt.Attachments),
		Dir: s.Dir, AddDirs: e.opts.Places.MoreDirs(conv.ID, e.log),
		Resume: s.AgentSessions[t.AgentEnv()].ID, Timeout: t.Wants.Timeout, Task: t.Wants.Task,
	}
	e.grant(&req, conv, t.Prompt.Rights)
	if e.opts.Servers != nil {
		req.Servers = e.opts.Servers(conv.ID, t.AgentEnv())
	}
	e.addServers(ctx, &req, conv, t.Prompt.Rights)
	var err error
	if req.Project, err = e.approvals.ProjectSettings(ctx, conv.ID, t, s.Dir); err != nil {
		return cli.Request{}, err
	}
	if role.Append {
		req.AppendPrompt = role.Prompt
	} else {
		req.SystemPrompt = role.Prompt
	}
	req.AppendPrompt = strings.TrimSpace(req.AppendPrompt + "\n\n" + e.opts.Instruction)
	req.Prompt, req.Images = turn.PromptText(t.Prompt)
	return req, nil
}

// addServers adds the owner's MCP servers to a request. It adds them only to turns with the rights of the chat. It adds
// none in plan mode, because ductor cannot prevent the servers' tools from changing something.
func (e *Engine) addServers(ctx context.Context, req *cli.Request, conv orchestrator.Conversation,
	r orchestrator.Rights) {
	if e.opts.OwnersServers == nil {
		return
	}
	bounds := e.boundsOf(conv, req.Dir)
	servers, absent := e.opts.OwnersServers(ctx, *req, func(name string) bool {
		return r.OfChat() && req.Permission != cli.Plan && bounds.UsesServer(name)
	})
	req.Servers, req.Absent = append(req.Servers, servers...), absent
}
