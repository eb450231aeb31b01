package supervisor

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	drainIdle = 500 * time.Millisecond // silence after the agent's exit that counts as the end
	drainMost = 3 * time.Second        // a grandchild that talks on is cut off here
)

// drainReader reads an agent's pipe to its end, on one goroutine. Once the agent exited, what it had
// written by then is delivered however long that takes; for a grandchild that holds the pipe there is a
// deadline.
type drainReader struct {
	file *os.File

	mu     sync.Mutex
	exited time.Time // zero while the agent runs
	owed   int       // at most so much of what the agent wrote is still in the pipe

	caught    chan struct{} // closed when all the agent wrote was delivered
	closeOnce sync.Once
}

func newDrainReader(f *os.File) *drainReader {
	return &drainReader{file: f, caught: make(chan struct{})}
}

// agentExited tells the reader that the pipe's rightful writer is gone.
func (d *drainReader) agentExited() {
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
			continue // the agent exited during the read: look again, with the drain's own deadline
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

// pipeBytes is how much lies in a pipe unread.
func pipeBytes(f *os.File) int {
	n := 0
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return max(n, 0)
}
