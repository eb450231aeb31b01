package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/supervisor"
)

// spareSupervisors is how many wait for the next agent, so that a start does not wait for a process of ours too.
const spareSupervisors = 1

// runsPath is where the runs of a configuration are kept.
func runsPath(cfg config.Config) string { return filepath.Join(cfg.Storage.Dir, runsDir) }

// openHost makes the launcher of this machine for the daemon.
func openHost(cfg config.Config, start supervisor.Options, log *slog.Logger) (*cli.Host, error) {
	a := cfg.Agents
	if start.Spares == 0 {
		start.Spares = spareSupervisors
	}
	return cli.OpenHost(cli.HostOptions{
		Dir: runsPath(cfg), Supervisor: start, MaxAge: a.StaleAfter, OrphanAfter: a.OrphanAfter, Grace: a.Grace, Logger: log,
	})
}

// withProbes lets f ask the agents about themselves, in a place that is gone afterwards.
func withProbes(cfg config.Config, f func([]cli.Provider)) (err error) {
	dir, err := os.MkdirTemp("", "ductor-probe-")
	if err != nil {
		return fmt.Errorf("make a place for probes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg.Storage.Dir = dir
	h := &house{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	if h.host, err = openHost(cfg, supervisor.Options{}, h.log); err != nil {
		return err
	}
	f(h.providers(h.hostGround()))
	return h.host.Close()
}
