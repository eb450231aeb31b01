package rpc

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// program is a fake process: say prints, and heard is its input.
type program struct {
	stdout *io.PipeReader
	out    *io.PipeWriter
	stdin  *input
	done   chan struct{}
	exit   cli.ExitStatus
	stderr string
	begin  func(context.Context, cli.Mark) error // nil accepts every mark
	once   sync.Once

	mu    sync.Mutex
	marks []cli.Mark
}

// input records writes. A write blocks while the input is held.
type input struct {
	held chan struct{} // closed to let writes through; nil blocks none
	fail error         // error of each write; may be nil

	mu     sync.Mutex
	text   []byte
	writes int
	closed bool
}

func (i *input) Write(b []byte) (int, error) {
	if i.held != nil {
		<-i.held
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.fail != nil:
		return 0, i.fail
	case i.closed:
		return 0, io.ErrClosedPipe
	}
	i.text = append(i.text, b...)
	i.writes++
	return len(b), nil
}

func (i *input) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	return nil
}

func (i *input) got() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return string(i.text)
}

func newProgram() *program {
	p := &program{stdin: &input{}, done: make(chan struct{})}
	p.stdout, p.out = io.Pipe()
	return p
}

func (p *program) exitWith(code int) {
	p.once.Do(func() {
		p.exit = cli.ExitStatus{Code: code}
		close(p.done)
		_ = p.out.Close()
	})
}

func (p *program) say(s string)          { _, _ = io.WriteString(p.out, s) } // fails after the end of the output
func (p *program) Run() cli.RunID        { return "run" }
func (p *program) PID() int              { return 1 }
func (p *program) Stdin() io.WriteCloser { return p.stdin }
func (p *program) Stdout() io.Reader     { return p.stdout }
func (p *program) When(int64) time.Time  { return time.Time{} }
func (p *program) StderrTail() string    { return p.stderr }
func (p *program) Interrupt() error      { return nil }
func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Exit() cli.ExitStatus  { return p.exit }
func (p *program) Detach()               { _ = p.stdout.CloseWithError(cli.ErrDetached) }
func (p *program) Stop(context.Context, time.Duration) error {
	p.exitWith(-15)
	return nil
}

func (p *program) Ended(int64) {}

func (p *program) Begin(ctx context.Context, m cli.Mark) error {
	if p.begin != nil {
		if err := p.begin(ctx, m); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks = append(p.marks, m)
	return nil
}

func (p *program) recordedMarks() []cli.Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.marks)
}

// listener is a Handler that records all calls.
type listener struct {
	known  string          // the only method that it knows
	notice func(m Message) // may be nil

	mu    sync.Mutex
	notes []string
	ends  []int64
	ended int
}

func (l *listener) record(s string, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes, l.ends = append(l.notes, s), append(l.ends, end)
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.notes)
}

func (l *listener) Notified(m Message) {
	l.record("notified "+m.Method+string(m.Params), m.End)
	if l.notice != nil {
		l.notice(m)
	}
}

func (l *listener) Requested(m Message) bool {
	l.record("requested "+m.Method+" "+string(m.ID), m.End)
	return m.Method == l.known
}

func (l *listener) Changed(c turn.Change) {
	switch {
	case c.Lost != nil:
		l.record("lost", c.Lost.To)
	case c.CaughtUp:
		l.record("caught up", 0)
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended++
	}
}

// newTestPeer returns a Peer of a program. The end of the test stops it.
func newTestPeer(t *testing.T, o Options) (*Peer, *program, *listener) {
	t.Helper()
	l := &listener{known: "known"}
	program := newProgram()
	o.Agent, o.Handler = "agent", l
	p := New(program, o)
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), 0); err != nil {
			t.Error(err)
		}
	})
	return p, program, l
}

// lastMessage parses the program's input as lines and returns the last message.
func lastMessage(t *testing.T, sent string) Message {
	t.Helper()
	var m Message
	for line := range slices.Values(splitLines(sent)) {
		m = Message{}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%q was sent: %v", line, err)
		}
	}
	return m
}
