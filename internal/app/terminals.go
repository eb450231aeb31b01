package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"ductor/bot/render"
	"ductor/bot/sessions"
	"ductor/cli"
	"ductor/cli/host"
	"ductor/internal/terminal"
	"ductor/internal/terminal/presence"
	"ductor/internal/terminal/server"
	"ductor/lang"
	"ductor/orchestrator"
)

// terminalMost limits how long an agent in a terminal waits for the owner's answer. The agent's hook gives up after a
// day.
const terminalMost = 23 * time.Hour

// serveTerminals connects ductor with the agents that the owner runs in terminals. It forwards their requests and
// reports to the owner's chat, until the caller calls stop. After stop, open requests wait for the next process of
// ductor. If no owner is configured, serveTerminals does nothing. It logs errors.
func (a *App) serveTerminals(ctx context.Context) (stop func()) {
	owner := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: int64(ownerOf(a.cfg))},
		Person: ownerOf(a.cfg), Role: orchestrator.RoleOwner}
	if owner.Person == 0 {
		return func() {}
	}
	p := func() lang.Printer { return a.lang.Of(owner.Conversation.Chat) }
	s := server.New(server.Options{
		State: a.cfg.Storage.Dir, Descends: host.Descends, Away: a.presence().Away,
		Ask: func(ctx context.Context, of server.Session, id string, asked cli.Event) (cli.Decision, error) {
			return a.orchestrator.AskTerminal(ctx, owner, of.Agent, of.Dir, id, asked)
		},
		// The wait must end before the approval expires, because an expired approval denies the request.
		Wait: min(a.cfg.Permissions.AskTimeout, terminalMost) - time.Second,
		Chat: ownersChat{a, owner.Conversation}, Secrets: a.secretsOf, Seen: a.saveSeen, Lang: p,
		Name: func(agent cli.Agent) string { return render.AgentName(p(), agent) }, Log: a.Log,
	})
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx); err != nil {
			a.Log.Error("serve terminals", "err", err)
		}
	})
	return func() { cancel(cli.ErrDetached); serving.Wait() }
}

// ownersChat sends reports from terminals to the owner's chat.
type ownersChat struct {
	a  *App
	in orchestrator.ConversationID
}

func (c ownersChat) Report(ctx context.Context, of server.Session, text string) error {
	return c.a.bot.Chat().Report(ctx, c.in, text, of.Agent, of.ID)
}

func (a *App) presence() *presence.Presence {
	return presence.New(presence.Options{State: a.cfg.Storage.Dir, Ask: presence.Logind, UID: os.Getuid()})
}

// setAway stores whether the owner wants requests from terminals in the chat; see bot.Options.SetAway.
func (a *App) setAway(by orchestrator.Press, choice string) error {
	c := presence.Choice(choice)
	switch {
	case !by.May(orchestrator.ManageDuctor):
		return orchestrator.ErrNotOwner
	case c != presence.Away && c != presence.Here && c != presence.Auto:
		return orchestrator.ErrBadChoice
	}
	if c != presence.Here && !a.hooked() {
		return sessions.ErrNoHooks
	}
	return a.presence().Choose(c)
}

// hooked reports whether ductor's hooks are installed in an agent's CLI of this user. It returns true if that is
// unknown.
func (a *App) hooked() bool {
	files, err := a.terminalMachine().Installed()
	if errors.Is(err, terminal.ErrNoCLI) {
		return false
	}
	return err != nil || slices.ContainsFunc(files, func(f terminal.File) bool { return f.Hooked })
}

// terminalMachine returns a terminal.Machine for the current configuration. It can read hooks and remove them. It
// cannot install hooks, because its Program is empty.
func (a *App) terminalMachine() terminal.Machine {
	return terminal.Machine{Home: os.Getenv("HOME"), Getenv: os.Getenv, State: a.cfg.Storage.Dir,
		Accounts: a.now().Agents.AccountHomes}
}

// leaveAccounts removes ductor's hooks from the homes of accounts that are no longer configured. It logs errors.
func (a *App) leaveAccounts() {
	changed, err := a.terminalMachine().LeaveAccounts()
	for _, f := range changed {
		a.Log.Info("removed the hooks from the home of a former account", "agent", f.Agent, "file", f.Path)
	}
	if err != nil {
		a.Log.Warn("remove the hooks from the homes of former accounts", "err", err)
	}
}

// seenKey returns the key under which saveSeen stores the directory of a terminal session in the table of cards.
func seenKey(agent cli.Agent, id cli.AgentSessionID) string {
	return "terminal:" + string(agent) + ":" + string(id)
}

func (a *App) saveSeen(ctx context.Context, of server.Session) error {
	return a.db.SaveCard(ctx, seenKey(of.Agent, of.ID), []byte(of.Dir))
}

// seenIn returns the directory of a session that an agent has run in a terminal, or "" if it is unknown.
func (a *App) seenIn(ctx context.Context, agent cli.Agent, id cli.AgentSessionID) (string, error) {
	dir, err := a.db.LoadCard(ctx, seenKey(agent, id))
	return string(dir), err
}
