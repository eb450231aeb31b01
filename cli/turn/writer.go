package turn

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// WriterLimit is how many bytes may wait for a program to read them.
const WriterLimit = 256 << 20

var (
	// ErrFull says that a program does not read.
	ErrFull = errors.New("it does not read what it is sent")
	// ErrInputClosed says that nothing is sent to a program any more.
	ErrInputClosed = errors.New("its input is closed")
)

// Parcel is a message on its way to a program, or none with something to be done in its place.
type Parcel struct {
	Data []byte
	// Before is called on the goroutine that writes, right before Data, whose size it gets. Data is not written when it
	// fails. May be nil.
	Before func(size int) error
	// Sent is told once how writing went, unless Put failed. May be nil.
	Sent func(error)
}

func (p Parcel) tell(err error) {
	if p.Sent != nil {
		p.Sent(err)
	}
}

// Writer writes to a program in order, from one goroutine, so that no caller waits for a program that does not read. Safe
// for concurrent use.
type Writer struct {
	to    io.WriteCloser
	ready chan struct{} // a token when there is something to do
	done  chan struct{} // closed when nothing is written any more

	mu      sync.Mutex
	parcels []Parcel
	bytes   int
	closed  error // why nothing more is taken
}

// NewWriter begins to write to a program. Close or Drop ends it, and the program's input.
func NewWriter(to io.WriteCloser) *Writer {
	w := &Writer{to: to, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Done is closed when nothing is written any more.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Put fails when too much waits already, or after Close.
func (w *Writer) Put(p Parcel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed != nil:
		return w.closed
	case w.bytes > 0 && w.bytes+len(p.Data) > WriterLimit:
		return ErrFull
	}
	w.parcels = append(w.parcels, p)
	w.bytes += len(p.Data)
	wake(w.ready)
	return nil
}

// Close gives the program end of file once all that waits is written.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed == nil {
		w.closed = ErrInputClosed
	}
	wake(w.ready)
}

// Drop throws away what waits, for the reason why, and closes.
func (w *Writer) Drop(why error) {
	w.mu.Lock()
	parcels := w.parcels
	w.parcels, w.bytes = nil, 0
	if w.closed == nil {
		w.closed = why
	}
	wake(w.ready)
	w.mu.Unlock()
	for _, p := range parcels {
		p.tell(why)
	}
}

// Flush waits until what was put is written, but no longer than limit.
func (w *Writer) Flush(limit time.Duration) {
	written := make(chan struct{})
	if w.Put(Parcel{Sent: func(error) { close(written) }}) != nil {
		return // nothing is written any more
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C: // the program does not read
	}
}

func (w *Writer) take() (parcels []Parcel, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parcels, w.parcels, w.bytes = w.parcels, nil, 0
	return parcels, w.closed != nil
}

func (w *Writer) run() {
	defer close(w.done)
	defer w.to.Close() // of a pipe that is not written to any more
	for {
		parcels, closed := w.take()
		for i, p := range parcels {
			if err := w.write(p); err != nil {
				for _, rest := range parcels[i+1:] {
					rest.tell(err)
				}
				w.Drop(err) // the program is gone: its output will say so
				return
			}
		}
		switch {
		case len(parcels) > 0:
		case closed:
			return
		default:
			<-w.ready
		}
	}
}

// write writes one parcel. Its error is that of the pipe; a parcel that must not go is only told so.
func (w *Writer) write(p Parcel) error {
	if p.Before != nil {
		if err := p.Before(len(p.Data)); err != nil {
			p.tell(err)
			return nil
		}
	}
	if len(p.Data) == 0 {
		p.tell(nil)
		return nil
	}
	_, err := w.to.Write(p.Data)
	if err != nil {
		err = fmt.Errorf("write to the agent: %w", err)
	}
	p.tell(err)
	return err
}
