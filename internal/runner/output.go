package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
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
	// tellEvery is after how many bytes a reader tells the runner its offset.
	tellEvery = 8 << 20
)

// Output is the agent's standard output: a file that it appends to. One goroutine reads; Gather and Hurry may be called
// at any time.
type Output struct {
	run  *Run
	path string
	file *os.File
	pace pace

	wakes  chan struct{} // something was written, or ended
	offset atomic.Int64
	active atomic.Int64 // when there was input or output last, in nanoseconds since 1970
	told   int64        // offset that the runner knows; the reader's
}

// openPlain opens a regular file to be read.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no regular file", path), f.Close())
	}
	return f, nil
}

func openOutput(r *Run, path string, offset int64) (*Output, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	o := &Output{run: r, path: path, file: f, wakes: make(chan struct{}, 1), told: offset}
	o.pace.urgent = make(chan struct{}, 1)
	o.offset.Store(offset)
	o.stir()
	return o, nil
}

func (o *Output) position() int64 { return o.offset.Load() }

// size is how long the file is now.
func (o *Output) size() int64 {
	info, err := o.file.Stat()
	if err != nil {
		return o.position()
	}
	return info.Size()
}

func (o *Output) close() { _ = o.file.Close() }

// wake makes a reader that waits look.
func (o *Output) wake() {
	select {
	case o.wakes <- struct{}{}:
	default:
	}
}

// stir notes that something goes on: looks are frequent again.
func (o *Output) stir() { o.active.Store(time.Now().UnixNano()) }

// Read is as Run.Stdout says.
func (o *Output) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.pace.wait(o.run.gone)
	for looked := false; ; {
		n, err := o.take(p)
		if n > 0 || err != nil {
			if looked {
				o.run.c.files.miss(o.wakes)
			}
			o.pace.read(n)
			return n, err
		}
		if looked, err = o.wait(); err != nil {
			return 0, err
		}
	}
}

// take reads what is there. Nothing and no error means that nothing is there yet.
func (o *Output) take(p []byte) (int, error) {
	select {
	case <-o.run.gone:
		return 0, ErrDetached
	default:
	}
	status, phase := o.run.Status(), o.run.at()
	at := o.position()
	if phase == runEnded {
		p = p[:max(0, min(int64(len(p)), status.OutputEnd-at))]
	}
	n, err := o.file.ReadAt(p, at)
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, ErrDetached
	case n > 0:
		return o.took(p[:n], at)
	case err != nil && err != io.EOF:
		return 0, fmt.Errorf("read the output of run %s: %w", o.run.ID(), err)
	case phase == runEnded:
		return 0, io.EOF
	}
	if size := o.size(); size < at { // a program cut its own output short
		o.offset.Store(size)
		return 0, &LostError{From: size, To: at, Damaged: true}
	}
	return 0, nil
}

// took notes what was read. Where a hole was read, the output was freed.
func (o *Output) took(p []byte, at int64) (int, error) {
	if kept := o.keptFrom(p, at); kept > at {
		o.offset.Store(kept)
		return 0, &LostError{From: at, To: kept}
	}
	now := at + int64(len(p))
	o.offset.Store(now)
	o.stir()
	if now-o.told >= tellEvery {
		o.told = now
		o.run.c.tellRead(o.run.ID(), now)
	}
	return len(p), nil
}

// keptFrom is the offset of the first byte from at on that is kept; p is what was read there.
func (o *Output) keptFrom(p []byte, at int64) int64 {
	if freed := o.run.info.Freed; at < freed {
		return freed
	}
	if p[0] != 0 {
		return at
	}
	data, err := unix.Seek(int(o.file.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // nothing is kept
		return o.size()
	}
	if err != nil || data <= at { // the agent printed it
		return at
	}
	block := make([]byte, 4<<10) // its beginning may be freed too, and has blocks of its own kept
	n, _ := o.file.ReadAt(block, data)
	return data + int64(n-len(bytes.TrimLeft(block[:n], "\x00")))
}

// wait waits until something was written, or is to be looked for. It says whether it was only to look.
func (o *Output) wait() (looked bool, err error) {
	every := o.run.c.files.arm(o)
	if o.size() != o.position() { // written before the watch was there
		return false, nil
	}
	var look <-chan time.Time
	if quiet := time.Since(time.Unix(0, o.active.Load())); quiet < lookLast {
		timer := time.NewTimer(max(every, quiet/16))
		defer timer.Stop()
		look = timer.C
	}
	select {
	case <-o.wakes:
		return false, nil
	case <-look:
		return true, nil
	case <-o.run.gone:
		return false, ErrDetached
	}
}

// announcer knows whether the file system tells of what is written. Safe for concurrent use.
type announcer struct {
	watcher *watcher // nil where there is none

	mu     sync.Mutex
	missed int // looks in a row that found what was not told of
}

// arm has an output woken at the next write, and says how often to look all the same.
func (a *announcer) arm(o *Output) (every time.Duration) {
	if a.watcher == nil || a.watcher.arm(o.path, func() { a.tell(o) }) != nil {
		return lookSilent
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.missed >= silentAfter {
		return lookSilent
	}
	return lookEarly
}

func (a *announcer) tell(o *Output) {
	a.mu.Lock()
	a.missed = 0
	a.mu.Unlock()
	o.wake()
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

// tellRead tells the runner how far an output was read.
func (c *Client) tellRead(id string, offset int64) {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l != nil {
		_ = l.send(request{Op: opRead, Run: id, Offset: offset}, nil) // a new connection tells anew
	}
}

// Gather has output that comes in many small pieces come in gulps from now on, of which there are 20 a second at the
// most; what comes after a silence, or in bulk, still comes at once. It spares a client that shows what it reads to
// people a wake-up for every word.
func (o *Output) Gather() { o.pace.on.Store(true) }

// Hurry has what comes next come at once, however busy the agent was: somebody waits for it.
func (o *Output) Hurry() {
	o.stir()
	select {
	case o.pace.urgent <- struct{}{}:
	default:
	}
}
