package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"ductor/cli"
)

// agentEntry is a provider in its environment, with its cached answers.
type agentEntry struct {
	provider cli.Provider
	home     cli.AccountHome // zero for the default log-in
	others   []*agentEntry   // the other accounts of the agent, sorted; only the default log-in lists them
	runEnv   *runEnv
	modes    *cached[[]cli.Mode]
	auth     *cached[authAnswer]
	models   *cached[modelList]
}

// runEnvs has all environments, this host first. If an environment belongs to only one conversation, runEnvs opens it
// when it is first needed. Safe for concurrent use.
type runEnvs struct {
	open func(cli.Sandbox) *runEnv // returns nil if there should be none

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
	for _, a := range s.opts.Accounts {
		if first := host.agents[a.Provider.Agent()]; first != nil {
			first.others = append(first.others, s.newEntry(host, a.Provider, a.AccountHome))
		}
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

// openRunEnv opens the environment of one conversation. It returns nil if the conversation should have none.
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
