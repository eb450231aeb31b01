package environment

import (
	"maps"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/docker"
)

// instances contains the open sandboxes of single conversations. Safe for concurrent use.
type instances struct {
	mu     sync.Mutex
	byName map[string]*Sandbox
}

// get returns the sandbox with this name, and opens it if necessary.
func (i *instances) get(name string, open func() *Sandbox) *Sandbox {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byName[name] == nil {
		if i.byName == nil {
			i.byName = map[string]*Sandbox{}
		}
		i.byName[name] = open()
	}
	return i.byName[name]
}

func (i *instances) list() (all []*Sandbox) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(i.byName)) {
		all = append(all, i.byName[name])
	}
	return all
}

// All returns the configured sandboxes, and the open sandboxes of single conversations.
func (s *Sandboxes) All() []*Sandbox {
	return append(slices.Clone(s.configured), s.instances.list()...)
}

// project returns the configured sandbox with the given name. If a conversation has its own instance of a sandbox,
// project accepts the name of the instance, too. It returns nil if no such sandbox is configured.
func (s *Sandboxes) project(in cli.Sandbox) *Sandbox {
	i := slices.IndexFunc(s.configured, func(b *Sandbox) bool { return b.Name == in.Name() })
	if i < 0 || in.Alone() != "" && s.configured[i].Setting.Isolation != docker.IsolationConversation {
		return nil
	}
	return s.configured[i]
}

// Find returns the sandbox with the given name, or nil if the configuration does not contain it. Find opens the sandbox
// if it belongs to a single conversation and is not open. It does not contact an engine.
func (s *Sandboxes) Find(in cli.Sandbox) *Sandbox {
	of := s.project(in)
	if of == nil || in.Alone() == "" {
		return of
	}
	return s.instances.get(string(in), func() *Sandbox {
		b := *of
		b.Name = string(in)
		if b.Err == nil {
			b.Err = s.launch(&b)
		}
		return &b
	})
}

// reopen opens the sandboxes of conversations that already have a container.
func (s *Sandboxes) reopen() {
	names, err := docker.Noted(s.path(dockerDir), Owner(s.cfg))
	if err != nil {
		s.log.Warn("list conversations with containers", "err", err)
	}
	for _, name := range names {
		s.Find(cli.Sandbox(name))
	}
}

func (b *Sandbox) alone() bool { return b.Setting.Isolation == docker.IsolationConversation }
