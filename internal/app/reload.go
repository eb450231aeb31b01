package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"ductor/bot/card"
	"ductor/cli"
	"ductor/internal/config"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// inUse owns the configuration. What counts at once is read from now each time; the rest is of the start.
type inUse struct {
	cfg       config.Config  // of the start
	providers []cli.Provider // of this machine

	reloading sync.Mutex // one reload after another
	current   atomic.Pointer[settings]
}

// settings are a configuration and values that cards, turns and updates read often. A reload makes new settings and changes none.
type settings struct {
	config.Config
	look     card.Look
	turns    conversation.TurnOptions
	roster   orchestrator.Roster
	projects map[string]string // the directories of those with names
}

// now is the configuration in use: what the last reload says of keys that count at once, and the rest of the start.
func (u *inUse) now() *settings { return u.current.Load() }

func (u *inUse) use(cfg config.Config) {
	u.current.Store(&settings{
		Config: cfg, look: lookOf(cfg), turns: turnsOf(cfg), roster: RosterOf(cfg), projects: namedProjects(cfg),
	})
}

// begin uses the configuration of the start.
func (u *inUse) begin(cfg config.Config) {
	u.cfg = cfg
	u.use(cfg)
}

// Reload reads the configuration again. What counts at once does so when it returns; after an error all is as before. It lists
// all that the file says otherwise than the configuration that was in use.
func (a *App) Reload(ctx context.Context) ([]config.Changed, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	changes, err := a.reload(context.WithoutCancel(ctx)) // half of a reload would be worse than a late one
	if err != nil {
		a.Log.Error("the configuration is not reloaded; the one before stays", "err", err)
		return nil, err
	}
	for _, c := range changes {
		a.Log.Info("the configuration changed", "key", c.Key, "before", c.Before, "after", c.After, "applies", c.Applies)
	}
	a.Log.Info("the configuration was reloaded", "changes", len(changes))
	a.TellChanges(ctx)
	return changes, nil
}

func (a *App) reload(ctx context.Context) ([]config.Changed, error) {
	read, err := a.Load()
	if err != nil {
		return nil, err
	}
	next, changes, err := a.now().Reloaded(read)
	if err != nil {
		return nil, err
	}
	if problems := ProblemsOfTools(next, a.providers); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "\n"))
	}
	jobs, err := Jobs(next)
	if err != nil {
		return nil, err
	}
	if err := a.timers.scheduler.Sync(ctx, append(jobs, a.timers.hooks.Jobs()...)); err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	a.use(next)
	a.roles.Configure(next.Roles)
	if a.Level != nil {
		_ = a.Level.UnmarshalText([]byte(next.Log.Level)) // the configuration knows the levels
	}
	for _, w := range next.Warnings {
		a.Log.Warn("configuration", "doubt", w)
	}
	return changes, nil
}

// mostChanges bounds how many changes a message lists.
const mostChanges = 15

// reloadFor reloads, and gives what came of it in the language of a conversation. In a group values are not shown.
func (a *App) reloadFor(ctx context.Context, in orchestrator.ConversationID) string {
	p := a.lang.Of(in.Chat)
	changes, err := a.Reload(ctx)
	switch {
	case err != nil:
		return a.Scrub.String(p.Text("config.not-reloaded", err.Error()))
	case len(changes) == 0:
		return p.Text("config.nothing-new")
	}
	text := p.Text("config.reloaded")
	for _, part := range []struct {
		applies config.Applies
		title   lang.Key
	}{{config.AtOnce, "config.at-once"}, {config.AfterRestart, "config.after-restart"}} {
		if lines := linesOf(p, changes, part.applies, !in.Group()); len(lines) > 0 {
			text += "\n\n" + p.Text(part.title) + "\n" + strings.Join(lines, "\n")
		}
	}
	if next := a.now(); next.Owner() != a.cfg.Owner() {
		text += "\n\n" + p.Text("config.other-owner")
	}
	return a.Scrub.String(text)
}

func linesOf(p lang.Printer, changes []config.Changed, applies config.Applies, values bool) (lines []string) {
	more := 0
	for _, c := range changes {
		switch {
		case c.Applies != applies:
		case len(lines) == mostChanges:
			more++
		case values && c.Before+c.After != "":
			lines = append(lines, fmt.Sprintf("- %s: %s → %s", c.Key, orNone(p, c.Before), orNone(p, c.After)))
		default:
			lines = append(lines, "- "+c.Key)
		}
	}
	if more > 0 {
		lines = append(lines, p.Text("config.more", more))
	}
	return lines
}

func orNone(p lang.Printer, value string) string {
	if value == "" {
		return p.Text("config.none")
	}
	return value
}

// ServeHangups reopens the file of the log and reloads the configuration at each of hangups, until stop.
func (a *App) ServeHangups(ctx context.Context, hangups <-chan os.Signal, log *Log) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				log.reopen()
				_, _ = a.Reload(ctx) // the log says what came of it
			}
		}
	})
	return func() { cancel(); serving.Wait() }
}
