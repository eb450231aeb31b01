package rpc

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/cli/turn"
)

const (
	beginLimit = 30 * time.Second // maximum time for storing the start of a turn
	flushLimit = 5 * time.Second  // maximum time for writing queued messages before detaching
	exitLimit  = 2 * time.Second  // maximum time from the end of the output to the exit of the program
	stopSlack  = 10 * time.Second // time that stopping a program may take in addition to its grace period
)

// ErrEnded means that the program's output has ended, so that no answer will come.
var ErrEnded = errors.New("the agent's output has ended")

// Handler receives the program's messages in order. The goroutine that reads the output calls the Handler, so the
// Handler must not wait for another message. The Handler may keep the messages.
type Handler interface {
	// Notified receives a notification.
	Notified(m Message)
	// Requested receives a request. The Handler answers it with Reply or Refuse, now or later. If Requested returns
	// false, the method is unknown, and the Peer rejects the request.
	Requested(m Message) (known bool)
	// Changed receives a change of the program's output, such as its end. The Handler has received all earlier
	// messages.
	Changed(c turn.Change)
}

// Options configures a Peer. Handler is required.
type Options struct {
	Agent   cli.Agent
	Framing frames.Framing
	Codec   Codec // default: JSON{}
	Handler Handler
	Cancels string // method of the notification that cancels a request; empty if the protocol has none
	From    int64  // offset in the program's output at which reading starts
	Past    bool   // whether ductor attached to a program that was already running
	Until   int64  // if Past is set: offset at which the old output ends
}

// Peer is the connection to one program. One goroutine reads, and one writes. Safe for concurrent use.
type Peer struct {
	process cli.Process
	opts    Options
	in      *frames.Reader
	out     *turn.Writer
	calls   *calls
	handled atomic.Int64
	past    atomic.Bool
	ended   chan struct{} // closed when the output has ended

	mu      sync.Mutex
	garbage turn.Garbage
	readErr error
}

// New returns a Peer that can write, but does not read yet. The caller must call Listen to start reading, and Stop or
// Detach at the end.
func New(process cli.Process, o Options) *Peer {
	if o.Codec == nil {
		o.Codec = JSON{}
	}
	p := &Peer{process: process, opts: o, out: turn.NewWriter(process.Stdin()), calls: newCalls(),
		ended: make(chan struct{})}
	p.handled.Store(o.From)
	p.past.Store(o.Past)
	return p
}

// Listen starts to read the program's output.
func (p *Peer) Listen() {
	o := frames.Options{Framing: p.opts.Framing, From: p.opts.From, Until: p.opts.Until, Garbage: p.Garbage,
		Lost: p.lost}
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
			p.finish(err)
			return
		}
		// Store the offset before dispatching the message. Otherwise, a turn that starts during dispatch would store an
		// offset before the message, and would receive the message again after a restart of ductor.
		p.handled.Store(p.in.At())
		p.dispatch(raw)
	}
}

// dispatch passes a message to the Handler, or to the call that waits for it.
func (p *Peer) dispatch(raw []byte) {
	m, err := p.opts.Codec.Decode(raw)
	if err != nil {
		p.Garbage(raw)
		return
	}
	m.End = p.in.At()
	switch {
	case m.Asks():
		if !p.opts.Handler.Requested(m) {
			// An error means that the program has exited.
			_ = p.Refuse(m.ID, CodeNoMethod, "ductor does not know "+cli.OneLine(m.Method, 100))
		}
	case m.Method != "":
		p.opts.Handler.Notified(m)
	case m.hasID():
		p.calls.deliverAnswer(m)
	// An error without an ID means that the program could not read a message of ductor. Without the error, the message
	// is garbage.
	case m.Error == nil:
		p.Garbage(raw)
	}
}

func (p *Peer) lost(l *cli.LostOutput) {
	p.handled.Store(l.To)
	p.opts.Handler.Changed(turn.Change{Lost: l})
}

func (p *Peer) finish(err error) {
	p.calls.close()
	p.mu.Lock()
	p.readErr = err
	p.mu.Unlock()
	p.out.Drop(ErrEnded)
	p.opts.Handler.Changed(turn.Change{Ended: true})
}

// Garbage records output that is not part of the protocol.
func (p *Peer) Garbage(raw []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.garbage.Add(raw)
}

// Handled returns the offset in the output after the last message that was passed to the Handler.
func (p *Peer) Handled() int64 { return p.handled.Load() }

// Past reports whether the current message was printed before this process of ductor attached; see Options.Past.
func (p *Peer) Past() bool { return p.past.Load() }
