package turn

import "sync"

// QueueLimit is the default limit of a Queue, in bytes.
const QueueLimit = 64 << 20

// Queue contains items for a turn, in order, and limits their total size. It has many writers and one reader.
type Queue[T any] struct {
	limit int
	ready chan struct{} // buffered; contains a value if there are items, or Wake was called
	room  chan struct{} // buffered; contains a value if there may be room again

	mu      sync.Mutex
	items   []T
	bytes   int
	dropped bool // an item was dropped because the Queue was full
	closed  bool // Put has no effect any more
}

// NewQueue returns an empty Queue. The Queue is full when its items have at least limit bytes in total. A full Queue
// drops new items. A limit of 0 means QueueLimit.
func NewQueue[T any](limit int) *Queue[T] {
	if limit == 0 {
		limit = QueueLimit
	}
	return &Queue[T]{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Ready returns a channel that receives a value if there are items, or if Wake was called.
func (q *Queue[T]) Ready() <-chan struct{} { return q.ready }

// Wake makes the turn check its conditions, such as Loop.Waiting, again.
func (q *Queue[T]) Wake() { wake(q.ready) }

// Put appends v, which has the given size in bytes. It never blocks. If the Queue is full, Put drops v, unless size is
// 0. Put returns false if the Queue is closed.
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

// AwaitRoom waits until Put would not drop an item. It is only for a Queue with a single writer.
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

// Take removes and returns all items. dropped is true if Put has dropped an item since the last Take.
func (q *Queue[T]) Take() (all []T, dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, dropped = q.items, q.dropped
	q.items, q.bytes, q.dropped = nil, 0, false
	wake(q.room)
	return all, dropped
}

// Close closes the Queue and returns the remaining items.
func (q *Queue[T]) Close() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.items
	q.items, q.bytes, q.closed = nil, 0, true
	wake(q.room)
	return rest
}

// wake sends a value to the buffered channel c, unless it is full.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
