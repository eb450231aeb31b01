package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/runner"
)

// DefaultOrphanAfter is the default of Options.OrphanAfter.
const DefaultOrphanAfter = 15 * time.Minute

// StartedRun is the debug message that a Launcher logs for each program that it started. The attribute "run" contains
// the RunID.
const StartedRun = "a run was started"

const (
	probeOrphan = time.Second // how long a probe may outlive its caller
	collectWait = 10 * time.Second
	lookWait    = time.Minute // the environment may have to be created first
)

// Options configure a Launcher. Dir is required if Remote is nil. Zero values mean the defaults.
type Options struct {
	Dir string // directory of the runs; created if missing, and closed to other users
	// Runner configures the start of the runner on this machine.
	Runner runner.Options
	// Remote accesses the runs of another environment. The Launcher closes Remote.
	Remote     *runner.Client
	cli.Timing       // the stall limits are unused
	MaxJournal int64 // bytes of output stored for a run; 0 means the runner's default
	Logger     *slog.Logger
}

// Launcher implements cli.Launcher for this machine or another environment. Linux only. Safe for concurrent use.
type Launcher struct {
	opts Options
	root *runner.Client
	log  *slog.Logger

	mu       sync.Mutex
	runs     map[cli.RunID]*process // runs that this Launcher started or attached to, and that are not deleted
	starting map[cli.RunID]bool
	closed   bool
	work     sync.WaitGroup // background work; mu is held when work is added
	record   cli.Recorder   // nil stores nothing

	closing chan struct{} // closed when closed is set
}

var (
	_ cli.Launcher  = (*Launcher)(nil)
	_ cli.Finder    = (*Launcher)(nil)
	_ cli.Recording = (*Launcher)(nil)
	_ cli.Measured  = (*process)(nil)
	_ cli.Lister    = (*process)(nil)
)

// Open opens the launcher of this machine. The caller must Close it.
func Open(o Options) (*Launcher, error) {
	o.OrphanAfter = cmp.Or(o.OrphanAfter, DefaultOrphanAfter)
	o.Grace = cmp.Or(o.Grace, cli.DefaultGrace)
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	root, err := o.Remote, error(nil)
	if root == nil {
		if root, err = runner.Open(o.Dir, o.Runner); err != nil {
			return nil, fmt.Errorf("open host: %w", err)
		}
	}
	return &Launcher{opts: o, root: root, log: o.Logger, runs: map[cli.RunID]*process{},
		starting: map[cli.RunID]bool{}, closing: make(chan struct{})}, nil
}

// RecordBy implements cli.Recording.
func (h *Launcher) RecordBy(record cli.Recorder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.record = record
}

// store stores the start of a turn.
func (h *Launcher) store(ctx context.Context, run cli.RunID, m cli.Mark) error {
	h.mu.Lock()
	record := h.record
	h.mu.Unlock()
	if record == nil {
		return nil
	}
	if err := record(ctx, m.Turn, cli.Start{Run: run, Output: m.Output, Input: m.Input, Note: m.Note}); err != nil {
		return fmt.Errorf("store the beginning of a turn: %w", err)
	}
	return nil
}

// LookPath implements cli.Launcher. It checks a name with a slash as a path, without a search.
func (h *Launcher) LookPath(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	defer cancel()
	return h.root.LookPath(ctx, name)
}

// Start implements cli.Launcher.
func (h *Launcher) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	var marks []cli.Mark
	if cmd.Turn != "" {
		marks = []cli.Mark{{Turn: cmd.Turn}}
	}
	if err := h.endLate(ctx, cmd.For); err != nil {
		return nil, err
	}
	id := rand.Text()
	defer h.announce(cli.RunID(id))()
	run, err := h.root.Start(ctx, runner.Spec{
		ID: id, Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Labels: labelsOf(cmd.For),
		Limits: h.limits(cmd.For),
	})
	if err != nil {
		return nil, err
	}
	h.log.Debug(StartedRun, "run", run.ID(), "pid", run.PID(), "agent", string(cmd.For.Agent),
		"conversation", string(cmd.For.Conversation))
	p := h.hold(run, cmd.For, marks)
	if cmd.Turn != "" {
		if err := h.store(ctx, p.Run(), cli.Mark{Turn: cmd.Turn}); err != nil {
			h.Settled(cmd.Turn)
			return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx), 0))
		}
	}
	return p, nil
}

// announce registers the ID of a run before the run exists. The caller must call held once hold was called, or the
// start has failed.
func (h *Launcher) announce(id cli.RunID) (held func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting[id] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.starting, id)
	}
}

func (h *Launcher) limits(p cli.Purpose) runner.Limits {
	l := runner.Limits{MaxAge: h.opts.StaleAfter, OrphanAfter: h.opts.OrphanAfter, Grace: h.opts.Grace,
		MaxJournal: h.opts.MaxJournal}
	if p.Mode == "" {
		l.OrphanAfter = probeOrphan
	}
	return l
}

// hold creates the process of a run and registers it.
func (h *Launcher) hold(run *runner.Run, p cli.Purpose, marks []cli.Mark) *process {
	r := newProcess(h, run, p, marks)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[r.Run()] = r
	return r
}

// Find implements cli.Finder.
func (h *Launcher) Find(agent cli.Agent, pid int) cli.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		if r.purpose.Agent == agent && r.PID() == pid && !r.isDead() {
			return r
		}
	}
	return nil
}

// Settled implements cli.Launcher. It removes a stopped run as a whole after the last of its turns was settled.
func (h *Launcher) Settled(turn cli.TurnID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		switch marked := r.marks.settle(turn); {
		case r.done():
			h.forget(r)
		case marked && !h.closed:
			h.work.Go(r.trim)
		}
	}
}

// Rests reports whether a run waits for its next turn. ductor may end such a run, because another run can resume the
// session.
func (h *Launcher) Rests(run cli.RunID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[run]
	return r != nil && r.marks.rests()
}

// forget deletes a run in the background. The caller holds mu.
func (h *Launcher) forget(r *process) {
	delete(h.runs, r.Run())
	if h.closed { // the next process of ductor deletes the run
		return
	}
	h.work.Go(func() { h.collect(r) })
}

func (h *Launcher) collect(r *process) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWait)
	defer cancel()
	if err := h.root.Collect(ctx, string(r.Run())); err != nil {
		h.log.Warn("delete a run", "run", r.Run(), "err", err)
	}
}

// retired is called after a run was stopped and released. It deletes the run if all its turns are settled, even while
// the Launcher closes, because Close waits for the caller.
func (h *Launcher) retired(r *process) {
	h.mu.Lock()
	r.advance(released)
	done := r.done()
	if done {
		delete(h.runs, r.Run())
	}
	h.mu.Unlock()
	if done {
		h.collect(r)
	}
}

// background runs f on a goroutine for which Close waits. After Close it calls f directly.
func (h *Launcher) background(f func()) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		f()
		return
	}
	h.work.Go(f)
	h.mu.Unlock()
}

// Close detaches from all running runs, which continue. Idempotent.
func (h *Launcher) Close() error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
	h.mu.Unlock()
	h.work.Wait()
	if err := h.root.Close(); err != nil {
		return fmt.Errorf("close host: %w", err)
	}
	return nil
}

// begun notifies the runner of a new turn. It does so in the background, so that the prompt does not wait. The caller
// must hold no lock.
func (h *Launcher) begun(r *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed { // the next process of ductor handles the run
		return
	}
	h.work.Go(func() {
		wait := time.NewTimer(renewPause)
		defer wait.Stop()
		select {
		case <-wait.C:
			r.renew()
			r.trim()
		case <-h.closing:
		}
	})
}
