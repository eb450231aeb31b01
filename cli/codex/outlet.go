package codex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
)

// outletLimit is how many bytes may wait for a program to read them.
const outletLimit = 256 << 20

var errOutletFull = errors.New("codex does not read what it is sent")

// outlet writes to a program in the order it is told to, from one goroutine, so that nobody waits for a program
// that does not read. Nothing is written between the recording of a turn's beginning and the line that begins
// it: so a record whose Input is still the end of the input is of a turn that never began.
type outlet struct {
	process cli.Process
	ready   chan struct{}
	done    chan struct{} // closed when the goroutine is over

	mu     sync.Mutex
	queue  []parcel
	bytes  int
	closed error
}

// parcel is a line, with the mark that goes before it if it begins a turn; or a mark alone.
type parcel struct {
	line   []byte
	mark   *cli.Mark
	output func() int64    // where the output is when the mark is made
	ctx    context.Context // of the mark; nil has a time limit of its own
	failed func(error)     // told of a line that was not written; may be nil
}

func newOutlet(p cli.Process) *outlet {
	o := &outlet{process: p, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// send queues line.
func (o *outlet) send(line []byte) error { return o.put(parcel{line: line}) }

func (o *outlet) put(p parcel) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed != nil {
		return o.closed
	}
	if o.bytes > 0 && o.bytes+len(p.line) > outletLimit {
		return errOutletFull
	}
	o.queue = append(o.queue, p)
	o.bytes += len(p.line)
	o.wake()
	return nil
}

func (o *outlet) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// close throws away what was not written, but for marks alone when the program is let go of. The goroutine ends when
// its last write does.
func (o *outlet) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed == nil {
		o.closed = err
	}
	o.wake()
}

func (o *outlet) run() {
	defer close(o.done)
	for {
		o.mu.Lock()
		batch, closed := o.queue, o.closed
		o.queue, o.bytes = nil, 0
		o.mu.Unlock()
		for _, p := range batch {
			if closed == nil || len(p.line) == 0 && errors.Is(closed, cli.ErrDetached) {
				closed = errors.Join(closed, o.deliver(p))
			} else if p.failed != nil {
				p.failed(closed)
			}
		}
		if closed != nil {
			o.close(closed)
			return
		}
		<-o.ready
	}
}

// deliver writes one parcel. An error ends the outlet: it is the program that is gone.
func (o *outlet) deliver(p parcel) error {
	if p.mark != nil {
		p.mark.Output = p.output()
		if err := o.begin(p); err != nil {
			// Nobody could say later whether the turn had begun, so it must not.
			p.failed(err)
			return nil
		}
	}
	if len(p.line) == 0 {
		return nil
	}
	if _, err := o.process.Stdin().Write(p.line); err != nil {
		err = fmt.Errorf("write to codex: %w", err)
		if p.failed != nil {
			p.failed(err)
		}
		return err
	}
	return nil
}

func (o *outlet) begin(p parcel) error {
	ctx := p.ctx
	if ctx == nil {
		limited, cancel := context.WithTimeout(context.Background(), markWait)
		defer cancel()
		ctx = limited
	}
	return o.process.Begin(ctx, *p.mark)
}

const markWait = 5 * time.Second
