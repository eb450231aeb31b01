package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/turn"
)

// SetPermission chooses what the agent may do without asking, from the next turn to start on: waiting ones are
// among them, one that runs is not. Bypass lasts for DefaultBypass. ErrNoPermissionMode for a mode that cli.PermissionModes does not list.
func (e *Engine) SetPermission(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode, by orchestrator.PersonID) error {
	if !slices.Contains(cli.PermissionModes(), mode) {
		return orchestrator.ErrNoPermissionMode
	}
	if mode == cli.Bypass {
		return e.Bypass(ctx, id, orchestrator.DefaultBypass, by)
	}
	err := e.setMode(ctx, id, mode, time.Time{}, orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: string(mode), By: by})
	if err == nil {
		e.warm(ctx, id)
	}
	return err
}

// setMode stores a permission mode that a user chose, for where the next turn runs. If that changes meanwhile the mode does not count.
func (e *Engine) setMode(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode, until time.Time, audit orchestrator.AuditEntry) error {
	conv, err := e.opts.Store.Conversation(ctx, id)
	if err != nil {
		return fmt.Errorf("load conversation: %w", err)
	}
	_, in, err := e.whereabouts(ctx, conv)
	if err != nil {
		return err
	}
	return e.change(ctx, id, func(c *orchestrator.Conversation) { c.Permission, c.GrantedIn, c.BypassUntil = mode, in, until }, audit)
}

// SetTools limits the tools of the conversation's agents from the next turn to start on, besides what the configuration says.
// ErrBadChoice for a name that means nothing.
func (e *Engine) SetTools(ctx context.Context, id orchestrator.ConversationID, list cli.ToolList, by orchestrator.PersonID) error {
	if err := tools.CheckList(list); err != nil {
		return fmt.Errorf("%w: %w", orchestrator.ErrBadChoice, err)
	}
	title := "tools"
	for _, name := range list.Only {
		title += " +" + name
	}
	for _, name := range list.Denied {
		title += " -" + name
	}
	err := e.change(ctx, id, func(c *orchestrator.Conversation) { c.Tools = list },
		orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: title, By: by})
	if err == nil {
		e.warm(ctx, id)
	}
	return err
}

// SetRole chooses the role the agent plays, from the next turn to start on; an empty name is none. The
// session stays: an agent that takes a system prompt only when it starts is started anew and resumed.
// ErrNoRole for a role that is not configured.
func (e *Engine) SetRole(ctx context.Context, id orchestrator.ConversationID, name string) error {
	if name == "" {
		name = orchestrator.NoRole
	} else if _, ok := e.role(name); !ok {
		return orchestrator.ErrNoRole
	}
	err := e.change(ctx, id, func(c *orchestrator.Conversation) { c.Role = name })
	if err == nil {
		e.warm(ctx, id)
	}
	return err
}

// Roles lists the names of the roles, sorted. A role without a name, or called NoRole, cannot be chosen and is not among
// them.
func (e *Engine) Roles() []string {
	if e.opts.Roles == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.opts.Roles.Names()), func(name string) bool { return name == "" || name == orchestrator.NoRole })
}

// Role finds a role that can be chosen; false if there is none of that name.
func (e *Engine) Role(name string) (orchestrator.Role, bool) { return e.role(name) }

// role finds a role that can be chosen.
func (e *Engine) role(name string) (orchestrator.Role, bool) {
	if e.opts.Roles == nil || name == "" || name == orchestrator.NoRole {
		return orchestrator.Role{}, false
	}
	return e.opts.Roles.Role(name)
}

// Set chooses a setting, from the next turn to start on. ErrBadChoice for what is not among its words.
func (e *Engine) Set(ctx context.Context, id orchestrator.ConversationID, of orchestrator.Setting, word string) error {
	if !slices.Contains(of.Words(), word) {
		return orchestrator.ErrBadChoice
	}
	if of == orchestrator.SettingDisplay {
		return e.SetDisplay(ctx, id, orchestrator.DisplayMode(word))
	}
	return e.change(ctx, id, func(c *orchestrator.Conversation) { c.Settings.Set(of, word) })
}

// Display says what the chat of a conversation shows of rich messages.
func (e *Engine) Display(ctx context.Context, id orchestrator.ConversationID) (orchestrator.DisplayMode, error) {
	main, err := e.opts.Store.Conversation(ctx, orchestrator.ConversationID{Chat: id.Chat})
	if err != nil {
		return "", fmt.Errorf("load what a chat shows: %w", err)
	}
	return cmp.Or(main.Display, e.turns().Settings.Display), nil
}

// displayOf is Display for a conversation that was loaded.
func (e *Engine) displayOf(ctx context.Context, c orchestrator.Conversation) (orchestrator.DisplayMode, error) {
	if c.ID.Topic != 0 {
		return e.Display(ctx, c.ID)
	}
	return cmp.Or(c.Display, e.turns().Settings.Display), nil
}

// SetDisplay says what the chat of a conversation shows of rich messages, from the next turn to start on. ErrBadChoice for
// what no user can choose, but for DisplayAsked.
func (e *Engine) SetDisplay(ctx context.Context, id orchestrator.ConversationID, mode orchestrator.DisplayMode) error {
	if mode != orchestrator.DisplayAsked && !slices.Contains(orchestrator.SettingDisplay.Words(), string(mode)) {
		return orchestrator.ErrBadChoice
	}
	return e.change(ctx, orchestrator.ConversationID{Chat: id.Chat}, func(c *orchestrator.Conversation) { c.Display = mode })
}

// settingsOf are how a conversation has its turns.
func (e *Engine) settingsOf(c orchestrator.Conversation) orchestrator.Settings {
	return orchestrator.Settings{Busy: e.busyOf(c), Notify: cmp.Or(c.Notify, e.turns().Settings.Notify), Think: cmp.Or(c.Think, e.turns().Settings.Think)}
}

func (e *Engine) busyOf(c orchestrator.Conversation) orchestrator.BusyMode {
	if !slices.Contains(orchestrator.SettingBusy.Words(), string(c.Busy)) {
		return orchestrator.BusyQueue
	}
	return c.Busy
}

// permissionOf is the permission mode of a conversation's turns in an environment.
func (e *Engine) permissionOf(c orchestrator.Conversation, in cli.Sandbox) cli.PermissionMode {
	switch {
	case c.Permission == "":
		return e.turns().Permission
	case elsewhere(c, in), c.Permission == cli.Bypass && !e.bypassed(c, in):
		return cli.Ask
	}
	return c.Permission
}

// elsewhere reports whether the mode of a conversation was granted in another environment than in.
func elsewhere(c orchestrator.Conversation, in cli.Sandbox) bool {
	return orchestrator.Grants(c.Permission) && c.GrantedIn != in
}

// endElsewhere ends a mode that was granted in another environment than the one that a turn runs in, and returns the mode; empty for none.
func (e *Engine) endElsewhere(ctx context.Context, conv *orchestrator.Conversation, t orchestrator.Turn) (ended cli.PermissionMode) {
	if !t.Prompt.Rights.OfChat() || !elsewhere(*conv, t.Sandbox) {
		return ""
	}
	ended = conv.Permission
	ask := func(c *orchestrator.Conversation) {
		if elsewhere(*c, t.Sandbox) { // else a user chose another one in between
			c.Permission, c.GrantedIn, c.BypassUntil = cli.Ask, "", time.Time{}
		}
	}
	err := e.change(ctx, conv.ID, ask, orchestrator.AuditEntry{What: orchestrator.AuditMode, Turn: t.ID, Title: string(cli.Ask), Reason: orchestrator.AuditElsewhere})
	if err != nil {
		e.log.Error("end a permission mode of another environment", "turn", t.ID, "err", err) // permissionOf knows that it does not count
	}
	ask(conv)
	return ended
}

// roleOf names the role that is played, empty for none. One that was chosen and is gone is none: the default was not asked
// for.
func (e *Engine) roleOf(c orchestrator.Conversation) string {
	if c.Role == "" {
		return e.turns().DefaultRole
	}
	if _, ok := e.role(c.Role); !ok {
		return ""
	}
	return c.Role
}

// SetModel chooses who answers from the next turn on. Another agent joins the session with its history.
func (e *Engine) SetModel(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID, effort cli.Effort) error {
	err := e.change(ctx, id, func(c *orchestrator.Conversation) { c.Agent, c.Model, c.Effort = agent, model, effort })
	if err == nil {
		e.warm(ctx, id)
	}
	return err
}

// SetDir chooses the working directory, relative to the present one or absolute, inside the configured
// roots, and begins a new session there. It returns the directory as it will be used.
func (e *Engine) SetDir(ctx context.Context, id orchestrator.ConversationID, path string, by orchestrator.PersonID) (string, error) {
	conv, err := e.opts.Store.Conversation(ctx, id)
	if err != nil {
		return "", fmt.Errorf("load conversation: %w", err)
	}
	dir, err := e.resolveDir(e.dirOf(conv), path)
	if err != nil {
		return "", err
	}
	err = e.change(ctx, id, func(c *orchestrator.Conversation) {
		if c.Dir != dir {
			c.Dir, c.Session = dir, ""
		}
	}, orchestrator.AuditEntry{What: orchestrator.AuditDirectory, Title: dir, By: by})
	e.opts.Gateway.Release(id.Key())
	if err == nil {
		e.warm(ctx, id)
	}
	return dir, err
}

// change loads a conversation, changes it and saves it, on its goroutine so that no change is lost. The audit entries
// are recorded with the change; their time and conversation are filled in.
func (e *Engine) change(ctx context.Context, id orchestrator.ConversationID, f func(*orchestrator.Conversation), audit ...orchestrator.AuditEntry) error {
	c, err := e.conversation(id)
	if err != nil {
		return err
	}
	c.do(func() { err = e.save(ctx, id, f, audit...) })
	return err
}

// save is change for a message of the conversation's goroutine.
func (e *Engine) save(ctx context.Context, id orchestrator.ConversationID, f func(*orchestrator.Conversation), audit ...orchestrator.AuditEntry) error {
	conv, err := e.opts.Store.Conversation(ctx, id)
	if err != nil {
		return fmt.Errorf("load conversation: %w", err)
	}
	f(&conv)
	for i := range audit {
		audit[i].At, audit[i].Conversation = e.now(), id
	}
	if err := e.opts.Store.SaveConversation(ctx, conv, audit...); err != nil {
		return fmt.Errorf("save conversation: %w", err)
	}
	return nil
}

// choice settles who answers in a place: what the conversation chose, else its role, else the configured default. A
// model chosen for one agent is never handed to another.
func (e *Engine) choice(ctx context.Context, conv orchestrator.Conversation, in cli.Sandbox) (turn.Choice, error) {
	role, _ := e.role(e.roleOf(conv))
	who := turn.Choice{Agent: conv.Agent, Model: conv.Model, Effort: conv.Effort}
	if who.Agent == "" {
		who = turn.Choice{Agent: role.Agent, Model: role.Model}
	}
	if who.Agent == "" {
		agent, instead, err := e.opts.Gateway.Default(ctx, in)
		if err != nil {
			return turn.Choice{}, err
		}
		who.Agent, who.Instead = agent, instead
	}
	own := e.turns().Agents[who.Agent]
	who.Model, who.Effort = cmp.Or(who.Model, own.Model), cmp.Or(who.Effort, own.Effort)
	return who, nil
}

// modeFor is the permission mode of a turn.
func (e *Engine) modeFor(conv orchestrator.Conversation, r orchestrator.Rights, in cli.Sandbox) cli.PermissionMode {
	if r.OfChat() {
		return orchestrator.AtMost(e.permissionOf(conv, in), r.Mode)
	}
	return cmp.Or(r.Mode, orchestrator.AtMostAsk(e.turns().Permission))
}

// toolLists are the lists of tools that count for all turns of a conversation in a directory.
func (e *Engine) toolLists(conv orchestrator.Conversation, dir string) []cli.ToolList {
	role, _ := e.role(e.roleOf(conv))
	return []cli.ToolList{{Denied: e.turns().DeniedTools}, e.projectOf(dir).Tools, role.Tools, conv.Tools}
}

// grant puts into a request which tools a turn may use, and what it may do without asking. What the configuration allows every chat is no grant to a turn
// with rights of its own; what it denies is denied to all.
func (e *Engine) grant(req *cli.Request, conv orchestrator.Conversation, r orchestrator.Rights) {
	req.Permission = e.modeFor(conv, r, req.Sandbox)
	req.ToolLists = append(e.toolLists(conv, req.Dir), r.Tools)
	if r.OfChat() {
		req.AllowedTools = e.turns().AllowedTools
	}
	if req.Permission == cli.Plan { // which changes nothing
		req.AllowedTools = tools.Reading(req.AllowedTools)
	}
	forever := req.Permission == cli.Bypass && !(r.OfChat() && e.bypassed(conv, req.Sandbox)) // else it asks once the bypass is over
	req.Attended = e.opts.Screen != nil && !forever
}

// Decide decides an approval, once; see orchestrator.Approvals. Where a choice is about more than one request the mode of the
// conversation follows: edits go through from now on, or a plan begins.
func (e *Engine) Decide(ctx context.Context, id orchestrator.ApprovalID, nonce string, by orchestrator.Press, v orchestrator.Verdict) (orchestrator.Approval, error) {
	a, err := e.approvals.Decide(ctx, id, nonce, by, v)
	if err != nil || !a.Edits {
		return a, err
	}
	conv, err := e.opts.Store.Conversation(ctx, a.Conversation)
	if err != nil {
		return a, fmt.Errorf("load conversation: %w", err)
	}
	mode := approval.ModeAfter(a, v.Choice, e.permissionOf(conv, a.Sandbox))
	if mode == "" {
		return a, nil
	}
	err = e.change(ctx, a.Conversation, func(c *orchestrator.Conversation) {
		if e.permissionOf(*c, a.Sandbox) == e.permissionOf(conv, a.Sandbox) { // else a user chose another one in between
			c.Permission, c.GrantedIn, c.BypassUntil = mode, a.Sandbox, time.Time{}
		}
	}, orchestrator.AuditEntry{What: orchestrator.AuditMode, Turn: a.Turn, Title: string(mode), By: by.Person})
	if err != nil {
		return a, fmt.Errorf("have the mode of the conversation follow: %w", err)
	}
	return a, nil
}
