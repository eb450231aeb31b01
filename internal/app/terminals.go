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
	"ductor/internal/terminal"
	"ductor/internal/terminal/presence"
	"ductor/internal/terminal/server"
	"ductor/lang"
	"ductor/orchestrator"
)

// terminalMost is how long a terminal waits for the owner at most. The hooks are written with a day.
const terminalMost = 23 * time.Hour

// hearTerminals has the owner decide and read what agents in terminals ask and say, until stop. What they ask then stays open for the
// next process. Without an owner no terminal is heard, and where the socket cannot be made, all else goes on.
func (a *App) hearTerminals(ctx context.Context) (stop func()) {
	owner := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: int64(ownerOf(a.cfg))}, Person: ownerOf(a.cfg), Role: orchestrator.RoleOwner}
	if owner.Person == 0 {
		return func() {}
	}
	p := func() lang.Printer { return a.lang.Of(owner.Conversation.Chat) }
	s := server.New(server.Options{
		State: a.cfg.Storage.Dir, Away: a.presence().Away,
		Ask: func(ctx context.Context, of server.Session, id string, asked cli.Event) (cli.Decision, error) {
			return a.orchestrator.AskTerminal(ctx, owner, of.Agent, of.Dir, id, asked)
		},
		Wait: min(a.cfg.Permissions.AskTimeout, terminalMost) - time.Second, // before the approval expires, which would deny it
		Chat: ownersChat{a, owner.Conversation}, Secrets: a.secretsOf, Seen: a.saveSeen, Lang: p,
		Name: func(agent cli.Agent) string { return render.AgentName(p(), agent) }, Log: a.Log,
	})
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // that one ends with another cause
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx); err != nil {
			a.Log.Error("terminals are not heard", "err", err)
		}
	})
	return func() { cancel(cli.ErrDetached); serving.Wait() }
}

// ownersChat is where reports of terminals go.
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

// setAway stores whether the owner is away; see sessions.Options.
func (a *App) setAway(by orchestrator.Press, choice string) error {
	c := presence.Choice(choice)
	switch {
	case !by.May(orchestrator.ManageDuctor):
		return orchestrator.ErrNotOwner
	case c != presence.Away && c != presence.Here && c != presence.Auto:
		return orchestrator.ErrBadChoice
	}
	if c != presence.Here && !hooked() {
		return sessions.ErrNoHooks
	}
	return a.presence().Choose(c)
}

// hooked reports whether an agent of this user's terminals has ductor's hooks. Settings that cannot be read may have them.
func hooked() bool {
	files, err := terminal.Machine{Home: os.Getenv("HOME"), Getenv: os.Getenv}.Uninstalled()
	if errors.Is(err, terminal.ErrNoCLI) {
		return false
	}
	return err != nil || slices.ContainsFunc(files, func(f terminal.File) bool { return f.Hooked })
}

// seenKey is where the directory of a session of a terminal is kept, among what is kept beside cards.
func seenKey(agent cli.Agent, id cli.AgentSessionID) string {
	return "terminal:" + string(agent) + ":" + string(id)
}

func (a *App) saveSeen(ctx context.Context, of server.Session) error {
	return a.db.SaveCard(ctx, seenKey(of.Agent, of.ID), []byte(of.Dir))
}

// seenIn is the directory of a session that a terminal told of; empty for any other.
func (a *App) seenIn(ctx context.Context, agent cli.Agent, id cli.AgentSessionID) (string, error) {
	dir, err := a.db.LoadCard(ctx, seenKey(agent, id))
	return string(dir), err
}
