package acp

import (
	"errors"
	"io"
	"sync"
	"time"
)

// queuedInput is how many bytes may wait for an agent to read them.
const queuedInput = 256 << 20

var errInputFull = errors.New("its input is closed, or it does not read it")

// parcel is a line on its way to the agent, or none with something to be done where it would be written.
type parcel struct {
	line []byte
	// before is called on the writing goroutine right before the line is written; nothing is written between.
	// The line is not written when it fails.
	before func() error
	sent   func(error) // is told how it went; may be nil
}

// writer writes to an agent without making anybody wait. Safe for concurrent use.
type writer struct {
	to    io.WriteCloser
	ready chan struct{} // a token when there is something to do
	done  chan struct{} // closed when nothing is written any more

	mu     sync.Mutex
	queue  []parcel
	bytes  int
	closed bool
}

func newWriter(to io.WriteCloser) *writer {
	w := &writer{to: to, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// send queues a parcel; it fails when too much waits already, or after close.
func (w *writer) send(p parcel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.bytes > 0 && w.bytes+len(p.line) > queuedInput {
		return errInputFull
	}
	w.queue = append(w.queue, p)
	w.bytes += len(p.line)
	wake(w.ready)
	return nil
}

// close gives the agent end of file once all that waits is written.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	wake(w.ready)
}

// flush waits until what was sent is written, but no longer than wait.
func (w *writer) flush(wait time.Duration) {
	done := make(chan struct{})
	if w.send(parcel{before: func() error { close(done); return nil }}) != nil {
		return // nothing is written any more
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-done:
	case <-w.done:
	case <-limit.C: // it does not read
	}
}

// drop throws away what waits, and closes.
func (w *writer) drop() {
	w.mu.Lock()
	queue := w.queue
	w.queue, w.bytes, w.closed = nil, 0, true
	wake(w.ready)
	w.mu.Unlock()
	for _, p := range queue {
		p.tell(errInputFull)
	}
}

func (w *writer) take() (queue []parcel, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue, w.queue, w.bytes = w.queue, nil, 0
	return queue, w.closed
}

func (w *writer) run() {
	defer close(w.done)
	for {
		queue, closed := w.take()
		for i, p := range queue {
			if err := w.write(p); err != nil {
				for _, rest := range queue[i+1:] {
					rest.tell(err)
				}
				w.drop() // the agent is gone: its output will say so
				return
			}
		}
		switch {
		case len(queue) > 0:
		case closed:
			_ = w.to.Close() // of a pipe that nobody writes to any more
			return
		default:
			<-w.ready
		}
	}
}

// write writes one parcel. Its error is that of the pipe; a parcel that must not go is only told so.
func (w *writer) write(p parcel) error {
	if p.before != nil {
		if err := p.before(); err != nil {
			p.tell(err)
			return nil
		}
	}
	if len(p.line) == 0 {
		return nil
	}
	_, err := w.to.Write(p.line)
	p.tell(err)
	return err
}

func (p parcel) tell(err error) {
	if p.sent != nil {
		p.sent(err)
	}
}

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
