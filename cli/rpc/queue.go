package rpc

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxQueued is how many bytes may wait for a program to read them.
const maxQueued = 256 << 20

var (
	errFull   = errors.New("it does not read what it is sent")
	errClosed = errors.New("its input is closed")
)

// parcel is a message on its way to the program, or none with something to be done in its place.
type parcel struct {
	data   []byte
	before func(size int) error // see Request
	sent   func(error)
}

func (p parcel) tell(err error) {
	if p.sent != nil {
		p.sent(err)
	}
}

// queue writes to a program in order, from one goroutine, so that no caller waits for a program that does not read. Each
// parcel that it takes is told once how it went. Safe for concurrent use.
type queue struct {
	to    io.WriteCloser
	ready chan struct{} // a token when there is something to do
	done  chan struct{} // closed when nothing is written any more

	mu      sync.Mutex
	parcels []parcel
	bytes   int
	closed  error // why nothing more is taken
}

func newQueue(to io.WriteCloser) *queue {
	q := &queue{to: to, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// put fails when too much waits already, or after close.
func (q *queue) put(p parcel) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed != nil:
		return q.closed
	case q.bytes > 0 && q.bytes+len(p.data) > maxQueued:
		return errFull
	}
	q.parcels = append(q.parcels, p)
	q.bytes += len(p.data)
	q.wake()
	return nil
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// close gives the program end of file once all that waits is written.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed == nil {
		q.closed = errClosed
	}
	q.wake()
}

// drop throws away what waits, for the reason why, and closes.
func (q *queue) drop(why error) {
	q.mu.Lock()
	parcels := q.parcels
	q.parcels, q.bytes = nil, 0
	if q.closed == nil {
		q.closed = why
	}
	q.wake()
	q.mu.Unlock()
	for _, p := range parcels {
		p.tell(why)
	}
}

// flush waits until what was put is written, but no longer than limit.
func (q *queue) flush(limit time.Duration) {
	written := make(chan struct{})
	if q.put(parcel{sent: func(error) { close(written) }}) != nil {
		return // nothing is written any more
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C: // the program does not read
	}
}

func (q *queue) take() (parcels []parcel, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	parcels, q.parcels, q.bytes = q.parcels, nil, 0
	return parcels, q.closed != nil
}

func (q *queue) run() {
	defer close(q.done)
	defer q.to.Close() // of a pipe that is not written to any more
	for {
		parcels, closed := q.take()
		for i, p := range parcels {
			if err := q.write(p); err != nil {
				for _, rest := range parcels[i+1:] {
					rest.tell(err)
				}
				q.drop(err) // the program is gone: its output will say so
				return
			}
		}
		switch {
		case len(parcels) > 0:
		case closed:
			return
		default:
			<-q.ready
		}
	}
}

// write writes one parcel. Its error is that of the pipe; a parcel that must not go is only told so.
func (q *queue) write(p parcel) error {
	if p.before != nil {
		if err := p.before(len(p.data)); err != nil {
			p.tell(err)
			return nil
		}
	}
	if len(p.data) == 0 {
		p.tell(nil)
		return nil
	}
	_, err := q.to.Write(p.data)
	if err != nil {
		err = fmt.Errorf("write to the agent: %w", err)
	}
	p.tell(err)
	return err
}
