package claude

import (
	"slices"
	"sync"
)

// steers are the messages that were sent in mid-turn. Claude takes them up between two tools or, if there is no
// such moment any more, after its result, with another result then. Safe for concurrent use.
type steers struct {
	mu      sync.Mutex
	sent    []string // in order
	pending []string // of those: not taken up yet
	over    bool     // the turn is
}

// newSteers knows what the previous process of ductor sent.
func newSteers(sent []string) *steers {
	return &steers{sent: slices.Clone(sent), pending: slices.Clone(sent)}
}

// add takes a message that is about to be sent. It is not new if it was sent before.
func (s *steers) add(id string) (isNew, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false, true
	}
	if slices.Contains(s.sent, id) {
		return false, false
	}
	s.sent, s.pending = append(s.sent, id), append(s.pending, id)
	return true, false
}

// all are the ids of all that were sent.
func (s *steers) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// waiting are the ids of those that Claude has not taken up, in order.
func (s *steers) waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pending)
}

// settle says that a message does not wait any more: Claude took it up, or gave it back.
func (s *steers) settle(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(p string) bool { return p == id })
}

// unsent takes a message back that never reached Claude.
func (s *steers) unsent(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(p string) bool { return p == id }
	s.sent, s.pending = slices.DeleteFunc(s.sent, is), slices.DeleteFunc(s.pending, is)
}

// end says whether a result ends the turn: nothing waits to be taken up. Then nothing more can be sent.
func (s *steers) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = len(s.pending) == 0
	return s.over
}

// close ends the turn whatever waits, and says whether anything did.
func (s *steers) close() (left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return len(s.pending) > 0
}
