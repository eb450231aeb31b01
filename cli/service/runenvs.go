package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"ductor/cli"
)

// runEnvs are all places, this host first. Those that a conversation has for itself are opened when they are first asked
// for. Safe for concurrent use.
type runEnvs struct {
	open func(cli.Sandbox) (*runEnv, error) // errNoRunEnv for one that is not configured; nil opens none

	mu  sync.Mutex
	by  map[cli.Sandbox]*runEnv
	all []*runEnv
}

var errNoRunEnv = errors.New("it is not configured")

// get gives a place; nil if there is none of that name.
func (s *runEnvs) get(sandbox cli.Sandbox) *runEnv {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.by[sandbox]; at != nil || s.open == nil {
		return at
	}
	at, err := s.open(sandbox)
	if err != nil {
		return nil
	}
	s.by[sandbox] = at
	s.all = append(s.all, at)
	return at
}

// list gives those that are open.
func (s *runEnvs) list() []*runEnv {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *runEnvs) enter(at *runEnv) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[at.sandbox] != nil {
		return fmt.Errorf("two sandboxes are called %q", at.sandbox)
	}
	s.by[at.sandbox] = at
	s.all = append(s.all, at)
	return nil
}

// enterSites makes the places known, this host first.
func (s *Service) enterSites() error {
	s.runEnvs = &runEnvs{by: map[cli.Sandbox]*runEnv{}}
	host, err := s.newRunEnv("", s.opts.Launchers, s.opts.Homes, s.opts.Providers)
	if err != nil {
		return err
	}
	if err := s.runEnvs.enter(host); err != nil {
		return err
	}
	for _, o := range s.opts.RunEnvs {
		at, err := s.sandboxRunEnv(o)
		if err != nil {
			return err
		}
		if err := s.runEnvs.enter(at); err != nil {
			return err
		}
	}
	if s.opts.OpenRunEnv != nil {
		s.runEnvs.open = s.openRunEnv
	}
	return nil
}

// openRunEnv opens the place of one conversation.
func (s *Service) openRunEnv(sandbox cli.Sandbox) (*runEnv, error) {
	if sandbox.Alone() == "" {
		return nil, errNoRunEnv
	}
	o, there := s.opts.OpenRunEnv(sandbox)
	if !there {
		return nil, errNoRunEnv
	}
	return s.sandboxRunEnv(o)
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

// launchers are those of one place.
func (s *Service) launchers(sandbox cli.Sandbox) []cli.Launcher {
	if at := s.runEnvs.get(sandbox); at != nil {
		return at.launchers
	}
	return nil
}
