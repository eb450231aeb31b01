package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/turn"
)

// Status implements menu.Service.
func (e *Engine) Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error) {
	conv, session, in, err := e.next(ctx, id)
	if err != nil {
		return orchestrator.Status{}, err
	}
	// Ignore the error, because the rest of the status is useful without an agent. AtOnce makes chooseAgent use the
	// last known state of the agents instead of checking them.
	who, _ := e.chooseAgent(cli.AtOnce(ctx), conv, in)
	st := orchestrator.Status{
		Conversation: id, Agent: who.Agent, Model: who.Model, Effort: who.Effort,
		Permission: e.permissionOf(conv, in), Dir: session.Dir, Sandbox: in, Role: e.roleOf(conv),
		Settings: e.settingsOf(conv), Live: e.opts.Gateway.Live(ctx),
	}
	st.Live.Resting = e.opts.Breakers.All(in, conv.Settings.Accounts)
	if st.Live.Limits, err = e.opts.Store.PlanLimits(ctx); err != nil {
		return orchestrator.Status{}, err
	}
	if st.Settings.Display, err = e.displayOf(ctx, conv); err != nil {
		return orchestrator.Status{}, err
	}
	if e.bypassed(conv, in) {
		st.BypassUntil = conv.BypassUntil
	}
	if conv.Session != "" {
		if st.Session, err = e.opts.Store.Session(ctx, conv.Session); err != nil {
			return orchestrator.Status{}, fmt.Errorf("load session: %w", err)
		}
	}
	if err := e.addActivity(ctx, id, &st); err != nil {
		return orchestrator.Status{}, err
	}
	return st, nil
}

func (e *Engine) addActivity(ctx context.Context, id orchestrator.ConversationID, st *orchestrator.Status) error {
	var r *running
	err := e.do(id, func(c *conversation) error {
		for _, w := range c.queue {
			st.Queue = append(st.Queue, w.turn.Wants)
		}
		r = c.active.first()
		return nil
	})
	if r == nil {
		return err
	}
	t := r.turn
	st.Running = &orchestrator.RunningTurn{Turn: t.ID, Wants: t.Wants, Title: sessions.Label(t),
		Prompt: t.Prompt.Text, Message: t.Prompt.Message, Rights: t.Prompt.Rights,
		Started: cmp.Or(t.Started, r.started)} // a restart does not change when the turn began
	open, err := e.opts.Store.OpenApprovals(ctx)
	if err != nil {
		return fmt.Errorf("load open approvals: %w", err)
	}
	for _, approval := range open {
		if approval.Turn == st.Running.Turn {
			st.Running.Approvals++
		}
	}
	return nil
}

// Permissions implements menu.Service.
func (e *Engine) Permissions(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Permissions, error) {
	conv, err := e.load(ctx, in)
	if err != nil {
		return orchestrator.Permissions{}, err
	}
	rules, err := e.opts.Store.RulesOf(ctx, in)
	if err != nil {
		return orchestrator.Permissions{}, fmt.Errorf("load rules: %w", err)
	}
	rules = slices.DeleteFunc(rules, func(r orchestrator.Rule) bool {
		return r.Session != "" && r.Session != conv.Session
	})
	session, at, err := e.nextPlace(ctx, conv)
	if err != nil {
		// Ignore the error here, because the next turn reports it.
		return orchestrator.Permissions{Mode: e.permissionOf(conv, conv.GrantedIn), Rules: rules}, nil
	}
	p := orchestrator.Permissions{Mode: e.permissionOf(conv, at),
		Rules: slices.DeleteFunc(rules, func(r orchestrator.Rule) bool { return r.Session != "" && r.Sandbox != at })}
	if e.bypassed(conv, at) {
		p.BypassUntil = conv.BypassUntil
	}
	lists := e.toolLists(conv, session.Dir)
	p.Tools, p.OtherTools = conv.Tools, lists[:len(lists)-1]
	if who, err := e.chooseAgent(ctx, conv, at); err == nil { // ignore the error, because the next turn reports it
		p.Agent, p.Cannot = who.Agent, map[cli.PermissionMode]lang.Message{}
		req := cli.Request{Sandbox: at, Accounts: conv.Settings.Accounts}
		for _, mode := range cli.PermissionModes() {
			why := e.opts.Gateway.Cannot(at, who.Agent, mode)
			if why.IsZero() {
				continue
			}
			p.Cannot[mode] = why
			if req.Permission = mode; e.opts.Gateway.CannotHold(who.Agent, req) != nil {
				p.Refused = append(p.Refused, mode)
			}
		}
		req.Permission, req.ToolLists, req.MaxTurns = "", lists, e.boundsOf(conv, session.Dir).MaxTurns
		p.Unheld = e.opts.Gateway.CannotHold(who.Agent, req)
	}
	return p, nil
}

// MenuNow implements menu.Service.
func (e *Engine) MenuNow(ctx context.Context, id orchestrator.ConversationID) ([]cli.MenuEntry, error) {
	return e.menu(ctx, id, cli.AtOnce(ctx))
}

// Menu implements menu.Service.
func (e *Engine) Menu(ctx context.Context, id orchestrator.ConversationID, only ...cli.Agent) ([]cli.MenuEntry, error) {
	return e.menu(ctx, id, ctx, only...)
}

// placeOf returns a request that contains only the working directory, the environment and the accounts of the
// conversation's next turn.
func (e *Engine) placeOf(ctx context.Context, id orchestrator.ConversationID) (at cli.Request, err error) {
	conv, session, in, err := e.next(ctx, id)
	return cli.Request{Dir: session.Dir, Sandbox: in, ChatID: id.Chat, Accounts: conv.Settings.Accounts}, err
}

// menu lists the models of the agents. It loads the conversation with ctx, and queries the agents with agentsCtx.
func (e *Engine) menu(ctx context.Context, id orchestrator.ConversationID, agentsCtx context.Context,
	only ...cli.Agent) ([]cli.MenuEntry, error) {
	at, err := e.placeOf(ctx, id)
	if err != nil {
		return nil, err
	}
	entries := e.opts.Gateway.Menu(agentsCtx, at.Sandbox, at.Accounts, only...)
	for i := range entries {
		entries[i].Resting = e.opts.Breakers.Open(at.Sandbox, entries[i].Agent, entries[i].Account)
	}
	return entries, nil
}

var _ orchestrator.ActiveTurns = (*Engine)(nil)

// ActiveTurn implements orchestrator.ActiveTurns. A turn counts only once its agent has got the prompt.
func (e *Engine) ActiveTurn(in orchestrator.ConversationID, agent cli.Agent) (orchestrator.ActiveTurn, error) {
	e.mu.Lock()
	c := e.conversations[in]
	e.mu.Unlock()
	if c == nil {
		return orchestrator.ActiveTurn{}, orchestrator.ErrNoTurn
	}
	for _, now := range c.active.turns() {
		if now.req != nil && now.turn.Agent == agent && now.ctx.Err() == nil {
			return orchestrator.ActiveTurn{Turn: now.turn, Request: *now.req, Life: now.ctx,
				Hide: e.secretsOf(*now.req).String, Help: now.helpers.Join}, nil
		}
	}
	return orchestrator.ActiveTurn{}, orchestrator.ErrNoTurn
}

// AskUser implements orchestrator.ActiveTurns.
func (e *Engine) AskUser(ctx context.Context, turn cli.TurnID, asked cli.Event) (cli.Decision, error) {
	return e.approvals.AskFor(ctx, turn, approval.Helper{}, asked)
}

// AskFor implements orchestrator.ActiveTurns.
func (e *Engine) AskFor(ctx context.Context, id cli.TurnID, h orchestrator.Helper, asked cli.Event) (cli.Decision,
	error) {
	tools := turn.ToolsOf(h.Agent, cli.Request{ToolLists: h.ToolLists})
	return e.approvals.AskFor(ctx, id, approval.Helper{Agent: h.Agent, Tools: tools}, asked)
}

// AskTerminal asks the user of a private chat to decide a request of an agent that runs in a directory in a terminal.
// It waits for the decision until ctx is done. After a restart of ductor, the agent must repeat its request with the
// same id.
func (e *Engine) AskTerminal(ctx context.Context, by orchestrator.Press, agent cli.Agent, dir, id string,
	asked cli.Event) (cli.Decision, error) {
	redactor := turn.NewRedactor(e.wg.Go, func() *secrets.Set { return e.secretsOf(cli.Request{Dir: dir}) })
	return e.approvals.AskForTerminal(ctx, approval.RunningTurn{
		Turn: orchestrator.Turn{ID: cli.TurnID(id), Agent: agent,
			Prompt: orchestrator.Prompt{Conversation: by.Conversation, Person: by.Person}},
		Dir: dir, Project: cli.WithProject, Mode: cli.Ask, Known: redactor.Known, Learn: redactor.Learn,
	}, asked)
}
