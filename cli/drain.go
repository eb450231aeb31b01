package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	drainIdle = 500 * time.Millisecond // silence after the program's exit that counts as the end
	drainMost = 3 * time.Second        // a grandchild that talks on is cut off here
)

// drainReader reads a program's pipe to its end, on one goroutine. Once the program exited, what it had
// written by then is delivered however long that takes; for a grandchild that holds the pipe there is a
// deadline.
type drainReader struct {
	file *os.File

	mu     sync.Mutex
	exited time.Time // zero while the program runs
	owed   int       // at most so much of what the program wrote is still in the pipe

	caught    chan struct{} // closed when all the program wrote was delivered
	closeOnce sync.Once
}

func newDrainReader(f *os.File) *drainReader {
	return &drainReader{file: f, caught: make(chan struct{})}
}

// programExited tells the reader that the pipe's rightful writer is gone.
func (d *drainReader) programExited() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.exited = time.Now()
	d.owed = pipeBytes(d.file)
	_ = d.file.SetReadDeadline(d.exited) // wakes the Read that waits; on a closed file there is none
}

func (d *drainReader) Read(p []byte) (int, error) {
	for {
		exited := d.enter()
		n, err := d.file.Read(p)
		if n > 0 {
			if exited {
				d.paid(n)
			}
			return n, nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !exited {
			continue // the program exited meanwhile: look again, with the drain's own deadline
		}
		d.end()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
		return 0, err
	}
}

// enter begins a Read: all that was read before is delivered now. It sets how long this one may take.
func (d *drainReader) enter() (exited bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.exited.IsZero() {
		return false
	}
	d.owed = min(d.owed, pipeBytes(d.file))
	var by time.Time // none: what is owed is there already
	if d.owed == 0 {
		d.caughtUp()
		by = time.Now().Add(drainIdle)
		if most := d.exited.Add(drainMost); most.Before(by) {
			by = most
		}
	}
	_ = d.file.SetReadDeadline(by) // fails on a closed file only, and then Read says so
	return true
}

// paid counts bytes of a Read that began after the exit.
func (d *drainReader) paid(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owed = max(d.owed-n, 0)
}

// end closes the pipe.
func (d *drainReader) end() {
	d.closeOnce.Do(func() { _ = d.file.Close() })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.caughtUp()
}

// caughtUp is called with mu held.
func (d *drainReader) caughtUp() {
	select {
	case <-d.caught:
	default:
		close(d.caught)
	}
}

// tail keeps the last bytes of a stream.
type tail struct {
	mu   sync.Mutex
	keep int
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if len(t.data) > 2*t.keep {
		t.data = append(t.data[:0], t.data[len(t.data)-t.keep:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data[max(len(t.data)-t.keep, 0):])
}
