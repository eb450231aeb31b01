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

// inUse contains the current configuration. Some settings change at once after a reload. Code must call inUse.now at
// each use of such a setting. All other settings may be read from inUse.cfg.
type inUse struct {
	cfg     config.Config // the configuration when ductor started
	machine machineAgents

	reloading sync.Mutex // allows one reload at a time
	current   atomic.Pointer[settings]
}

// settings contains a configuration, and values that are derived from it for frequent use. It is immutable: a reload
// creates new settings.
type settings struct {
	config.Config
	look     card.Look
	turns    conversation.TurnOptions
	roster   orchestrator.Roster
	projects map[string]string // directories of projects, by name
}

// now returns the current configuration. Settings that apply at once have the value of the last reload. All other
// settings have the value of the start.
func (u *inUse) now() *settings { return u.current.Load() }

func (u *inUse) setCurrent(cfg config.Config) {
	u.current.Store(&settings{
		Config: cfg, look: lookOf(cfg), turns: turnsOf(cfg), roster: RosterOf(cfg), projects: namedProjects(cfg),
	})
}

func (u *inUse) setStart(cfg config.Config) {
	u.cfg = cfg
	u.setCurrent(cfg)
}

// Reload reads the configuration file again. It applies changed settings, except for those that need a restart. It
// returns all changes, including those that need a restart. If it returns an error, nothing has changed. If different
// users can now use or control the bot, it sends an alarm to the owners, because no user in a chat asked for the reload.
func (a *App) Reload(ctx context.Context) ([]config.Changed, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	r, err := a.reloadAndLog(ctx)
	if err == nil {
		a.raiseAlarm(ctx, "config.changed")
	}
	return r.changes, err
}

// reloaded describes a reload.
type reloaded struct {
	changes       []config.Changed
	before, after grants
}

// reloadAndLog is like Reload, but notifies no users. The caller must hold reloading.
func (a *App) reloadAndLog(ctx context.Context) (r reloaded, err error) {
	r.before = grantsOf(a.now().Config)
	if r.changes, err = a.reload(context.WithoutCancel(ctx)); err != nil { // a reload must not stop halfway
		a.Log.Error("reload the configuration; the previous one stays in use", "err", err)
		return r, err
	}
	for _, c := range r.changes {
		a.Log.Info("the configuration changed", "key", c.Key, "before", c.Before, "after", c.After, "applies", c.Applies)
	}
	a.Log.Info("the configuration was reloaded", "changes", len(r.changes))
	logLinkedProjects(a.now().Config, a.Log)
	r.after = grantsOf(a.now().Config)
	return r, nil
}

// reading is the result of readAgain: a valid configuration file, and everything that a reload derives from it.
type reading struct {
	before, next config.Config
	changes      []config.Changed
	agents       agents
	providers    []cli.Provider // agents of this machine
	jobs         []orchestrator.Job
}

// readAgain reads the configuration file and checks whether a reload can apply it. It changes no settings.
func (a *App) readAgain() (r reading, err error) {
	file, err := a.Load()
	if err != nil {
		return r, err
	}
	r.before = a.now().Config
	if r.next, r.changes, err = r.before.Reloaded(file); err != nil {
		return r, err
	}
	for _, secret := range r.next.Secrets() {
		a.Scrub.Add(secret)
	}
	r.agents = a.agents(r.next)
	r.providers = r.agents.renewed(r.agents.hostEnv(a.host), r.before, a.machine.used)
	if problems := ProblemsOfTools(r.next, r.providers); len(problems) > 0 {
		return r, errors.New(strings.Join(problems, "\n"))
	}
	r.jobs, err = Jobs(r.next)
	return r, err
}

func (a *App) reload(ctx context.Context) ([]config.Changed, error) {
	read, err := a.readAgain()
	if err != nil {
		return nil, err
	}
	before, next, agents, providers := read.before, read.next, read.agents, read.providers
	if err := a.timers.scheduler.Sync(ctx, append(read.jobs, a.timers.hooks.Jobs()...)); err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	a.setCurrent(next)
	a.machine.used = providers
	a.service.SetProviders(func(in cli.Sandbox, present []cli.Provider) []cli.Provider {
		if in == "" {
			return providers
		}
		if b := a.envs.Sandboxes.Find(in); b != nil {
			return agents.renewed(agents.sandboxEnv(b), before, present)
		}
		return present
	}, agents.accounts(agents.hostEnv(a.host)))
	a.roles.Configure(next.Roles)
	a.attached.server.Recheck()
	a.leaveAccounts()
	if a.Level != nil {
		_ = a.Level.UnmarshalText([]byte(next.Log.Level)) // Load has checked the level
	}
	for _, w := range next.Warnings {
		a.Log.Warn("configuration", "doubt", w)
	}
	return read.changes, nil
}

const mostChanges = 15

// reloadFor reloads the configuration for a user, and describes the result in the user's language. In a group, it does
// not show the values of settings. The other owners get a message about the changes.
func (a *App) reloadFor(ctx context.Context, by orchestrator.Press) string {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	p, private := a.lang.Of(by.Conversation.Chat), !by.Conversation.Group()
	owners := a.ownersBesides(by)
	r, err := a.reloadAndLog(ctx)
	switch {
	case err != nil:
		return a.Scrub.String(p.Text("config.not-reloaded", err.Error()))
	case len(r.changes) == 0:
		return p.Text("config.nothing-new")
	}
	a.announceReload(ctx, owners, r, func(p lang.Printer) string {
		lines := append(formatChanges(p, r.changes, config.AtOnce, true),
			formatChanges(p, r.changes, config.AfterRestart, true)...)
		// The code block prevents Markdown in names and values of settings, which could hide other lines.
		return p.Text("config.reloaded-by", a.bot.Chat().UserName(by.Person)) + r.granted(p) +
			"\n\n```\n" + strings.Join(lines, "\n") + "\n```"
	})
	text := p.Text("config.reloaded")
	if private {
		text += r.granted(p)
	}
	for _, part := range []struct {
		applies config.Applies
		title   lang.Key
	}{{config.AtOnce, "config.at-once"}, {config.AfterRestart, "config.after-restart"}} {
		if lines := formatChanges(p, r.changes, part.applies, private); len(lines) > 0 {
			text += "\n\n" + p.Text(part.title) + "\n" + strings.Join(lines, "\n")
		}
	}
	if next := a.now(); next.Owner() != a.cfg.Owner() {
		text += "\n\n" + p.Text("config.other-owner")
	}
	return a.Scrub.String(text)
}

// granted describes how the reload changed who can use and control the bot. It returns "" if the reload changed nothing
// of this kind. Unlike formatChanges, granted omits no change, however many there are.
func (r reloaded) granted(p lang.Printer) string {
	lines := r.after.changes(p, r.before)
	if len(lines) == 0 {
		return ""
	}
	return "\n\n" + p.Text("config.granted") + "\n- " + strings.Join(lines, "\n- ")
}

func formatChanges(p lang.Printer, changes []config.Changed, applies config.Applies, values bool) (lines []string) {
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

// ServeHangups reopens the log and reloads the configuration at each SIGHUP, until the caller calls stop.
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
				_, _ = a.Reload(ctx) // Reload logs its error
			}
		}
	})
	return func() { cancel(); serving.Wait() }
}
