package turn

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// WriterLimit limits the bytes that a Writer queues for a program.
const WriterLimit = 256 << 20

var (
	// ErrFull means that a program does not read its input.
	ErrFull = errors.New("it does not read what it is sent")
	// ErrInputClosed means that the program's input is closed.
	ErrInputClosed = errors.New("its input is closed")
)

// Parcel is a message to a program. If Data is empty, the Writer sends nothing. It then calls Sent as soon as the earlier
// messages are written.
type Parcel struct {
	Data []byte
	// Before is called on the writing goroutine right before Data is written. size is the length of Data. If Before
	// returns an error, Data is not written. Before may be nil.
	Before func(size int) error
	// Sent is called once with the result of the write, unless Put returned an error. Sent may be nil.
	Sent func(error)
}

func (p Parcel) tell(err error) {
	if p.Sent != nil {
		p.Sent(err)
	}
}

// Writer writes to a program's input, in order, on its own goroutine. So callers do not wait if the program does not
// read. Safe for concurrent use.
type Writer struct {
	to    io.WriteCloser
	ready chan struct{} // buffered; contains a value if there is something to do
	done  chan struct{} // closed when the Writer has stopped

	mu      sync.Mutex
	parcels []Parcel // the queue
	bytes   int
	writing bool  // whether the goroutine is writing parcels that it has already removed from the queue
	closed  error // the reason why Put returns an error; nil while the Writer is open
}

// NewWriter starts a Writer. Close or Drop ends it and closes input.
func NewWriter(input io.WriteCloser) *Writer {
	w := &Writer{to: input, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Done returns a channel that is closed when the Writer has stopped.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Put queues p. It returns an error if the queue is full, or after Close or Drop.
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

// Close closes the program's input after all queued data is written. It does not wait for that.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed == nil {
		w.closed = ErrInputClosed
	}
	wake(w.ready)
}

// Drop removes all parcels from the queue, calls their Sent with reason, and closes the Writer.
func (w *Writer) Drop(reason error) {
	w.mu.Lock()
	parcels := w.parcels
	w.parcels, w.bytes = nil, 0
	if w.closed == nil {
		w.closed = reason
	}
	wake(w.ready)
	w.mu.Unlock()
	for _, p := range parcels {
		p.tell(reason)
	}
}

// Flush waits until all queued data is written, but no longer than limit.
func (w *Writer) Flush(limit time.Duration) {
	written := make(chan struct{})
	if w.Put(Parcel{Sent: func(error) { close(written) }}) != nil {
		return // the writer has stopped
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C: // the program does not read its input
	}
}

func (w *Writer) take() (parcels []Parcel, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parcels, w.parcels, w.bytes = w.parcels, nil, 0
	w.writing = len(parcels) > 0
	return parcels, w.closed != nil
}

// idle reports whether all data of Put is written.
func (w *Writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.parcels) == 0 && !w.writing
}

func (w *Writer) run() {
	defer close(w.done)
	defer w.to.Close() // a pipe without a reader returns an error, which does not matter
	for {
		parcels, closed := w.take()
		for i, p := range parcels {
			if err := w.write(p); err != nil {
				for _, rest := range parcels[i+1:] {
					rest.tell(err)
				}
				w.Drop(err) // an error means that the program has exited; the end of its output shows that
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

// write writes one parcel, and passes the result to Parcel.Sent. It returns an error if the write fails, but not if
// Parcel.Before fails: the Writer then continues with the next parcel.
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
