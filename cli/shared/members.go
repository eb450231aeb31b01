package shared

import (
	"sync"

	"ductor/cli"
)

// Members finds what takes the messages of an agent session, by its name. The zero value is empty. Safe for concurrent use.
type Members[M comparable] struct {
	mu  sync.Mutex
	all map[cli.AgentSessionID]M
}

// Add enters m; false if the session has another.
func (ms *Members[M]) Add(id cli.AgentSessionID, m M) bool {
	if _, taken := ms.Of(id); taken {
		return false
	}
	ms.Set(id, m)
	return true
}

// Set enters m in the place of whatever was there.
func (ms *Members[M]) Set(id cli.AgentSessionID, m M) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all == nil {
		ms.all = map[cli.AgentSessionID]M{}
	}
	ms.all[id] = m
}

// Remove takes m out, unless the session has another by now.
func (ms *Members[M]) Remove(id cli.AgentSessionID, m M) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all[id] == m {
		delete(ms.all, id)
	}
}

// Of is what was entered for a session.
func (ms *Members[M]) Of(id cli.AgentSessionID) (m M, ok bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m, ok = ms.all[id]
	return m, ok
}

// All is what was entered for any session.
func (ms *Members[M]) All() []M {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	all := make([]M, 0, len(ms.all))
	for _, m := range ms.all {
		all = append(all, m)
	}
	return all
}
