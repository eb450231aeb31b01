package simulated

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// launcher is the cli.Launcher of one ductor process. It starts programs on the machine. The programs continue when
// ductor ends.
type launcher struct {
	life    *life
	machine *machine
	hooks   *hookListener

	mu      sync.Mutex
	held    map[cli.RunID]*process // runs that this ductor started or attached to, and has not forgotten
	record  cli.Recorder
	closing bool
}

var (
	_ cli.Launcher  = (*launcher)(nil)
	_ cli.Finder    = (*launcher)(nil)
	_ cli.Recording = (*launcher)(nil)
)

func (l *launcher) RecordBy(record cli.Recorder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = record
}

func (l *launcher) LookPath(name string) (string, error) {
	if l.life.dead() {
		return "", errDead
	}
	return l.machine.lookPath(name)
}

func (l *launcher) store(ctx context.Context, run cli.RunID, m cli.Mark) error {
	l.mu.Lock()
	record := l.record
	l.mu.Unlock()
	if record == nil {
		return nil
	}
	if err := record(ctx, m.Turn, cli.Start{Run: run, Output: m.Output, Input: m.Input, Note: m.Note}); err != nil {
		return fmt.Errorf("store the beginning of a turn: %w", err)
	}
	return nil
}

func (l *launcher) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := l.life.effect("start"); err != nil {
		return nil, err
	}
	r, err := l.machine.start(cli.RunID(rand.Text()), cmd)
	if err != nil {
		return nil, err
	}
	p := l.hold(r, 0)
	r.limit()
	if err := l.life.effect("started"); err != nil {
		return nil, err
	}
	if cmd.Turn != "" {
		p.marks = []cli.Mark{{Turn: cmd.Turn}}
		if err := l.store(ctx, r.id, cli.Mark{Turn: cmd.Turn}); err != nil {
			l.Settled(cmd.Turn)
			return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx), 0))
		}
	}
	return p, nil
}

func (l *launcher) hold(r *run, offset int64) *process {
	p := &process{launcher: l, run: r, gone: make(chan struct{}), at: offset,
		recording: make(chan struct{}, 1)}
	r.mu.Lock()
	r.owner = p
	if r.orphan != nil {
		r.orphan.Stop()
	}
	r.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[r.id] = p
	return p
}

// Left returns the runs of earlier ductor processes. It ends runs whose only purpose was to check an agent.
func (l *launcher) Left(context.Context) (all []cli.LeftRun, err error) {
	if err := l.life.effect("left"); err != nil {
		return nil, err
	}
	for _, r := range l.machine.list() {
		l.mu.Lock()
		mine := l.held[r.id] != nil
		l.mu.Unlock()
		switch {
		case mine:
		case r.purpose.Mode == "":
			r.killBy(cli.EndedByStop)
			l.machine.forget(r.id)
		default:
			all = append(all, r.left())
		}
	}
	return all, nil
}

func (l *launcher) Attach(_ context.Context, left cli.LeftRun, offset int64) (cli.Process, error) {
	if err := l.life.effect("attach"); err != nil {
		return nil, err
	}
	r := l.machine.find(left.Run)
	if r == nil {
		return nil, fmt.Errorf("attach to run %s: %w", left.Run, fs.ErrNotExist)
	}
	p := l.hold(r, offset)
	p.marks = slices.Clone(left.Marks)
	return p, nil
}

func (l *launcher) Discard(ctx context.Context, id cli.RunID) error {
	if err := l.life.effect("discard"); err != nil {
		return err
	}
	if r := l.machine.find(id); r != nil {
		r.stop(ctx, cli.DefaultGrace, cli.EndedByStop)
		l.machine.forget(id)
	}
	return nil
}

func (l *launcher) Find(agent cli.Agent, pid int) cli.Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		if p.run.purpose.Agent == agent && p.run.pid == pid && !p.stopped {
			return p
		}
	}
	return nil
}

func (l *launcher) Settled(turn cli.TurnID) {
	if l.life.effect("settled") != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		marked := slices.ContainsFunc(p.marks, func(m cli.Mark) bool { return m.Turn == turn })
		if marked {
			p.settled = append(p.settled, turn)
		}
		switch {
		case p.stopped && !p.open():
			l.forget(p)
		case marked:
			p.run.trim(p.neededFrom())
		}
	}
}

// forget removes a run permanently. The caller holds mu.
func (l *launcher) forget(p *process) {
	delete(l.held, p.run.id)
	if !l.closing {
		l.machine.forget(p.run.id)
	}
}

// Close detaches from all runs that were not stopped.
func (l *launcher) Close() error {
	l.mu.Lock()
	l.closing = true
	var all []*process
	for _, p := range l.held {
		all = append(all, p)
	}
	l.mu.Unlock()
	for _, p := range all {
		p.Detach()
	}
	return nil
}

// process connects one ductor process to a run.
type process struct {
	launcher *launcher
	run      *run
	once     sync.Once
	gone     chan struct{} // closed by Detach and when ductor dies
	at       int64         // position in the output at which the next read begins

	recording chan struct{} // mutex; a sync.Mutex would stop the simulated clock while a goroutine waits for it
	// The launcher's mutex guards the following fields.
	marks   []cli.Mark
	settled []cli.TurnID
	over    int64 // position in the output at which the last turn ended
	stopped bool
}

func (p *process) Run() cli.RunID              { return p.run.id }
func (p *process) PID() int                    { return p.run.pid }
func (p *process) Stdin() io.WriteCloser       { return stdin{p} }
func (p *process) Stdout() io.Reader           { return p }
func (p *process) When(offset int64) time.Time { return p.run.printedAt(offset) }
func (p *process) StderrTail() string          { return p.run.stderr.String() }
func (p *process) Done() <-chan struct{}       { return p.run.done }

func (p *process) Exit() cli.ExitStatus {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return p.run.exit
}

func (p *process) Read(b []byte) (int, error) {
	n, err := p.run.readAt(b, p.at, p.gone)
	p.at += int64(n)
	var lost *cli.LostOutput
	if errors.As(err, &lost) {
		p.at = lost.To
	}
	return n, err
}

type stdin struct{ *process }

// effect counts an effect of ductor on the process. Call effect before the effect happens. It returns an error if
// ductor has detached or is dead.
func (s stdin) effect(what string) error {
	select {
	case <-s.gone:
		return cli.ErrDetached
	default:
		return s.launcher.life.effect(what)
	}
}

func (s stdin) Write(b []byte) (int, error) {
	if err := s.effect("write"); err != nil {
		return 0, err
	}
	s.run.note("input", "%s", b)
	n, err := s.run.in.write(b)
	if err == nil {
		err = s.launcher.life.effect("written")
	}
	return n, err
}

func (s stdin) Close() error {
	if err := s.effect("close"); err != nil {
		return err
	}
	s.run.in.close()
	return nil
}

func (p *process) Begin(ctx context.Context, m cli.Mark) error {
	if err := p.launcher.life.effect("begin"); err != nil {
		return err
	}
	p.recording <- struct{}{}
	defer func() { <-p.recording }()
	m.Input, _ = p.run.in.state()
	if err := p.launcher.store(ctx, p.run.id, m); err != nil {
		return err
	}
	if err := p.launcher.life.effect("begun"); err != nil {
		return err
	}
	p.run.limit()
	p.launcher.mu.Lock()
	defer p.launcher.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(p.marks), func(o cli.Mark) bool {
		return o.Turn == m.Turn || o.Turn == cli.BackgroundMark || slices.Contains(p.settled, o.Turn)
	})
	p.marks, p.settled = append(kept, m), nil
	return nil
}

func (p *process) Ended(output int64) {
	p.launcher.mu.Lock()
	defer p.launcher.mu.Unlock()
	p.over = max(p.over, output)
}

// open reports whether the process has a turn that has not ended. The caller holds mu of the launcher.
func (p *process) open() bool {
	return slices.ContainsFunc(p.marks, func(m cli.Mark) bool {
		return m.OfTurn() && !slices.Contains(p.settled, m.Turn)
	})
}

// neededFrom returns the position in the output from which the next ductor process may read. The caller holds the
// launcher's mutex.
func (p *process) neededFrom() int64 {
	if len(p.marks) == 0 {
		return 0
	}
	from := max(p.over, p.marks[len(p.marks)-1].Output)
	for _, m := range p.marks {
		if m.OfTurn() && !slices.Contains(p.settled, m.Turn) {
			from = min(from, m.Output)
		}
	}
	return from
}

func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.launcher.life.effect("stop"); err != nil {
		return err
	}
	p.run.stop(ctx, grace, cli.EndedByStop)
	l := p.launcher
	l.mu.Lock()
	defer l.mu.Unlock()
	p.stopped = true
	if !p.open() {
		l.forget(p)
	}
	return nil
}

func (p *process) Detach() {
	p.once.Do(func() {
		close(p.gone)
		p.run.mu.Lock()
		mine := p.run.owner == p
		p.run.mu.Unlock()
		if mine {
			p.run.abandon()
		}
	})
}

func (p *process) Interrupt() error {
	if err := p.launcher.life.effect("interrupt"); err != nil {
		return err
	}
	p.run.signal(interrupt)
	return nil
}

func newLauncher(l *life) *launcher {
	return &launcher{
		life: l, machine: l.world.machine, hooks: newHookListener(), held: map[cli.RunID]*process{},
	}
}

// abandonAll detaches from all runs, because ductor has died.
func (l *launcher) abandonAll() {
	l.mu.Lock()
	var all []*process
	for _, p := range l.held {
		all = append(all, p)
	}
	l.mu.Unlock()
	for _, p := range all {
		p.Detach()
	}
}
