package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookEarly is how often an output is looked at whose writes are to be told of, in case they are not; less and less
	// often when nothing comes, and not at all after lookLast.
	lookEarly = 500 * time.Millisecond
	lookLast  = 15 * time.Minute
	// lookSilent is how often it is looked at where the file system does not tell.
	lookSilent = 25 * time.Millisecond
	// silentAfter is how many looks must find what was not told of, one after the other.
	silentAfter = 2
)

// reader reads an agent's output from its file as it grows: for a client on this machine, and in the runner for clients
// elsewhere. One goroutine reads.
type reader struct {
	file  *os.File
	path  string
	files *announcer
	freed int64 // the output before this offset is not on disk

	gone  <-chan struct{} // closed when the reader left
	over  <-chan struct{} // closed when the end of the output is known
	end   func() int64    // that end; called once it is known
	wakes chan struct{}   // something was written

	active atomic.Int64 // when there was input or output last, in nanoseconds since 1970
}

// stir notes that something goes on: looks are frequent again.
func (r *reader) stir() { r.active.Store(time.Now().UnixNano()) }

// read reads what there is at an offset, and waits for it. It gives *LostError where output is missing, io.EOF at the
// end of the output, and ErrDetached once the reader left.
func (r *reader) read(p []byte, at int64) (int, error) {
	for looked := false; ; {
		n, err := r.take(p, at)
		if n > 0 || err != nil {
			if looked {
				r.files.miss(r.wakes)
			}
			return n, err
		}
		if looked, err = r.wait(at); err != nil {
			return 0, err
		}
	}
}

// take reads what is there. Nothing and no error means that nothing is there yet.
func (r *reader) take(p []byte, at int64) (int, error) {
	ended := false
	select {
	case <-r.gone:
		return 0, ErrDetached
	case <-r.over:
		ended = true
		p = p[:max(0, min(int64(len(p)), r.end()-at))]
	default:
	}
	n, err := r.file.ReadAt(p, at)
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, ErrDetached
	case n > 0:
		r.stir()
		if kept := r.keptFrom(p[:n], at); kept > at {
			return 0, &LostError{From: at, To: kept}
		}
		return n, nil
	case err != nil && err != io.EOF:
		return 0, fmt.Errorf("read the output: %w", err)
	case ended:
		return 0, io.EOF
	}
	if size := r.size(at); size < at { // a program cut its own output short
		return 0, &LostError{From: size, To: at, Damaged: true}
	}
	return 0, nil
}

// size is how long the file is now, or otherwise where that cannot be found out.
func (r *reader) size(otherwise int64) int64 {
	info, err := r.file.Stat()
	if err != nil {
		return otherwise
	}
	return info.Size()
}

// keptFrom is the offset of the first byte from at on that is kept; p is what was read there.
func (r *reader) keptFrom(p []byte, at int64) int64 {
	if at < r.freed {
		return r.freed
	}
	if p[0] != 0 {
		return at
	}
	data, err := unix.Seek(int(r.file.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // nothing is kept
		return r.size(at)
	}
	if err != nil || data <= at { // the agent printed it
		return at
	}
	block := make([]byte, 4<<10) // its beginning may be freed too, and has blocks of its own kept
	n, _ := r.file.ReadAt(block, data)
	return data + int64(n-len(bytes.TrimLeft(block[:n], "\x00")))
}

// wait waits until something was written, or is to be looked for. It says whether it was only to look.
func (r *reader) wait(at int64) (looked bool, err error) {
	every := r.files.arm(r)
	if r.size(at) != at { // written before the watch was there
		return false, nil
	}
	var look <-chan time.Time
	if quiet := time.Since(time.Unix(0, r.active.Load())); quiet < lookLast {
		timer := time.NewTimer(max(every, quiet/16))
		defer timer.Stop()
		look = timer.C
	}
	select {
	case <-r.wakes:
	case <-r.over:
	case <-look:
		looked = true
	case <-r.gone:
		err = ErrDetached
	}
	return looked, err
}

// announcer knows whether the file system tells of what is written. Safe for concurrent use.
type announcer struct {
	watcher *watcher // nil where there is none

	mu     sync.Mutex
	missed int // looks in a row that found what was not told of
}

// arm has a reader woken at the next write, and says how often to look all the same.
func (a *announcer) arm(r *reader) (every time.Duration) {
	if a.watcher == nil || a.watcher.arm(r.path, r.wakes, func() { a.tell(r.wakes) }) != nil {
		return lookSilent
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.missed >= silentAfter {
		return lookSilent
	}
	return lookEarly
}

func (a *announcer) tell(wakes chan<- struct{}) {
	a.mu.Lock()
	a.missed = 0
	a.mu.Unlock()
	poke(wakes)
}

// miss notes that a look found what the watch should have told of, unless the watch just did.
func (a *announcer) miss(wakes <-chan struct{}) {
	if len(wakes) > 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed++
}

// pull reads output for a client that cannot open the journal, and waits for it.
func (a *agent) pull(c *conn, q request) (r reply, err error) {
	a.mu.Lock()
	owned := a.owner == c
	a.mu.Unlock()
	if owned { // it has all that is before
		a.out.took(q.Offset)
		a.pause()
	}
	from := reader{
		file: a.out.out, path: filepath.Join(a.s.dir, a.ID, outFile), files: &a.s.files, freed: a.out.from(),
		gone: c.gone, over: a.over, end: a.outputEnd, wakes: make(chan struct{}, 1),
	}
	from.stir()
	buf := make([]byte, min(max(q.Length, 1), mostPulled))
	n, err := from.read(buf, q.Offset)
	switch {
	case errors.Is(err, ErrDetached): // it was collected, or the client is gone
		return r, syscall.ENOENT
	case err == io.EOF:
		status := a.status()
		return reply{Status: &status, Stderr: a.out.stderr()}, nil
	case errors.As(err, &r.Lost):
		return r, nil
	}
	r.body = buf[:n]
	return r, err
}

func (a *agent) outputEnd() int64 { return a.status().OutputEnd }
