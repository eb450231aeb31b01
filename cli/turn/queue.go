package turn

import "sync"

// QueueLimit is the default limit of a Queue in bytes.
const QueueLimit = 64 << 20

// Queue is what waits for a turn to take it, in order, bounded by its bytes. Many put, one takes.
type Queue[T any] struct {
	limit int
	ready chan struct{} // a token when there is something to take, or to look at
	room  chan struct{} // a token when there is room again

	mu      sync.Mutex
	items   []T
	bytes   int
	dropped bool // something, for want of room
	closed  bool // nothing is put any more
}

// NewQueue makes an empty Queue. One whose reader falls behind by limit bytes drops what comes; 0 is QueueLimit.
func NewQueue[T any](limit int) *Queue[T] {
	if limit == 0 {
		limit = QueueLimit
	}
	return &Queue[T]{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Ready has a token when there is something to take, or Wake was called.
func (q *Queue[T]) Ready() <-chan struct{} { return q.ready }

// Wake has the turn look again at what it waits for, such as Loop.Waiting.
func (q *Queue[T]) Wake() { wake(q.ready) }

// Put appends v, which holds size bytes; what holds none is never dropped. It never waits, and says false of a Queue that
// is closed.
func (q *Queue[T]) Put(v T, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if size > 0 && q.bytes > 0 && q.bytes >= q.limit {
		q.dropped = true
	} else {
		q.items, q.bytes = append(q.items, v), q.bytes+size
	}
	wake(q.ready)
	return true
}

// AwaitRoom returns when Put would drop nothing, for a queue with one writer.
func (q *Queue[T]) AwaitRoom() {
	for q.isFull() {
		<-q.room
	}
}

func (q *Queue[T]) isFull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes >= q.limit && !q.closed
}

// Take removes all that waits. dropped says that something is missing since the last Take.
func (q *Queue[T]) Take() (all []T, dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, dropped = q.items, q.dropped
	q.items, q.bytes, q.dropped = nil, 0, false
	wake(q.room)
	return all, dropped
}

// Close makes every further Put do nothing, and gives what no turn took.
func (q *Queue[T]) Close() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.items
	q.items, q.bytes, q.closed = nil, 0, true
	wake(q.room)
	return rest
}

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
