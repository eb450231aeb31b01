package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"ductor/cli"
)

// agentEntry is a provider in an environment, with cached answers of its agent.
type agentEntry struct {
	provider cli.Provider
	home     cli.AccountHome // zero for the default account
	// others contains the entries of the agent's other accounts, sorted. Only the default account's entry has others.
	others   []*agentEntry
	runEnv   *runEnv
	modes    *cached[[]cli.Mode]
	auth     *cached[authAnswer]
	models   *cached[modelList]
	replaced bool // SetProviders has replaced the entry; only the pool's goroutine uses this field
}

func (e *agentEntry) agent() cli.Agent { return e.provider.Agent() }

// runEnvs contains the environments in which agents run, this host first. It opens an environment of a single
// conversation when the environment is first needed. Safe for concurrent use.
type runEnvs struct {
	open func(cli.Sandbox) *runEnv // returns nil if there should be no such environment

	mu      sync.Mutex
	all     []*runEnv
	settled []cli.TurnID // turns whose outcomes are stored, but perhaps not on the disk yet; oldest first
}

// addSettled adds a settled turn. It returns true if s.settled was empty before. The caller must then run
// Service.flushSettled.
func (s *runEnvs) addSettled(turn cli.TurnID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, turn)
	return len(s.settled) == 1
}

// settledAfter removes the first n turns from s.settled. It returns the turns that remain.
func (s *runEnvs) settledAfter(n int) []cli.TurnID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = slices.Delete(s.settled, 0, n)
	return slices.Clone(s.settled)
}

// get returns the environment with this name. It returns nil if there is none.
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

func (s *runEnvs) list() []*runEnv {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// enterRunEnvs creates the configured environments, this host first.
func (s *Service) enterRunEnvs() error {
	s.runEnvs = &runEnvs{open: s.openRunEnv}
	host, err := s.newRunEnv("", s.opts.Launchers, s.opts.Homes, s.opts.Providers)
	if err != nil {
		return err
	}
	for _, e := range host.entries() {
		s.addAccounts(e, s.opts.Accounts)
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

// openRunEnv creates the environment of one conversation. It returns nil if the conversation should not have its own.
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

func (s *Service) addAccounts(first *agentEntry, accounts []AccountProvider) {
	for _, a := range accounts {
		if a.Provider.Agent() == first.agent() {
			first.others = append(first.others, s.newEntry(first.runEnv, a.Provider, a.AccountHome))
		}
	}
}

// SetProviders replaces the agents of all open environments. It calls replace with an environment and its present
// providers, and uses the providers that replace returns. A provider that is in both lists keeps its sessions. If a
// provider is no longer in the list, its running turns end normally, its idle sessions are closed, and it gets no new
// turns.
//
// accounts lists the additional accounts of this host's agents. Only agents with a new provider get them.
func (s *Service) SetProviders(replace func(in cli.Sandbox, present []cli.Provider) []cli.Provider,
	accounts []AccountProvider) {
	for _, at := range s.runEnvs.list() {
		old := at.entries()
		var present []cli.Provider
		for _, e := range old {
			present = append(present, e.provider)
		}
		var next []*agentEntry
		for _, p := range replace(at.sandbox, present) {
			if i := slices.Index(present, p); i >= 0 {
				next = append(next, old[i])
			} else {
				next = append(next, s.newEntry(at, p, cli.AccountHome{}))
				if at.sandbox == "" {
					s.addAccounts(next[len(next)-1], accounts)
				}
			}
		}
		before := at.accounts()
		for _, e := range next {
			inheritLogins(append([]*agentEntry{e}, e.others...), before)
		}
		at.agents.Store(&next)
		after := at.accounts()
		s.pool.retire(slices.DeleteFunc(before, func(e *agentEntry) bool { return slices.Contains(after, e) }))
	}
}

// inheritLogins lets the provider of each entry take over the log-in from the old entry of the same agent and account.
func inheritLogins(entries, oldEntries []*agentEntry) {
	for _, e := range entries {
		next, ok := e.provider.(cli.Successor)
		i := slices.IndexFunc(oldEntries, func(old *agentEntry) bool {
			return old.agent() == e.agent() && old.home.Account == e.home.Account
		})
		if ok && i >= 0 && oldEntries[i] != e {
			next.Succeed(oldEntries[i].provider)
		}
	}
}

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
