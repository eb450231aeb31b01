package shared

import (
	"sync"

	"ductor/cli"
	"ductor/cli/turn"
)

// Members maps the IDs that the agent gave its sessions to values of type M. The zero value is empty. Safe for
// concurrent use.
type Members[M receiver] struct {
	mu  sync.Mutex
	all map[cli.AgentSessionID]M
}

type receiver interface {
	comparable
	Changed(c turn.Change)
}

// Changed implements rpc.Handler. It calls the method Changed of each value.
func (ms *Members[M]) Changed(c turn.Change) {
	for _, m := range ms.All() {
		m.Changed(c)
	}
}

// Add sets m as the value of a session. It returns false if the session already has a value.
func (ms *Members[M]) Add(id cli.AgentSessionID, m M) bool {
	if _, taken := ms.Of(id); taken {
		return false
	}
	ms.Set(id, m)
	return true
}

// Set sets m as the value of a session, even if the session already has another.
func (ms *Members[M]) Set(id cli.AgentSessionID, m M) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all == nil {
		ms.all = map[cli.AgentSessionID]M{}
	}
	ms.all[id] = m
}

// Remove removes a session if m is its value.
func (ms *Members[M]) Remove(id cli.AgentSessionID, m M) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all[id] == m {
		delete(ms.all, id)
	}
}

// Of returns the value of a session. ok is false if it has none.
func (ms *Members[M]) Of(id cli.AgentSessionID) (m M, ok bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m, ok = ms.all[id]
	return m, ok
}

// All returns the values of all sessions.
func (ms *Members[M]) All() []M {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	all := make([]M, 0, len(ms.all))
	for _, m := range ms.all {
		all = append(all, m)
	}
	return all
}
