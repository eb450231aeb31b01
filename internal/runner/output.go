package runner

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// tellEvery is after how many bytes a reader tells the runner its offset.
const tellEvery = 8 << 20

// Output is the agent's standard output. One goroutine reads; Gather and Hurry may be called at any time.
type Output struct {
	run  *Run
	from source
	pace pace

	offset atomic.Int64
	told   int64 // offset that the runner knows; the reader's
}

// source is where an Output reads: a file of this machine, or a runner elsewhere.
type source interface {
	// read gives what there is at an offset, and waits for it; see reader.read.
	read(p []byte, at int64) (int, error)
	stir()
	// tells says whether the runner is to be told how far was read: one that is asked for the output knows.
	tells() bool
	close()
}

// newOutput reads a run's output from an offset on.
func (c *Client) newOutput(r *Run, offset int64) (*Output, error) {
	o := &Output{run: r, told: offset}
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
		file: f, path: path, files: &c.files, freed: r.info.Freed, gone: r.life.Done(), over: r.ended, end: r.outputEnd,
		wakes: make(chan struct{}, 1),
	}}
	o.from.stir()
	return o, nil
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

// openFile is a source on this machine.
type openFile struct{ reader }

func (f *openFile) tells() bool { return true }
func (f *openFile) close()      { _ = f.file.Close() }

func (o *Output) position() int64 { return o.offset.Load() }

// Read is as Run.Stdout says.
func (o *Output) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.pace.wait(o.run.life.Done())
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
	if o.from.tells() && now-o.told >= tellEvery {
		o.told = now
		o.run.c.tellRead(o.run.ID(), now)
	}
	return n, err
}

// tellRead tells the runner how far an output was read.
func (c *Client) tellRead(id string, offset int64) {
	if l := c.alive(); l != nil {
		_ = l.send(request{Op: opRead, Run: id, Offset: offset}, nil) // a new connection tells anew
	}
}

// Gather has output that comes in many small pieces come in gulps from now on, of which there are 20 a second at the
// most; what comes after a silence, or in bulk, still comes at once. It spares a client that shows what it reads to
// people a wake-up for every word.
func (o *Output) Gather() { o.pace.on.Store(true) }

// Hurry has what comes next come at once, however busy the agent was: somebody waits for it.
func (o *Output) Hurry() {
	o.from.stir()
	poke(o.pace.urgent)
}

const (
	// paceEvery is how far apart the reads of a busy stream are. It is far below the rhythm in which people
	// are shown anything, and the moments are the same for all streams, so that many wake the machine once.
	paceEvery = 50 * time.Millisecond
	// paceFull is how many reads in a row of paceBig, or that fill what the client reads into, are no talk word by
	// word, but a file that somebody waits for. For paceBulk after it reads come at full speed.
	paceBig  = 32 << 10
	paceFull = 2
	paceBulk = time.Second
	// paceSpare is how many reads may come as fast as there is something to read.
	paceSpare = 16
)

// pace lets a stream of many small pieces gather a little before it is read: an agent that writes word by word would
// otherwise wake us for each word. What comes after a silence is read at once, and so are what comes in bulk and what
// somebody waits for. It begins to do so when it is told to.
type pace struct {
	on     atomic.Bool
	urgent chan struct{}
	busy   time.Time // every read that was not big moves it by paceEvery
	full   int       // big reads in a row
	bulk   time.Time // until then nothing is waited for
}

// read notes a read of n bytes, of at most so many.
func (p *pace) read(n, most int) {
	if !p.on.Load() {
		return
	}
	now := time.Now()
	if n >= min(paceBig, most) {
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

// wait waits for the next of the moments at which busy streams are read, if this is one.
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
	moment := time.NewTimer(now.Truncate(paceEvery).Add(paceEvery).Sub(now))
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-gone:
	case <-p.urgent:
		p.busy = time.Time{}
	}
}
