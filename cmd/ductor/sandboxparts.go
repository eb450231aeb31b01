package main

import (
	"maps"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
)

// parts holds the sandboxes that belong to one conversation each, by their names. It is safe for concurrent use.
type parts struct {
	mu sync.Mutex
	by map[string]*sandbox
}

// get gives a part, and opens it if it is not open.
func (p *parts) get(name string, open func() *sandbox) *sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[name] == nil {
		if p.by == nil {
			p.by = map[string]*sandbox{}
		}
		p.by[name] = open()
	}
	return p.by[name]
}

func (p *parts) list() (all []*sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.by)) {
		all = append(all, p.by[name])
	}
	return all
}

// all lists the configured sandboxes and the open parts of them.
func (s *sandboxes) all() []*sandbox { return append(slices.Clone(s.configured), s.parts.list()...) }

// project gives the configured sandbox that in is or is a part of; nil if there is none.
func (s *sandboxes) project(in cli.Sandbox) *sandbox {
	i := slices.IndexFunc(s.configured, func(b *sandbox) bool { return b.name == in.Name() })
	if i < 0 || in.Alone() != "" && s.configured[i].setting.Isolation != config.IsolationConversation {
		return nil
	}
	return s.configured[i]
}

// find gives a sandbox, and opens the part of a conversation if it is not open; nil if the configuration has no sandbox
// of that name. It calls no engine.
func (s *sandboxes) find(in cli.Sandbox) *sandbox {
	of := s.project(in)
	if of == nil || in.Alone() == "" {
		return of
	}
	return s.parts.get(string(in), func() *sandbox {
		b := *of
		b.name = string(in)
		if b.why == nil {
			b.why = s.launch(&b)
		}
		return &b
	})
}

// reopen opens the parts that have a container.
func (s *sandboxes) reopen() {
	names, err := docker.Noted(s.path(dockerDir), s.owner())
	if err != nil {
		s.log.Warn("look which conversations have containers", "err", err)
	}
	for _, name := range names {
		s.find(cli.Sandbox(name))
	}
}

// alone says whether each conversation has a container of its own here.
func (b *sandbox) alone() bool { return b.setting.Isolation == config.IsolationConversation }
