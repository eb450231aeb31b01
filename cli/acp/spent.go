package acp

import (
	"slices"
	"sync"

	"ductor/cli"
)

const maxSpent = 256

// spent stores the last reported cost of each session, because agents do not report the cost when they resume a
// session. The zero value is ready to use.
type spent struct {
	mu     sync.Mutex
	totals map[cli.AgentSessionID]float64 // costs in US dollars
	order  []cli.AgentSessionID           // least recently reported session first
}

// record stores the cost of a session. If there are more than maxSpent sessions, it removes the one that was reported
// least recently.
func (s *spent) record(id cli.AgentSessionID, total float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.totals == nil {
		s.totals = map[cli.AgentSessionID]float64{}
	}
	if i := slices.Index(s.order, id); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
	if len(s.order) == maxSpent {
		delete(s.totals, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
	s.totals[id], s.order = total, append(s.order, id)
}

// cost returns the cost of a session, or nil if it is unknown.
func (s *spent) cost(id cli.AgentSessionID) *float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if total, ok := s.totals[id]; ok {
		return &total
	}
	return nil
}
