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
	"ductor/orchestrator/turn"
)

// SetPermission implements menu.Service.
func (e *Engine) SetPermission(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode,
	by orchestrator.PersonID) error {
	if !slices.Contains(cli.PermissionModes(), mode) {
		return orchestrator.ErrNoPermissionMode
	}
	if mode == cli.Bypass {
		return e.Bypass(ctx, id, orchestrator.DefaultBypass, by)
	}
	return e.setMode(ctx, id, mode, time.Time{}, orchestrator.ModeAudit(string(mode), by))
}

// setMode stores a permission mode that a user chose. The mode applies only in the environment of the next turn.
// setMode also starts the agent process for the next turn.
func (e *Engine) setMode(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode,
	until time.Time, audit orchestrator.AuditEntry) error {
	_, _, in, err := e.next(ctx, id)
	if err != nil {
		return err
	}
	return e.changeAndWarm(ctx, id, func(c *orchestrator.Conversation) {
		c.SetMode(mode, in, until)
	}, audit)
}

// SetTools implements menu.Service.
func (e *Engine) SetTools(ctx context.Context, id orchestrator.ConversationID, list cli.ToolList,
	by orchestrator.PersonID) error {
	if err := tools.CheckList(list); err != nil {
		return fmt.Errorf("%w: %w", orchestrator.ErrBadChoice, err)
	}
	return e.changeAndWarm(ctx, id, func(c *orchestrator.Conversation) { c.Tools = list },
		orchestrator.ToolsAudit(list, by))
}

// SetRole implements menu.Service. Some agents read the system prompt only when they start, so ductor restarts them and
// continues their sessions.
func (e *Engine) SetRole(ctx context.Context, id orchestrator.ConversationID, name string) error {
	if name == "" {
		name = orchestrator.NoRole
	} else if _, ok := e.Role(name); !ok {
		return orchestrator.ErrNoRole
	}
	return e.changeAndWarm(ctx, id, func(c *orchestrator.Conversation) { c.Role = name })
}

// Roles implements menu.Service. It omits a role with an empty name and a role called NoRole, because users could not
// choose them.
func (e *Engine) Roles() []string {
	if e.opts.Roles == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.opts.Roles.Names()),
		func(name string) bool { return name == "" || name == orchestrator.NoRole })
}

// Role returns the role with this name. It returns false if users cannot choose such a role.
func (e *Engine) Role(name string) (orchestrator.Role, bool) {
	if e.opts.Roles == nil || name == "" || name == orchestrator.NoRole {
		return orchestrator.Role{}, false
	}
	return e.opts.Roles.Role(name)
}

// Set implements menu.Service.
func (e *Engine) Set(ctx context.Context, id orchestrator.ConversationID, of orchestrator.Setting, word string) error {
	if !slices.Contains(of.Words(), word) {
		return orchestrator.ErrBadChoice
	}
	if of == orchestrator.SettingDisplay {
		return e.SetDisplay(ctx, id, orchestrator.DisplayMode(word))
	}
	return e.change(ctx, id, func(c *orchestrator.Conversation) { c.Settings.Set(of, word) })
}

// Display returns the display mode of a chat.
func (e *Engine) Display(ctx context.Context, id orchestrator.ConversationID) (orchestrator.DisplayMode, error) {
	main, err := e.opts.Store.Conversation(ctx, orchestrator.ConversationID{Chat: id.Chat})
	if err != nil {
		return "", fmt.Errorf("load the display mode of a chat: %w", err)
	}
	return cmp.Or(main.Settings.Display, e.turns().Settings.Display), nil
}

// displayOf is like Display, for a conversation that the caller has already loaded.
func (e *Engine) displayOf(ctx context.Context, c orchestrator.Conversation) (orchestrator.DisplayMode, error) {
	if c.ID.Topic != 0 {
		return e.Display(ctx, c.ID)
	}
	return cmp.Or(c.Settings.Display, e.turns().Settings.Display), nil
}

// SetDisplay sets the display mode of a chat, for turns that start after the call. It accepts the modes that users can
// choose, and DisplayAsked, which does not replace a mode that a user chose. For any other mode, it returns
// ErrBadChoice.
func (e *Engine) SetDisplay(ctx context.Context, id orchestrator.ConversationID, mode orchestrator.DisplayMode) error {
	asked := mode == orchestrator.DisplayAsked
	if !asked && !slices.Contains(orchestrator.SettingDisplay.Words(), string(mode)) {
		return orchestrator.ErrBadChoice
	}
	return e.change(ctx, orchestrator.ConversationID{Chat: id.Chat}, func(c *orchestrator.Conversation) {
		if !asked || c.Settings.Display == "" {
			c.Settings.Display = mode
		}
	})
}

// settingsOf returns the settings of a conversation, with the configured defaults in place of empty ones.
func (e *Engine) settingsOf(c orchestrator.Conversation) orchestrator.Settings {
	return orchestrator.Settings{Accounts: c.Settings.Accounts, Busy: e.busyOf(c),
		Notify: cmp.Or(c.Settings.Notify, e.turns().Settings.Notify),
		Think:  cmp.Or(c.Settings.Think, e.turns().Settings.Think)}
}

func (e *Engine) busyOf(c orchestrator.Conversation) orchestrator.BusyMode {
	if !slices.Contains(orchestrator.SettingBusy.Words(), string(c.Settings.Busy)) {
		return orchestrator.BusyQueue
	}
	return c.Settings.Busy
}

// roleOf returns the name of the conversation's role, or "". If a user chose a role that no longer exists, it returns
// "". It does not return the default role then, because the user chose another one.
func (e *Engine) roleOf(c orchestrator.Conversation) string {
	if c.Role == "" {
		return e.turns().Sessions.DefaultRole
	}
	if _, ok := e.Role(c.Role); !ok {
		return ""
	}
	return c.Role
}

// roleFor returns the role of a conversation, or the zero value if it has none.
func (e *Engine) roleFor(c orchestrator.Conversation) orchestrator.Role {
	role, _ := e.Role(e.roleOf(c))
	return role
}

// SetModel sets the agent and model for the next turns. If the agent is new in the session, it gets the history of the
// session.
func (e *Engine) SetModel(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID,
	effort cli.Effort) error {
	return e.changeAndWarm(ctx, id, func(c *orchestrator.Conversation) {
		c.Agent, c.Model, c.Effort = agent, model, effort
	})
}

// SetDir implements bot.Desk.
func (e *Engine) SetDir(ctx context.Context, id orchestrator.ConversationID, path string,
	by orchestrator.PersonID) (string, error) {
	_, session, _, err := e.next(ctx, id)
	if err != nil {
		return "", err
	}
	dir, moves, err := e.opts.Places.Move(session.Dir, path)
	if err != nil || !moves {
		return dir, err
	}
	err = e.change(ctx, id, func(c *orchestrator.Conversation) { c.Dir, c.Session = dir, "" },
		orchestrator.AuditEntry{What: orchestrator.AuditDirectory, Title: dir, By: by})
	if err == nil {
		e.reopen(ctx, id)
	}
	return dir, err
}

// change loads a conversation, calls f to change it, and saves it together with audit entries. It fills in the time and
// the conversation of the entries. All of this happens in the inbox, so that no concurrent change is lost.
func (e *Engine) change(ctx context.Context, id orchestrator.ConversationID, f func(*orchestrator.Conversation),
	audit ...orchestrator.AuditEntry) error {
	return e.do(id, func(*conversation) error { return e.save(ctx, id, f, audit...) })
}

// changeAndWarm is like change, and then starts the agent process that the next turn needs.
func (e *Engine) changeAndWarm(ctx context.Context, id orchestrator.ConversationID,
	f func(*orchestrator.Conversation), audit ...orchestrator.AuditEntry) error {
	err := e.change(ctx, id, f, audit...)
	if err == nil {
		e.warm(ctx, id)
	}
	return err
}

// load loads the choices of a conversation.
func (e *Engine) load(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation, error) {
	conv, err := e.opts.Store.Conversation(ctx, id)
	if err != nil {
		return conv, fmt.Errorf("load conversation: %w", err)
	}
	return conv, nil
}

// save is like change, but the caller must be a function that runs in the inbox of the conversation.
func (e *Engine) save(ctx context.Context, id orchestrator.ConversationID, f func(*orchestrator.Conversation),
	audit ...orchestrator.AuditEntry) error {
	conv, err := e.load(ctx, id)
	if err != nil {
		return err
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

// chooseAgent returns the agent and model for a turn in an environment: the choice of the conversation, or else of its
// role, or else the configured default. A model that was chosen for one agent is never used with another agent.
func (e *Engine) chooseAgent(ctx context.Context, conv orchestrator.Conversation, in cli.Sandbox) (turn.Choice, error) {
	role := e.roleFor(conv)
	who := turn.Choice{Agent: conv.Agent, Model: conv.Model, Effort: conv.Effort}
	if who.Agent == "" {
		who = turn.Choice{Agent: role.Agent, Model: role.Model}
	}
	if who.Agent == "" {
		agent, instead, err := e.opts.Gateway.Default(ctx, in, conv.Settings.Accounts)
		if err != nil {
			return turn.Choice{}, err
		}
		who.Agent, who.Instead = agent, instead
	}
	who.Account = conv.Settings.Accounts[who.Agent]
	own := e.turns().Agents[who.Agent]
	who.Model, who.Effort = cmp.Or(who.Model, own.Model), cmp.Or(who.Effort, own.Effort)
	return who, nil
}
