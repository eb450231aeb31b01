package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/bot/menu"
	"ductor/cli"
	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/internal/rooted"
	"ductor/lang"
	"ductor/orchestrator"
)

// This file finds agents that are installed but not configured, offers them in chats, and adds them to the
// configuration.

// machineAgents contains the agents of this machine: those in use, and those that are installed but not configured.
type machineAgents struct {
	used []cli.Provider

	// mu guards the fields below. The field addable caches the result of toAdd, which searches for many programs and
	// can be slow.
	mu          sync.Mutex
	addable     []acp.Entry
	computedFor *settings // settings for which addable was computed
	at          time.Time // when addable was computed
}

// addableFor is how long the result of toAdd is cached.
const addableFor = 5 * time.Minute

// toAdd returns the installed agents that the configuration does not contain. The caller must hold mu.
func (m *machineAgents) toAdd(cfg *settings) []acp.Entry {
	if m.computedFor != cfg || time.Since(m.at) > addableFor {
		m.addable, m.computedFor, m.at = cfg.Agents.Addable(exec.LookPath), cfg, time.Now()
	}
	return m.addable
}

// offeredFile contains the agents that ductor has already offered in chats, one per line.
const offeredFile = "offered-agents"

// nextAgents implements menu.Offers.Next. ductor offers each agent only once. So nextAgents returns no agents if it
// cannot record the offer.
func (a *App) nextAgents() (agents []menu.NewAgent) {
	if !a.envs.Sandboxes.Policy().OnHost() {
		return nil
	}
	a.machine.mu.Lock()
	defer a.machine.mu.Unlock()
	path := filepath.Join(a.cfg.Storage.Dir, offeredFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	offered := strings.Fields(string(text))
	for _, e := range a.machine.toAdd(a.now()) {
		if !slices.Contains(offered, e.ID) {
			offered = append(offered, e.ID)
			agents = append(agents, menu.NewAgent{ID: e.ID, Name: e.Name, Program: e.Command})
		}
	}
	if err == nil && len(agents) > 0 {
		err = rooted.ReplaceFile(path, []byte(strings.Join(offered, "\n")), nil)
	}
	if err != nil {
		a.Log.Warn("record which agents were offered", "err", err)
		return nil
	}
	return agents
}

// knownAgent implements menu.Offers.Known.
func knownAgent(id string) (menu.NewAgent, bool) {
	e, ok := acp.FindEntry(id)
	return menu.NewAgent{ID: e.ID, Name: e.Name, Program: e.Command}, ok
}

// addAgent implements menu.Offers.Add. It tells the other owners that the user added the agent. A reload also applies
// other changes to the configuration file, which the user did not see. If such a change affects who can use or control
// the bot, addAgent sends an alarm to all owners instead.
func (a *App) addAgent(ctx context.Context, by orchestrator.Press, id string) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	err := a.writeAgent(id)
	if err != nil {
		a.Log.Warn("add an agent to the configuration", "agent", id, "err", err)
		return err
	}
	a.Log.Info("an agent was added to the configuration in a chat", "agent", id)
	owners := a.ownersBesides(by)
	r, err := a.reloadAndLog(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", menu.ErrNotLoaded, err)
	}
	e, _ := acp.FindEntry(id)
	expected := r.before
	expected.Agents = maps.Clone(expected.Agents)
	maps.Copy(expected.Agents, grantsOf(config.Config{Agents: config.Agents{}.With(e)}).Agents)
	if len(r.after.changes(lang.Printer{}, expected)) > 0 {
		a.raiseAlarm(ctx, "config.changed")
		return nil
	}
	a.announceReload(ctx, owners, r, func(p lang.Printer) string {
		return p.Text("config.added-by", a.bot.Chat().UserName(by.Person), e.Name)
	})
	return nil
}

func (a *App) writeAgent(id string) error {
	return config.AddAgent(a.cfg.File, id, config.Environment{Getenv: func(name string) string {
		if name == config.TokenVariable { // ductor removed the token from its environment at the start
			return a.cfg.Telegram.Token.Reveal()
		}
		return os.Getenv(name)
	}})
}
