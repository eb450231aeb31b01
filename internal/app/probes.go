package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"ductor/bot/checks"
	"ductor/cli"
	"ductor/cli/host"
	"ductor/cli/service"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/runner"
)

// This file checks whether the agents of this machine can be used.

// ProbeAgent checks whether an agent is installed and logged in. It uses no tokens of the agent's model.
func ProbeAgent(ctx context.Context, cfg config.Config, p cli.Provider) cli.AgentState {
	s := cli.AgentState{Agent: p.Agent(), Auth: p.Auth(ctx)}
	if s.Usable() {
		s.Mode = service.ChooseMode(p.Modes(), modesOf(cfg.Agents)[s.Agent])
	}
	return s
}

// probeTimeout limits the time of one check of all agents.
const probeTimeout = 30 * time.Second

// logAgents logs whether each agent on this machine can be used, if agents may run here. It is normal that some agents
// are not installed.
func (a *App) logAgents(ctx context.Context) {
	if !a.envs.Sandboxes.Policy().OnHost() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, s := range a.service.Agents(ctx, "") {
		log := a.Log.Info
		if !s.Usable() && (s.Auth.State == cli.Installed || s.Agent == a.cfg.Agents.Default) {
			log = a.Log.Warn
		}
		if ctx.Err() == nil {
			log("agent", "name", s.Agent, "state", s.String())
		}
	}
}

// ProbeAccounts checks whether the additional accounts of the agents on this machine can be used. It skips the default
// accounts.
func ProbeAccounts(ctx context.Context, cfg config.Config) (states []cli.AgentState, err error) {
	err = withProbeHost(cfg, func(cfg config.Config, launcher *host.Launcher, log *slog.Logger) {
		a := agents{cfg: cfg, log: log}
		all := a.accounts(a.hostEnv(launcher))
		states = make([]cli.AgentState, len(all))
		var looks sync.WaitGroup
		for i, one := range all {
			looks.Go(func() {
				s := cli.AgentState{
					Agent: one.Provider.Agent(), Account: one.Account, Auth: one.Auth(ctx, one.Provider),
				}
				if s.Usable() {
					s.Mode = service.ChooseMode(one.Provider.Modes(), modesOf(cfg.Agents)[s.Agent])
				}
				states[i] = s
			})
		}
		looks.Wait()
	})
	return states, err
}

// WithProbes calls f with the agents of this machine. Their processes run in a temporary storage directory.
func WithProbes(cfg config.Config, f func([]cli.Provider)) error {
	return withProbeHost(cfg, func(cfg config.Config, launcher *host.Launcher, log *slog.Logger) {
		a := agents{cfg: cfg, log: log}
		f(a.providers(a.hostEnv(launcher)))
	})
}

// withProbeHost calls f with a launcher and a copy of cfg. Both use a temporary storage directory.
func withProbeHost(cfg config.Config, f func(config.Config, *host.Launcher, *slog.Logger)) (err error) {
	dir, err := os.MkdirTemp("", "ductor-probe-")
	if err != nil {
		return fmt.Errorf("make a directory for probes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg.Storage.Dir = dir
	log := slog.New(slog.DiscardHandler)
	launcher, err := openHost(cfg, runner.Options{}, log)
	if err != nil {
		return err
	}
	f(cfg, launcher, log)
	return launcher.Close()
}

// Examined contains what /doctor checks.
type Examined struct {
	Running config.Config // the configuration in use
	Agents  []cli.Provider
	// Sandboxes are those that turns use. /doctor must not open them again, because directories may lead elsewhere now.
	Sandboxes *environment.Sandboxes
	// Mistakes is the error with which a reload of the configuration file would fail, or nil.
	Mistakes error
	// Changes contains the settings in the file that differ from Running.
	Changes []config.Changed
}

// examiner returns a function that checks the current configuration and its file, or nil if Options.Examine is nil.
func (a *App) examiner() func(context.Context) checks.Report {
	if a.Examine == nil {
		return nil
	}
	return func(ctx context.Context) checks.Report {
		agents := a.agents(a.now().Config)
		e := Examined{Running: agents.cfg, Sandboxes: a.envs.Sandboxes}
		e.Agents = agents.providers(agents.hostEnv(a.host))
		if a.Load != nil {
			a.reloading.Lock()
			read, err := a.readAgain()
			a.reloading.Unlock()
			e.Mistakes, e.Changes = err, read.changes
		}
		return a.Examine(ctx, e)
	}
}
