package environment

import (
	"maps"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/docker"
)

// parts holds the sandboxes that belong to one conversation each, by their names. It is safe for concurrent use.
type parts struct {
	mu sync.Mutex
	by map[string]*Sandbox
}

// get gives a part, and opens it if it is not open.
func (p *parts) get(name string, open func() *Sandbox) *Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[name] == nil {
		if p.by == nil {
			p.by = map[string]*Sandbox{}
		}
		p.by[name] = open()
	}
	return p.by[name]
}

func (p *parts) list() (all []*Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.by)) {
		all = append(all, p.by[name])
	}
	return all
}

// All lists the configured sandboxes and the open parts of them.
func (s *Sandboxes) All() []*Sandbox { return append(slices.Clone(s.configured), s.parts.list()...) }

// project gives the configured sandbox that in is or is a part of; nil if there is none.
func (s *Sandboxes) project(in cli.Sandbox) *Sandbox {
	i := slices.IndexFunc(s.configured, func(b *Sandbox) bool { return b.Name == in.Name() })
	if i < 0 || in.Alone() != "" && s.configured[i].Setting.Isolation != docker.IsolationConversation {
		return nil
	}
	return s.configured[i]
}

// Find gives a sandbox, and opens the part of a conversation if it is not open; nil if the configuration has no sandbox
// of that name. It calls no engine.
func (s *Sandboxes) Find(in cli.Sandbox) *Sandbox {
	of := s.project(in)
	if of == nil || in.Alone() == "" {
		return of
	}
	return s.parts.get(string(in), func() *Sandbox {
		b := *of
		b.Name = string(in)
		if b.Err == nil {
			b.Err = s.launch(&b)
		}
		return &b
	})
}

// reopen opens the parts that have a container.
func (s *Sandboxes) reopen() {
	names, err := docker.Noted(s.path(dockerDir), Owner(s.cfg))
	if err != nil {
		s.log.Warn("look which conversations have containers", "err", err)
	}
	for _, name := range names {
		s.Find(cli.Sandbox(name))
	}
}

// alone says whether each conversation has a container of its own here.
func (b *Sandbox) alone() bool { return b.Setting.Isolation == docker.IsolationConversation }
