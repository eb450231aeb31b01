package shared

import "sync"

// inboxLimit is how many bytes may wait for a turn to take them. Its neighbours in the process must not wait for it, so
// what comes beyond that is dropped.
const inboxLimit = 64 << 20

// Inbox is the queue from a process to one of the turns in it. Many put, one takes.
type Inbox[T any] struct {
	ready chan struct{}

	mu     sync.Mutex
	queue  []T
	bytes  int
	full   bool
	closed bool
}

// NewInbox makes an empty Inbox.
func NewInbox[T any]() *Inbox[T] { return &Inbox[T]{ready: make(chan struct{}, 1)} }

// Ready has a token when there is something to take, or Wake was called.
func (b *Inbox[T]) Ready() <-chan struct{} { return b.ready }

// Wake has whoever takes look again.
func (b *Inbox[T]) Wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Put appends v, which holds size bytes; what holds none is never dropped. It never waits, and says false of an Inbox that is
// closed.
func (b *Inbox[T]) Put(v T, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if size > 0 && b.bytes > 0 && b.bytes+size > inboxLimit {
		b.full = true
	} else {
		b.queue, b.bytes = append(b.queue, v), b.bytes+size
	}
	b.Wake()
	return true
}

// Take removes all that waits. full says that something was dropped since the last Take.
func (b *Inbox[T]) Take() (all []T, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, full = b.queue, b.full
	b.queue, b.bytes, b.full = nil, 0, false
	return all, full
}

// Close makes every further Put do nothing, and gives what no turn took.
func (b *Inbox[T]) Close() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.queue
	b.queue, b.bytes, b.closed = nil, 0, true
	return rest
}
