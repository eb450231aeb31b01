package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"ductor/internal/supervisor"
)

// drainPatience is how long the output of a stopped run may still be read before ductor releases it.
const drainPatience = 5 * time.Second

// Between two tries to stop a run that cannot be reached.
const (
	stopPause     = time.Second
	stopPauseMost = 30 * time.Second
)

// hostRun is a Process: a run under a supervisor.
type hostRun struct {
	host  *Host
	run   *supervisor.Run
	times supervisor.Times // of what was printed before this Host attached
	in    hostInput
	out   hostOutput

	marks   runMarks
	purpose Purpose

	mu      sync.Mutex
	dead    bool // it was stopped
	stopped bool // and released
	late    bool // it is being stopped in the background, for it could not be reached
}

func newHostRun(h *Host, run *supervisor.Run, p Purpose, marks []Mark, times supervisor.Times) *hostRun {
	r := &hostRun{host: h, run: run, times: times, purpose: p}
	r.marks.all = marks
	r.in = hostInput{to: run.Stdin(), sent: run.Info().InputEnd}
	r.out = hostOutput{from: run.Stdout(), ended: make(chan struct{})}
	return r
}

func (r *hostRun) Run() RunID                  { return RunID(r.run.ID()) }
func (r *hostRun) PID() int                    { return r.run.PID() }
func (r *hostRun) Stdin() io.WriteCloser       { return &r.in }
func (r *hostRun) Stdout() io.Reader           { return &r.out }
func (r *hostRun) StderrTail() string          { return r.run.StderrTail() }
func (r *hostRun) Done() <-chan struct{}       { return r.run.Done() }
func (r *hostRun) When(offset int64) time.Time { return r.times.At(offset) }

func (r *hostRun) Exit() ExitStatus {
	e := r.run.Exit()
	if !e.Known {
		return ExitStatus{Code: CodeUnknown, By: EndedUnseen, OOM: e.OOM}
	}
	return ExitStatus{Code: e.Code, Signal: e.Signal, By: Terminator(e.By), OOM: e.OOM}
}

func (r *hostRun) Interrupt() error {
	if err := r.run.Interrupt(); err != nil {
		return fmt.Errorf("interrupt process %d: %w", r.PID(), err)
	}
	return nil
}

// Memory is what the program and all it started have resident now; see Measured.
func (r *hostRun) Memory(ctx context.Context) (int64, error) {
	info, err := r.run.Inspect(ctx)
	if err != nil {
		return 0, fmt.Errorf("measure process %d: %w", r.PID(), err)
	}
	return info.Memory, nil
}

// Processes names what runs of the program and of all it started; see Lister.
func (r *hostRun) Processes(ctx context.Context) (names []ProcessName, err error) {
	info, err := r.run.Inspect(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the processes of %d: %w", r.PID(), err)
	}
	for _, m := range info.Members {
		names = append(names, ProcessName{Name: m.Name, PID: m.PID})
	}
	return names, nil
}

func (r *hostRun) Begin(ctx context.Context, m Mark) error {
	r.marks.recording.Lock()
	defer r.marks.recording.Unlock()
	m.Input = r.in.position()
	labels, err := labelsOf(r.purpose, r.marks.add(m))
	if err != nil {
		return err
	}
	limits := r.host.limits(r.purpose)
	if err := r.run.Update(ctx, labels, &limits); err != nil {
		return fmt.Errorf("mark the beginning of a turn: %w", err)
	}
	r.host.trimLater(r)
	return nil
}

// retire takes note that the run was stopped. It says whether nothing needs the run any more.
func (r *hostRun) retire() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	return !r.marks.open()
}

// done says whether nothing needs the run any more.
func (r *hostRun) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped && !r.marks.open()
}

func (r *hostRun) Stop(ctx context.Context, grace time.Duration) error {
	if r.isDead() {
		return nil
	}
	err := r.run.Stop(ctx, grace)
	if err != nil && r.isDead() { // another Stop was quicker, and the run is released
		return nil
	}
	if errors.Is(err, supervisor.ErrDetached) {
		err = r.stopDetached(ctx, grace)
	}
	if err != nil {
		r.host.stopLater(r, grace)
		return err
	}
	if r.die() {
		r.host.background(r.release)
	}
	return nil
}

// stopLater goes on trying to stop a run in a place that could not be reached, until it is or until this Host
// ends: the next one finds it, or it finds itself orphaned.
func (h *Host) stopLater(r *hostRun, grace time.Duration) {
	if h.opts.Supervisor.Place == nil {
		return
	}
	r.mu.Lock()
	again := r.late
	r.late = true
	r.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if again || h.closed {
		return
	}
	h.work.Go(func() {
		for pause := stopPause; ; pause = min(2*pause, stopPauseMost) {
			select {
			case <-h.closing:
				return
			case <-time.After(pause):
			}
			ctx, cancel := context.WithTimeout(context.Background(), grace+StopSlack)
			err := r.Stop(ctx, grace)
			cancel()
			if err == nil {
				return
			}
		}
	})
}

// endLate ends runs that should have been ended before, and could not be reached: a session is not resumed while
// an agent that ductor does not listen to works in it. It is an error if they still cannot be reached.
func (h *Host) endLate(ctx context.Context, p Purpose) error {
	for _, r := range h.lateRuns(p) {
		err := r.Stop(ctx, h.opts.Grace)
		var lost *Failure
		if errors.As(err, &lost) {
			return fmt.Errorf("end what ran before: %w", err)
		}
		if err != nil {
			h.log.Warn("end what ran before", "run", r.Run(), "err", err)
		}
	}
	return nil
}

func (h *Host) lateRuns(p Purpose) (late []*hostRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		if r.isLate() && r.purpose.Agent == p.Agent && r.purpose.Conversation == p.Conversation && r.purpose.Mode != "" && p.Mode != "" {
			late = append(late, r)
		}
	}
	return late
}

func (r *hostRun) isLate() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late && !r.dead
}

// stopDetached ends a run that was detached from, whoever may have it by now.
func (r *hostRun) stopDetached(ctx context.Context, grace time.Duration) error {
	again, err := r.host.root.Follow(context.WithoutCancel(ctx), string(r.Run()), 0)
	if errors.Is(err, fs.ErrNotExist) { // collected, and nothing is collected that lives
		return nil
	}
	if err != nil {
		return r.host.root.Kill(ctx, string(r.Run()))
	}
	defer again.Detach()
	return again.Stop(ctx, grace)
}

func (r *hostRun) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// die takes note that nothing of the run is left alive. It says whether that is news.
func (r *hostRun) die() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.dead
	r.dead = true
	return !was
}

// release releases a stopped run once its last words were read. They stay on the disk until the turns they
// are of are settled.
func (r *hostRun) release() {
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

func (r *hostRun) Detach() { r.run.Detach() }

// hostInput counts what the program was sent.
type hostInput struct {
	to io.WriteCloser

	mu   sync.Mutex
	sent int64
}

func (i *hostInput) Write(p []byte) (int, error) {
	n, err := i.to.Write(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sent += int64(n)
	return n, err
}

func (i *hostInput) Close() error { return i.to.Close() }

func (i *hostInput) position() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sent
}

// hostOutput says what went wrong in the words of this package.
type hostOutput struct {
	from  *supervisor.Output
	once  sync.Once
	ended chan struct{} // closed when there is no more to read
}

var _ Gatherer = (*hostOutput)(nil)

func (o *hostOutput) Gather() { o.from.Gather() }
func (o *hostOutput) Hurry()  { o.from.Hurry() }

func (o *hostOutput) Read(p []byte) (int, error) {
	n, err := o.from.Read(p)
	var lost *supervisor.LostError
	switch {
	case err == nil:
		return n, nil
	case errors.As(err, &lost):
		reason := "more came than is kept"
		if lost.Damaged {
			reason = "what was kept is damaged"
		}
		return n, &LostOutput{From: lost.From, To: lost.To, Reason: reason}
	}
	o.once.Do(func() { close(o.ended) })
	if errors.Is(err, supervisor.ErrDetached) {
		return n, ErrDetached
	}
	return n, err
}
