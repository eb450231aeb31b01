package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// wholeInput is how much of one Write reaches the agent as a whole or not at all.
const wholeInput = 1 << 20

// runInput is the agent's standard input.
type runInput struct {
	run *Run

	mu     sync.Mutex // one write after the other
	sent   int64      // how much the supervisor took, from the agent's beginning on
	unsure bool       // a write failed, and how much of it was taken is unknown
}

func (i *runInput) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for written := 0; ; {
		part := p[written:min(written+wholeInput, len(p))]
		if err := i.send(part); err != nil {
			i.unsure = true
			return written, err
		}
		i.sent += int64(len(part))
		written += len(part)
		if written == len(p) {
			return written, nil
		}
	}
}

// send writes what arrives as a whole or not at all. When the connection breaks, the next supervisor's welcome tells
// which it was.
func (i *runInput) send(part []byte) error {
	for {
		l := i.run.current()
		if l == nil {
			return ErrGone
		}
		err := l.input(part)
		if !errors.Is(err, ErrGone) || i.unsure || i.run.awaitLink(context.Background(), l) != nil {
			return err
		}
		switch i.run.inputTaken() {
		case i.sent:
		case i.sent + int64(len(part)):
			return nil
		default: // somebody else wrote as well
			return err
		}
	}
}

func (i *runInput) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	ctx, cancel := requestContext()
	defer cancel()
	if _, err := i.run.ask(ctx, request{Op: opCloseStdin}); err != nil {
		return fmt.Errorf("close standard input of run %s: %w", i.run.ID(), err)
	}
	return nil
}

// Output is the agent's standard output: what is received, and when the supervisor is gone before the
// end, what it left on disk. One goroutine reads; Gather and Hurry may be called at any time.
type Output struct {
	run   *Run
	inbox *inbox

	mu   sync.Mutex
	disk *diskReader
}

// Read is as Run.Stdout says.
func (o *Output) Read(p []byte) (int, error) {
	if disk := o.fromDisk(); disk != nil {
		return disk.Read(p)
	}
	n, err := o.inbox.Read(p)
	if !errors.Is(err, ErrGone) {
		return n, err
	}
	offset, lost := o.inbox.position()
	disk := newDiskReader(o.run.root.path(o.run.ID()), offset)
	disk.lost = lost
	o.mu.Lock()
	o.disk = disk
	o.mu.Unlock()
	return disk.Read(p)
}

// Gather has output that comes in many small pieces come in gulps from now on, of which there are 20 a second at the
// most; what comes after a silence, or in bulk, still comes at once. It spares a client that shows what it reads to
// people a wake-up for every word.
func (o *Output) Gather() {
	r := o.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gathers = true
	if r.link != nil {
		r.link.pace.gather()
	}
}

// Hurry has what comes next come at once, however busy the agent was: somebody waits for it.
func (o *Output) Hurry() {
	if l := o.run.current(); l != nil {
		l.pace.hurry()
	}
}

func (o *Output) fromDisk() *diskReader {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.disk
}

func (o *Output) position() (offset, lost int64) {
	if disk := o.fromDisk(); disk != nil {
		return disk.position()
	}
	return o.inbox.position()
}

// diskReader reads a journal that is no longer written.
type diskReader struct {
	mu      sync.Mutex
	journal *journal
	err     error
	offset  int64
	lost    int64
}

func newDiskReader(dir string, offset int64) *diskReader {
	d := &diskReader{offset: offset}
	d.journal, _, d.err = openJournal(dir)
	if d.err == nil && offset > d.journal.end {
		d.err = &OffsetError{Offset: offset, End: d.journal.end}
	}
	return d
}

func (d *diskReader) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil || len(p) == 0 {
		return 0, d.err
	}
	for d.offset < d.journal.end {
		at, damaged := d.journal.available(d.offset)
		if at > d.offset {
			lost := &LostError{From: d.offset, To: at, Damaged: damaged}
			d.offset, d.lost = at, d.lost+at-d.offset
			return 0, lost
		}
		if n := d.journal.readAt(p, d.offset); n > 0 {
			d.offset += int64(n)
			return n, nil
		}
	}
	return 0, io.EOF
}

func (d *diskReader) position() (offset, lost int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offset, d.lost
}
