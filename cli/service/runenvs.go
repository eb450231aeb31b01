package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"ductor/cli"
)

// agentEntry is a provider in an environment, with its cached answers.
type agentEntry struct {
	provider cli.Provider
	runEnv   *runEnv
	modes    *cached[[]cli.Mode]
	auth     *cached[authAnswer]
	models   *cached[modelList]
	replaced bool // by SetProviders: its sessions are not kept; belongs to the pool's goroutine
}

func (e *agentEntry) agent() cli.Agent { return e.provider.Agent() }

// runEnvs has all environments, this host first. If an environment belongs to only one conversation, runEnvs opens it
// when it is first needed. Safe for concurrent use.
type runEnvs struct {
	open func(cli.Sandbox) *runEnv // returns nil if the environment is not to exist

	mu  sync.Mutex
	all []*runEnv
}

// get returns the environment with a name, or nil.
func (s *runEnvs) get(sandbox cli.Sandbox) *runEnv {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.all, func(at *runEnv) bool { return at.sandbox == sandbox }); i >= 0 {
		return s.all[i]
	}
	at := s.open(sandbox)
	if at != nil {
		s.all = append(s.all, at)
	}
	return at
}

// list returns the open environments.
func (s *runEnvs) list() []*runEnv {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// enterRunEnvs registers the environments, this host first.
func (s *Service) enterRunEnvs() error {
	s.runEnvs = &runEnvs{open: s.openRunEnv}
	host, err := s.newRunEnv("", s.opts.Launchers, s.opts.Homes, s.opts.Providers)
	if err != nil {
		return err
	}
	all := []*runEnv{host}
	for _, o := range s.opts.RunEnvs {
		at, err := s.sandboxRunEnv(o)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(other *runEnv) bool { return other.sandbox == at.sandbox }) {
			return fmt.Errorf("two sandboxes are called %q", at.sandbox)
		}
		all = append(all, at)
	}
	s.runEnvs.all = all
	return nil
}

// openRunEnv opens the environment of one conversation. It returns nil if the conversation is to have none.
func (s *Service) openRunEnv(sandbox cli.Sandbox) *runEnv {
	if sandbox.Alone() == "" || s.opts.OpenRunEnv == nil {
		return nil
	}
	o, there := s.opts.OpenRunEnv(sandbox)
	if !there {
		return nil
	}
	at, err := s.sandboxRunEnv(o)
	if err != nil {
		s.opts.Logger.Error("the sandbox of a conversation cannot be used", "sandbox", string(sandbox), "err", err)
		return nil
	}
	return at
}

func (s *Service) sandboxRunEnv(o RunEnv) (*runEnv, error) {
	switch {
	case o.Sandbox == "":
		return nil, errors.New("a sandbox has no name")
	case o.Launcher == nil || len(o.Providers) == 0:
		return nil, fmt.Errorf("the sandbox %q needs a launcher and a provider", o.Sandbox)
	}
	at, err := s.newRunEnv(o.Sandbox, []cli.Launcher{o.Launcher}, o.Homes, o.Providers)
	if err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", o.Sandbox, err)
	}
	return at, nil
}

// SetProviders replaces the agents of all open environments. of returns the new providers of an environment, from its
// present ones; a provider that is in both keeps its sessions. A running turn of another one ends as it began, and the
// idle sessions of that provider are closed.
func (s *Service) SetProviders(of func(in cli.Sandbox, present []cli.Provider) []cli.Provider) {
	for _, at := range s.runEnvs.list() {
		old := at.entries()
		var present []cli.Provider
		for _, e := range old {
			present = append(present, e.provider)
		}
		var next []*agentEntry
		for _, p := range of(at.sandbox, present) {
			if i := slices.Index(present, p); i >= 0 {
				next = append(next, old[i])
			} else {
				next = append(next, s.newEntry(at, p))
			}
		}
		at.agents.Store(&next)
		s.pool.retire(slices.DeleteFunc(slices.Clone(old), func(e *agentEntry) bool {
			return slices.Contains(next, e)
		}))
	}
}

// launchers returns the launchers of one environment.
func (s *Service) launchers(sandbox cli.Sandbox) []cli.Launcher {
	if at := s.runEnvs.get(sandbox); at != nil {
		return at.launchers
	}
	return nil
}

// Launcher returns a launcher of an environment.
func (s *Service) Launcher(in cli.Sandbox) (cli.Launcher, error) {
	if all := s.launchers(in); len(all) > 0 {
		return all[0], nil
	}
	return nil, &cli.Failure{Kind: cli.NoSandbox, Sandbox: in, Reason: "it is not configured"}
}
