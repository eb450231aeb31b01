package turn

import (
	"sync"

	"ductor/cli"
)

// queued is one line on its way, or news about the output between two lines.
type queued struct {
	line      []byte
	oversized int64 // its size, if only its head was kept
	end       int64 // the offset after it
	lost      *cli.LostOutput
	caughtUp  bool          // what the previous process of ductor left unread ends here
	flushed   chan struct{} // on the way to the program: nothing to write; closed when its turn comes
}

// news says that q is no line.
func (q queued) news() bool { return q.lost != nil || q.caughtUp }

// lineQueue is a queue of lines bounded by their bytes. One goroutine puts, one takes.
type lineQueue struct {
	limit int
	ready chan struct{} // a token when there is something to take, or the end
	room  chan struct{} // a token when there is room again, or the reader has stopped

	mu      sync.Mutex
	lines   []queued
	bytes   int
	closed  bool // nothing is put any more
	dropped bool // nothing is taken any more
}

func newLineQueue(limit int) *lineQueue {
	return &lineQueue{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put appends q whatever waits, and says whether there is room for more.
func (l *lineQueue) put(q queued) (roomy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped || l.closed {
		return true
	}
	l.lines = append(l.lines, q)
	l.bytes += len(q.line)
	wake(l.ready)
	return l.bytes < l.limit
}

// offer appends q unless too much waits or the queue is closed. One line is always taken.
func (l *lineQueue) offer(q queued) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.dropped || l.bytes > 0 && l.bytes+len(q.line) > l.limit {
		return false
	}
	l.lines = append(l.lines, q)
	l.bytes += len(q.line)
	wake(l.ready)
	return true
}

// awaitRoom blocks the putting side until there is room.
func (l *lineQueue) awaitRoom() {
	for l.full() {
		<-l.room
	}
}

func (l *lineQueue) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes >= l.limit && !l.dropped
}

// take removes all that waits; open is false when nothing more will come.
func (l *lineQueue) take() (lines []queued, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, l.lines, l.bytes = l.lines, nil, 0
	wake(l.room)
	if l.closed && len(lines) > 0 { // the token that told of the end may have been this one's
		wake(l.ready)
	}
	return lines, !l.closed && !l.dropped
}

// close says that nothing more is put.
func (l *lineQueue) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	wake(l.ready)
}

// drop throws away what waits and frees the putting side for good.
func (l *lineQueue) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.bytes, l.dropped = nil, 0, true
	wake(l.room)
	wake(l.ready)
}

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
