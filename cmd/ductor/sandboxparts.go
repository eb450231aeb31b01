package main

import (
	"maps"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
)

// parts are the containers that conversations have for themselves, by the names of their sandboxes. Safe for concurrent
// use.
type parts struct {
	mu sync.Mutex
	by map[string]*room
}

// get gives a part, and opens it at need.
func (p *parts) get(name string, open func() *room) *room {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[name] == nil {
		if p.by == nil {
			p.by = map[string]*room{}
		}
		p.by[name] = open()
	}
	return p.by[name]
}

func (p *parts) list() (all []*room) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.by)) {
		all = append(all, p.by[name])
	}
	return all
}

// all are the configured sandboxes, and the parts of them that are open.
func (s *sandboxes) all() []*room { return append(slices.Clone(s.rooms), s.parts.list()...) }

// project is the configured sandbox that one belongs to; nil if there is none.
func (s *sandboxes) project(in cli.Sandbox) *room {
	i := slices.IndexFunc(s.rooms, func(r *room) bool { return r.name == in.Name() })
	if i < 0 || in.Alone() != "" && s.rooms[i].setting.Isolation != config.IsolationConversation {
		return nil
	}
	return s.rooms[i]
}

// room gives a sandbox, and opens the part of a conversation at need; nil if the configuration has none of that name. No
// engine is asked for anything.
func (s *sandboxes) room(in cli.Sandbox) *room {
	of := s.project(in)
	if of == nil || in.Alone() == "" {
		return of
	}
	return s.parts.get(string(in), func() *room {
		r := *of
		r.name = string(in)
		if r.why == nil {
			r.why = s.launch(&r)
		}
		return &r
	})
}

// reopen opens the parts that have a container.
func (s *sandboxes) reopen() {
	names, err := docker.Noted(s.path(dockerDir), s.owner())
	if err != nil {
		s.log.Warn("look which conversations have containers", "err", err)
	}
	for _, name := range names {
		s.room(cli.Sandbox(name))
	}
}

// alone says whether each conversation has a container of its own here.
func (r *room) alone() bool { return r.setting.Isolation == config.IsolationConversation }
