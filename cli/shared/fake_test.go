package shared

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// program is a process of an agent inside the test. It answers nothing; its output ends with it.
type program struct {
	launcher *launcher
	pid      int
	stdout   *io.PipeReader
	out      *io.PipeWriter
	done     chan struct{}
	once     sync.Once
	eof      bool // end of input ends the program

	mu       sync.Mutex
	detached bool
	stopped  bool
	closed   bool
}

func (p *program) exit() {
	p.once.Do(func() {
		close(p.done)
		_ = p.out.Close()
	})
}

func (p *program) Run() cli.RunID              { return "run" }
func (p *program) PID() int                    { return p.pid }
func (p *program) Stdin() io.WriteCloser       { return p }
func (p *program) Stdout() io.Reader           { return p.stdout }
func (p *program) When(int64) time.Time        { return time.Time{} }
func (p *program) StderrTail() string          { return "" }
func (p *program) Interrupt() error            { return nil }
func (p *program) Done() <-chan struct{}       { return p.done }
func (p *program) Exit() cli.ExitStatus        { return cli.ExitStatus{Code: 7} }
func (p *program) Write(b []byte) (int, error) { return len(b), nil }

func (p *program) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if p.eof {
		p.exit()
	}
	return nil
}

func (p *program) Ended(int64) {}

func (p *program) Begin(context.Context, cli.Mark) error { return nil }

func (p *program) Detach() {
	p.mu.Lock()
	p.detached = true
	p.mu.Unlock()
	_ = p.stdout.CloseWithError(cli.ErrDetached)
}

func (p *program) Stop(context.Context, time.Duration) error {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.exit()
	return nil
}

// became returns how the program was ended.
func (p *program) became() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped && p.detached:
		return "stopped and detached"
	case p.stopped:
		return "stopped"
	case p.detached:
		return "detached"
	}
	return "running"
}

// launcher starts programs.
type launcher struct {
	cli.Launcher
	wait chan struct{} // starts wait until it is closed; nil means no wait
	fail error         // error of every start
	eof  bool

	mu       sync.Mutex
	programs []*program
}

func (l *launcher) Start(ctx context.Context, _ cli.Command) (cli.Process, error) {
	if l.wait != nil {
		select {
		case <-l.wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l.fail != nil {
		return nil, l.fail
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &program{launcher: l, pid: len(l.programs) + 1, done: make(chan struct{}), eof: l.eof}
	p.stdout, p.out = io.Pipe()
	l.programs = append(l.programs, p)
	return p, nil
}

func (l *launcher) Attach(ctx context.Context, _ cli.LeftRun, _ int64) (cli.Process, error) {
	return l.Start(ctx, cli.Command{})
}

// dialect is the Server of the tests.
type dialect struct {
	*Process
	greet error

	mu      sync.Mutex
	dropped []cli.TurnID
}

func (d *dialect) Notified(rpc.Message)        {}
func (d *dialect) Requested(rpc.Message) bool  { return false }
func (d *dialect) Changed(turn.Change)         {}
func (d *dialect) Greet(context.Context) error { return d.greet }

func (d *dialect) Await(m cli.Mark, _ cli.LeftRun) (any, func()) {
	if !json.Valid([]byte(m.Note)) {
		return nil, nil
	}
	return d, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.dropped = append(d.dropped, m.Turn)
	}
}

func newTestPool(l *launcher) *Pool[*dialect] {
	o := Options{ProviderOptions: cli.ProviderOptions{Launcher: l}.OrDefault("agent"), Agent: "agent", Goodbye: time.Second}
	return NewPool(o, func(p *Process) *dialect { return &dialect{Process: p} })
}

func join(t *testing.T, p *Pool[*dialect]) *dialect {
	t.Helper()
	d, err := p.Join(t.Context(), "key", cli.Command{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func leave(t *testing.T, d *dialect, how Leaving) {
	t.Helper()
	if err := d.Leave(t.Context(), how); err != nil {
		t.Error(err)
	}
}

func (l *launcher) is(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for _, p := range l.programs {
		got = append(got, p.became())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the programs are %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

var errNotThere = fs.ErrNotExist
