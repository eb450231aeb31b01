package copilot

import (
	"sync"

	"ductor/cli/rpc"
)

// slotLimit is how many bytes of events may wait for a turn to take them. Whole messages come after their deltas,
// so that a turn that lost some ends with the right text.
const slotLimit = 64 << 20

// item is something that concerns a session: one of the fields is set.
type item struct {
	event   []byte       // params of a session.event
	request *rpc.Message // the process asks us
	sent    *sendReply   // what became of session.send
	rpc.Change
	end int64 // offset after it, for the clock of what is caught up with
}

// sendReply is the answer to session.send.
type sendReply struct {
	turn string
	err  error
}

// slot is where what concerns one session waits for its turn.
type slot struct {
	ready chan struct{} // a token when there is something to take

	mu    sync.Mutex
	busy  bool // a turn takes items
	from  int64
	items []item
	bytes int
	full  bool // something was thrown away
}

func newSlot() *slot { return &slot{ready: make(chan struct{}, 1)} }

// put hands over an item; false if no turn runs that would take it.
func (s *slot) put(it item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy || it.end != 0 && it.end <= s.from {
		return s.busy
	}
	if s.bytes += len(it.event); s.bytes > slotLimit && it.event != nil {
		s.bytes -= len(it.event)
		s.full = true
		return true
	}
	s.items = append(s.items, it)
	wake(s.ready)
	return true
}

// begin sends items to a turn from now on, those that end after from.
func (s *slot) begin(from int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.from, s.items, s.bytes, s.full = true, from, nil, 0, false
}

// take removes all that waits.
func (s *slot) take() (items []item, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, full = s.items, s.full
	s.items, s.bytes, s.full = nil, 0, false
	return items, full
}

// end gives back what no turn took.
func (s *slot) end() []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.items
	s.busy, s.items, s.bytes = false, nil, 0
	return left
}

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
