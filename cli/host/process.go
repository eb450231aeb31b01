package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/runner"
)

// drainPatience is how long ductor reads the output of a stopped run before it detaches.
const drainPatience = 5 * time.Second

// Pauses between attempts to stop a run that is unreachable.
const (
	stopPause     = time.Second
	stopPauseMost = 30 * time.Second
)

// process is the cli.Process of a run.
type process struct {
	host *Launcher
	run  *runner.Run
	in   input
	out  output

	marks   runMarks
	purpose cli.Purpose

	mu    sync.Mutex
	phase phase
}

// phase is how far ductor has come in ending a run.
type phase int

// The phases of a run, in order.
const (
	running  phase = iota
	stopping       // Stop has failed; stopLater tries again
	dead           // no process of the run is left
	released       // dead, and ductor has detached from the run
)

func newProcess(h *Launcher, run *runner.Run, p cli.Purpose, marks []cli.Mark) *process {
	r := &process{host: h, run: run, purpose: p}
	r.marks.all = marks
	r.in = input{to: run.Stdin(), sent: run.Info().InputEnd}
	r.out = output{from: run.Stdout(), ended: make(chan struct{})}
	return r
}

func (r *process) Run() cli.RunID              { return cli.RunID(r.run.ID()) }
func (r *process) PID() int                    { return r.run.PID() }
func (r *process) Stdin() io.WriteCloser       { return &r.in }
func (r *process) Stdout() io.Reader           { return &r.out }
func (r *process) StderrTail() string          { return r.run.StderrTail() }
func (r *process) Done() <-chan struct{}       { return r.run.Done() }
func (r *process) When(offset int64) time.Time { return r.run.When(offset) }

func (r *process) Exit() cli.ExitStatus {
	e := r.run.Exit()
	if !e.Known {
		return cli.ExitStatus{Code: cli.CodeUnknown, By: cmp.Or(cli.Terminator(e.By), cli.EndedUnseen), OOM: e.OOM}
	}
	return cli.ExitStatus{Code: e.Code, Signal: e.Signal, By: cli.Terminator(e.By), OOM: e.OOM}
}

func (r *process) Interrupt() error {
	if err := r.run.Interrupt(); err != nil {
		return fmt.Errorf("interrupt process %d: %w", r.PID(), err)
	}
	return nil
}

// Memory implements cli.Measured.
func (r *process) Memory(ctx context.Context) (int64, error) {
	info, err := r.run.Inspect(ctx)
	if err != nil {
		return 0, fmt.Errorf("measure process %d: %w", r.PID(), err)
	}
	return info.Memory, nil
}

// Processes implements cli.Lister.
func (r *process) Processes(ctx context.Context) (names []cli.ProcessName, err error) {
	info, err := r.run.Inspect(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the processes of %d: %w", r.PID(), err)
	}
	for _, m := range info.Members {
		names = append(names, cli.ProcessName{Name: m.Name, PID: m.PID})
	}
	return names, nil
}

func (r *process) Begin(ctx context.Context, m cli.Mark) error {
	r.marks.recording.Lock()
	defer r.marks.recording.Unlock()
	m.Input = r.in.position()
	if err := r.host.store(ctx, r.Run(), m); err != nil {
		return err
	}
	r.marks.add(m)
	r.host.reportTurn(r)
	return nil
}

func (r *process) Ended(output int64) { r.marks.ended(output) }

func (r *process) done() bool { return r.reached(released) && !r.marks.open() }

// reached reports whether the run is in phase p or a later one.
func (r *process) reached(p phase) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase >= p
}

// advance sets the phase to p. It returns false if the run had already reached p.
func (r *process) advance(p phase) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.phase < p
	r.phase = max(r.phase, p)
	return before
}

func (r *process) isDead() bool { return r.reached(dead) }

func (r *process) Stop(ctx context.Context, grace time.Duration) error {
	if r.isDead() {
		return nil
	}
	err := r.run.Stop(ctx, grace)
	if err != nil && r.isDead() { // a concurrent call of Stop has released the run
		return nil
	}
	if err != nil {
		r.host.stopLater(r, grace)
		return err
	}
	if r.advance(dead) {
		r.host.background(r.release)
	}
	return nil
}

// stopLater stops a run in an environment that is unreachable now. It tries again until it succeeds, or until the
// Launcher closes. If the Launcher closes first, the next process of ductor finds the run, or the runner ends the run
// as orphaned.
func (h *Launcher) stopLater(r *process, grace time.Duration) {
	if h.opts.Remote == nil {
		return
	}
	first := r.advance(stopping)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !first || h.closed {
		return
	}
	h.work.Go(func() {
		for pause := stopPause; ; pause = min(2*pause, stopPauseMost) {
			select {
			case <-h.closing:
				return
			case <-time.After(pause):
			}
			ctx, cancel := context.WithTimeout(context.Background(), grace+cli.StopSlack)
			err := r.Stop(ctx, grace)
			cancel()
			if err == nil {
				return
			}
		}
	})
}

// endLate stops earlier runs with the agent and conversation of p that stopLater has not stopped yet. Otherwise, the
// agents of an earlier run and of the new run might work in the same session. If an earlier run is still unreachable,
// endLate returns an error.
func (h *Launcher) endLate(ctx context.Context, p cli.Purpose) error {
	for _, r := range h.lateRuns(p) {
		err := r.Stop(ctx, h.opts.Grace)
		var lost *cli.Failure
		if errors.As(err, &lost) {
			return fmt.Errorf("end an earlier run: %w", err)
		}
		if err != nil {
			h.log.Warn("end an earlier run", "run", r.Run(), "err", err)
		}
	}
	return nil
}

func (h *Launcher) lateRuns(p cli.Purpose) (late []*process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		if r.reached(stopping) && !r.isDead() && r.purpose.Agent == p.Agent &&
			r.purpose.Conversation == p.Conversation && r.purpose.Mode != "" && p.Mode != "" {
			late = append(late, r)
		}
	}
	return late
}

// release reads the rest of a stopped run's output, and detaches from the run. The output remains on disk until all
// turns of the run are settled.
func (r *process) release() {
	wait := time.NewTimer(drainPatience)
	defer wait.Stop()
	select {
	case <-r.out.ended:
	case <-r.host.closing:
	case <-wait.C:
	}
	r.run.Detach()
	r.host.retired(r)
}

func (r *process) Detach() { r.run.Detach() }

// input is the program's standard input. It counts the bytes.
type input struct {
	to io.WriteCloser

	mu   sync.Mutex
	sent int64
}

func (i *input) Write(p []byte) (int, error) {
	n, err := i.to.Write(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sent += int64(n)
	return n, err
}

func (i *input) Close() error { return i.to.Close() }

func (i *input) position() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sent
}

// output is the program's standard output. It converts errors of package runner to those of package cli.
type output struct {
	from  *runner.Output
	once  sync.Once
	ended chan struct{} // closed at the end of the output
}

var _ cli.Gatherer = (*output)(nil)

func (o *output) Gather() { o.from.Gather() }
func (o *output) Hurry()  { o.from.Hurry() }

func (o *output) Read(p []byte) (int, error) {
	n, err := o.from.Read(p)
	var lost *runner.LostError
	switch {
	case err == nil:
		return n, nil
	case errors.As(err, &lost):
		reason := "more came than is kept"
		if lost.Damaged {
			reason = "what was kept is damaged"
		}
		return n, &cli.LostOutput{From: lost.From, To: lost.To, Reason: reason}
	}
	o.once.Do(func() { close(o.ended) })
	if errors.Is(err, runner.ErrDetached) {
		return n, cli.ErrDetached
	}
	return n, err
}

// forgetWait limits how long a runner may take to delete output, or to change its limits.
const forgetWait = 5 * time.Second

// renewPause delays the report of a new turn to the runner. Meanwhile, the runner can pass the prompt to the agent.
const renewPause = 200 * time.Millisecond

// renew tells the runner that a new turn has started. Timing.StaleAfter then counts from now.
func (r *process) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), forgetWait)
	defer cancel()
	if err := r.run.Limit(ctx, r.host.limits(r.purpose)); err != nil && !r.isDead() {
		r.host.log.Warn("renew the age limit of a run", "run", r.Run(), "err", err)
	}
}

// trim deletes output that no turn needs. It waits for the runner, so the caller must not hold a lock.
func (r *process) trim() {
	before := r.marks.neededFrom()
	if !r.marks.forgets(before) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetWait)
	defer cancel()
	if err := r.run.Forget(ctx, before); err != nil { // the next turn tries again
		r.host.log.Debug("delete the output of settled turns", "run", r.Run(), "err", err)
	}
}
