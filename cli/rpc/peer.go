package rpc

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/cli/turn"
)

const (
	beginLimit = 30 * time.Second // for recording where a turn begins
	flushLimit = 5 * time.Second  // for writing what was sent, before a process is detached
	exitLimit  = 2 * time.Second  // from the end of the output to that of the process
	stopSlack  = 10 * time.Second // what ending a process may take beyond its grace
)

// ErrEnded says that the program prints nothing any more: no answer will come.
var ErrEnded = errors.New("the agent's output has ended")

// Handler gets what the program says, in the order it was said, on the goroutine that reads. It must not wait for the
// program. What it gets is its own.
type Handler interface {
	// Notified takes a notification.
	Notified(m Message)
	// Requested takes a request, to be answered with Reply or Refuse, now or later. It says false of a method that it
	// does not know, which is refused.
	Requested(m Message) (known bool)
	// Changed learns what happened to the output, between two messages.
	Changed(c turn.Change)
}

// Options say how to talk with a program. Handler is required.
type Options struct {
	Agent   cli.Agent
	Framing frames.Framing
	Version string // that each message of ours names, "2.0"; empty for a protocol without
	Handler Handler
	From    int64 // the offset at which the output begins
	Past    bool  // what the program printed before the offset Until is caught up with
	Until   int64
}

// Peer talks with one program: one goroutine reads, one writes. Safe for concurrent use.
type Peer struct {
	process cli.Process
	opts    Options
	in      *frames.Reader
	out     *turn.Writer
	calls   *calls
	handled atomic.Int64
	past    atomic.Bool
	ended   chan struct{} // closed when nothing is read any more

	mu      sync.Mutex
	garbage turn.Garbage
	readErr error
}

// New makes a Peer that can write. The caller calls Listen to have it read, and ends it with Stop or Detach.
func New(process cli.Process, o Options) *Peer {
	p := &Peer{process: process, opts: o, out: turn.NewWriter(process.Stdin()), calls: newCalls(), ended: make(chan struct{})}
	p.handled.Store(o.From)
	p.past.Store(o.Past)
	return p
}

// Listen begins to read.
func (p *Peer) Listen() {
	o := frames.Options{Framing: p.opts.Framing, From: p.opts.From, Until: p.opts.Until, Garbage: p.Garbage, Lost: p.lost}
	if p.opts.Past {
		o.CaughtUp = func() {
			p.past.Store(false)
			p.opts.Handler.Changed(turn.Change{CaughtUp: true})
			turn.Gather(p.process.Stdout())
		}
	} else {
		turn.Gather(p.process.Stdout())
	}
	p.in = frames.NewReader(p.process.Stdout(), o)
	go p.read()
}

func (p *Peer) read() {
	defer close(p.ended)
	for {
		raw, err := p.in.Next()
		if err != nil {
			p.end(err)
			return
		}
		// Before it is handled: a turn that this message lets begin does not get it again after a restart.
		p.handled.Store(p.in.At())
		p.take(raw)
	}
}

// take hands on one message.
func (p *Peer) take(raw []byte) {
	m := Message{End: p.in.At()}
	if json.Unmarshal(raw, &m) != nil {
		p.Garbage(raw)
		return
	}
	switch {
	case m.Asks():
		if !p.opts.Handler.Requested(m) {
			_ = p.Refuse(m.ID, CodeNoMethod, "ductor does not know "+cli.OneLine(m.Method, 100)) // a dead program shows otherwise
		}
	case m.Method != "":
		p.opts.Handler.Notified(m)
	case m.hasID():
		p.calls.answered(m)
	case m.Error == nil: // an error without an id answers what the program could not read
		p.Garbage(raw)
	}
}

func (p *Peer) lost(l *cli.LostOutput) {
	p.handled.Store(l.To)
	p.opts.Handler.Changed(turn.Change{Lost: l})
}

func (p *Peer) end(err error) {
	p.calls.end()
	p.mu.Lock()
	p.readErr = err
	p.mu.Unlock()
	p.out.Drop(ErrEnded)
	p.opts.Handler.Changed(turn.Change{Ended: true})
}

// Garbage notes a part of the output that cannot be read.
func (p *Peer) Garbage(raw []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.garbage.Add(raw)
}

// Handled is the offset after the last message that was handed on, or is being.
func (p *Peer) Handled() int64 { return p.handled.Load() }

// Past says whether what is handed on was printed before Options.Until.
func (p *Peer) Past() bool { return p.past.Load() }
