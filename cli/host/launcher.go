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

// StartedRun is the debug message that a Launcher logs for each program that it starts. The attribute "run" contains
// the RunID.
const StartedRun = "a run was started"

const (
	probeOrphan = time.Second // how long a probe may run after ductor has died; for probes, see cli.Purpose.Mode
	collectWait = 10 * time.Second
	lookWait    = time.Minute // limit of LookPath, including the time to create the environment
)

// Options configures a Launcher. Zero values mean the defaults, but Dir is required unless Remote is set.
type Options struct {
	Dir string // directory for the runs; Open creates it and denies other users access to it
	// Runner configures how runners start on this machine.
	Runner runner.Options
	// Remote starts the runs in another environment; nil means this machine. The Launcher closes Remote.
	Remote     *runner.Client
	cli.Timing       // Stall and ToolStall are ignored
	MaxJournal int64 // how many bytes of output a runner stores; 0 means the runner's default
	Logger     *slog.Logger
}

// Launcher implements cli.Launcher for this machine, or for another environment. Linux only. Safe for concurrent use.
type Launcher struct {
	opts Options
	root *runner.Client
	log  *slog.Logger

	mu       sync.Mutex
	runs     map[cli.RunID]*process // runs that were started or attached to, and are not deleted yet
	starting map[cli.RunID]bool
	closed   bool
	work     sync.WaitGroup // background work; mu must be held to add work
	record   cli.Recorder   // nil stores nothing

	closing chan struct{} // closed by Close
}

var (
	_ cli.Launcher  = (*Launcher)(nil)
	_ cli.Finder    = (*Launcher)(nil)
	_ cli.Recording = (*Launcher)(nil)
	_ cli.Measured  = (*process)(nil)
	_ cli.Lister    = (*process)(nil)
)

// Open opens a launcher. The caller must Close it.
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

// LookPath implements cli.Launcher. If name contains a slash, LookPath only checks that path.
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

// announce registers the ID of a run that is being started, so that Left does not list the run. The caller must call
// done when the method hold has registered the run, or when the start has failed.
func (h *Launcher) announce(id cli.RunID) (done func()) {
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

// hold creates and registers the process of a run.
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

// Settled implements cli.Launcher.
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

// Rests reports whether a run is waiting for its next turn. ductor may end such a run, because another run can continue
// its session.
func (h *Launcher) Rests(run cli.RunID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[run]
	return r != nil && r.marks.rests()
}

// forget deletes a run in the background. The caller holds mu.
func (h *Launcher) forget(r *process) {
	delete(h.runs, r.Run())
	if h.closed { // the next process of ductor will delete the run
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

// retired is called when a run was stopped and ductor has detached from the run. If all turns of the run are settled,
// retired deletes the run, even while the Launcher closes. Close waits until retired has returned.
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

// background runs f on a goroutine. Close waits for this goroutine. After Close, background itself runs f.
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

// Close detaches from all runs. Their programs continue. Idempotent.
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

// reportTurn tells the runner in the background about a new turn. It does not wait for the runner, because this would
// delay the prompt. The caller must not hold mu.
func (h *Launcher) reportTurn(r *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed { // the next process of ductor will handle the run
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
