package runner

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// reportEvery is the number of bytes between two reports in which a client tells the runner how far it has read.
const reportEvery = 8 << 20

// Output is an agent's standard output. Only one goroutine may read. Other goroutines may call Gather and Hurry.
type Output struct {
	run  *Run
	from source
	pace pace

	offset   atomic.Int64
	reported int64 // offset in the last report to the runner; only the reading goroutine uses it
}

// source provides the data of an Output: from a file on this machine, or from a runner on another machine.
type source interface {
	// read waits until output is available at an offset, and reads it; see reader.read.
	read(p []byte, at int64) (int, error)
	noteActivity()
	// reportsOffset reports whether the client must tell the runner how far it has read the output. This is not
	// necessary if the runner itself sends the output.
	reportsOffset() bool
	close()
}

// newOutput returns a run's output from the given offset.
func (c *Client) newOutput(r *Run, offset int64) (*Output, error) {
	o := &Output{run: r, reported: offset}
	o.pace.urgent = make(chan struct{}, 1)
	o.offset.Store(offset)
	if c.remote != nil {
		o.from = &pulled{run: r}
		return o, nil
	}
	path := c.pathOf(r.ID(), outFile)
	f, err := openPlain(path)
	if err != nil {
		return nil, fmt.Errorf("open the output of run %s: %w", r.ID(), err)
	}
	o.from = &openFile{reader{
		file: f, path: path, files: &c.files, freed: r.info.Freed, detached: r.ctx.Done(), ended: r.end.ended,
		end:   r.outputEnd,
		wakes: make(chan struct{}, 1),
	}}
	o.from.noteActivity()
	return o, nil
}

// openPlain opens a regular file for reading. If the kernel permits it, reads do not change the time of the last
// access, because each such change would be written to the disk.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path), f.Close())
	}
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_NOATIME)
	return f, nil
}

// openFile is a source for a file on this machine.
type openFile struct{ reader }

func (f *openFile) reportsOffset() bool { return true }
func (f *openFile) close()              { _ = f.file.Close() }

func (o *Output) position() int64 { return o.offset.Load() }

// Read implements io.Reader; see Run.Stdout.
func (o *Output) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.pace.wait(o.run.ctx.Done())
	at := o.position()
	n, err := o.from.read(p, at)
	var lost *LostError
	if errors.As(err, &lost) {
		o.offset.Store(lost.next())
		return 0, err
	}
	now := at + int64(n)
	o.offset.Store(now)
	o.pace.read(n, len(p))
	if o.from.reportsOffset() && now-o.reported >= reportEvery {
		o.reported = now
		o.run.c.reportRead(o.run.ID(), now)
	}
	return n, err
}

// reportRead reports to the runner up to which offset the client has read.
func (c *Client) reportRead(id string, offset int64) {
	if l := c.currentLink(); l != nil {
		_ = l.send(request{Op: opRead, Run: id, Offset: offset}, nil) // if this fails, reattach sends the offset again
	}
}

// Gather delays output that arrives in many small pieces, so that Read returns larger pieces, at most 10 per second.
// The client then wakes up less often. Gather delays neither output after a pause nor large amounts of output.
func (o *Output) Gather() { o.pace.on.Store(true) }

// Hurry makes Read return the next output without a delay. It also makes the reader check the file frequently again.
func (o *Output) Hurry() {
	o.from.noteActivity()
	signalOnce(o.pace.urgent)
}

const (
	// paceEvery is the interval between reads of a busy stream. It is much shorter than the interval of updates to chat
	// messages. All streams are read at the same moments, so that the machine wakes up once for all of them.
	paceEvery = 100 * time.Millisecond
	// A read is large if it returns at least paceBig bytes or fills the buffer. After paceFull large reads in a row,
	// output is arriving in bulk. During the time paceBulk after the last of them, no read is delayed.
	paceBig  = 32 << 10
	paceFull = 2
	paceBulk = time.Second
	// paceSpare is the number of small reads without a delay after a pause in the output.
	paceSpare = 16
)

// pace delays the reads of a stream of many small pieces, so that each read returns more. Without a delay, an agent
// that writes word by word would wake ductor for each word. The methods have no effect before Output.Gather.
type pace struct {
	on     atomic.Bool
	urgent chan struct{}
	// Each small read adds paceEvery to busy. If busy is in the past, it is first set to the current time. While busy
	// is more than paceSpare*paceEvery in the future, the stream is busy, and its reads are delayed.
	busy time.Time
	full int       // number of large reads in a row so far
	bulk time.Time // reads before this time are not delayed, because output is arriving in bulk
}

// read records that a Read with a buffer of size capacity returned n bytes.
func (p *pace) read(n, capacity int) {
	if !p.on.Load() {
		return
	}
	now := time.Now()
	if n >= min(paceBig, capacity) {
		if p.full++; p.full >= paceFull {
			p.bulk = now.Add(paceBulk)
		}
		return
	}
	p.full = 0
	if p.busy.Before(now) {
		p.busy = now
	}
	p.busy = p.busy.Add(paceEvery)
}

// wait delays the next read if the stream is busy. The delay ends early after a call of Hurry, or when `gone` is
// closed.
func (p *pace) wait(gone <-chan struct{}) {
	if !p.on.Load() {
		return
	}
	select {
	case <-p.urgent:
		p.busy = time.Time{}
		return
	default:
	}
	now := time.Now()
	if p.full > 0 || now.Before(p.bulk) || p.busy.Sub(now) <= paceSpare*paceEvery {
		return
	}
	select {
	case <-time.After(now.Truncate(paceEvery).Add(paceEvery).Sub(now)):
	case <-gone:
	case <-p.urgent:
		p.busy = time.Time{}
	}
}
