package environment

import (
	"maps"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/docker"
)

// parts contains, by name, the sandboxes that belong to one conversation each. Safe for concurrent use.
type parts struct {
	mu sync.Mutex
	by map[string]*Sandbox
}

// get returns a part, and opens it if necessary.
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

// All returns the configured sandboxes and their open parts.
func (s *Sandboxes) All() []*Sandbox { return append(slices.Clone(s.configured), s.parts.list()...) }

// project returns the configured sandbox of in, or nil if none exists.
func (s *Sandboxes) project(in cli.Sandbox) *Sandbox {
	i := slices.IndexFunc(s.configured, func(b *Sandbox) bool { return b.Name == in.Name() })
	if i < 0 || in.Alone() != "" && s.configured[i].Setting.Isolation != docker.IsolationConversation {
		return nil
	}
	return s.configured[i]
}

// Find returns a sandbox, or nil if the configuration does not contain it. It opens a conversation's part if necessary.
// It sends no request to an engine.
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

// reopen opens the parts that already have a container.
func (s *Sandboxes) reopen() {
	names, err := docker.Noted(s.path(dockerDir), Owner(s.cfg))
	if err != nil {
		s.log.Warn("list conversations with containers", "err", err)
	}
	for _, name := range names {
		s.Find(cli.Sandbox(name))
	}
}

// alone reports whether each conversation has its own container.
func (b *Sandbox) alone() bool { return b.Setting.Isolation == docker.IsolationConversation }
