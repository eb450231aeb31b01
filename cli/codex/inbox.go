package codex

import (
	"sync"

	"ductor/cli/rpc"
)

// inboxLimit is how many bytes of messages may wait for a turn to take them. Beyond it the turn has failed:
// its neighbours in the same process must not wait for it.
const inboxLimit = 64 << 20

// news is what a turn gets to know: a message, or what happened to the connection.
type news struct {
	rpc.Message
	rpc.Change
	denied *inquiry // a person said no, for this reason
	reason string
	size   int
}

// inbox is the queue from a process to one of the turns in it. Many put, one takes.
type inbox struct {
	ready chan struct{} // a token when there is something to take

	mu     sync.Mutex
	queue  []news
	bytes  int
	full   bool
	closed bool
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// put appends n. It never waits.
func (b *inbox) put(n news) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.full {
		return
	}
	n.size = len(n.Params) + len(n.Result)
	if b.bytes+n.size > inboxLimit && b.bytes > 0 {
		b.full, b.queue, b.bytes = true, nil, 0
	} else {
		b.queue = append(b.queue, n)
		b.bytes += n.size
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take removes all that waits. full is true when some of it had to be thrown away.
func (b *inbox) take() (all []news, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.queue, b.bytes = b.queue, nil, 0
	return all, b.full
}

// close makes every further put do nothing, and says what was left.
func (b *inbox) close() []news {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.queue
	b.queue, b.bytes, b.closed = nil, 0, true
	return left
}
