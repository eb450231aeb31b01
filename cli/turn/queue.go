package turn

import "sync"

// QueueLimit is the default limit of a Queue in bytes.
const QueueLimit = 64 << 20

// Queue contains items for a turn, in order. It limits their total size in bytes. It has many writers and one reader.
type Queue[T any] struct {
	limit int
	ready chan struct{} // has a token if there is an item or a condition to check
	room  chan struct{} // has a token if there is room again

	mu      sync.Mutex
	items   []T
	bytes   int
	dropped bool // whether an item was dropped for lack of room
	closed  bool // whether Put has no effect any more
}

// NewQueue returns an empty Queue. While items of more than limit bytes wait, the Queue drops new items. 0 means
// QueueLimit.
func NewQueue[T any](limit int) *Queue[T] {
	if limit == 0 {
		limit = QueueLimit
	}
	return &Queue[T]{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Ready returns a channel that receives a token if an item waits, or if Wake was called.
func (q *Queue[T]) Ready() <-chan struct{} { return q.ready }

// Wake makes the turn check its conditions again, such as Loop.Waiting.
func (q *Queue[T]) Wake() { wake(q.ready) }

// Put appends v with a size in bytes. The Queue never drops an item of size 0. Put never blocks. It returns false if
// the Queue is closed.
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

// AwaitRoom waits until Put would drop nothing. It is for a Queue with a single writer.
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

// Take removes and returns all items. dropped reports whether an item was dropped since the last Take.
func (q *Queue[T]) Take() (all []T, dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, dropped = q.items, q.dropped
	q.items, q.bytes, q.dropped = nil, 0, false
	wake(q.room)
	return all, dropped
}

// Close makes further calls of Put fail, and returns the remaining items.
func (q *Queue[T]) Close() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.items
	q.items, q.bytes, q.closed = nil, 0, true
	wake(q.room)
	return rest
}

// wake puts a token into c, unless c already contains one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
