package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"
)

// ErrDetached is the error of methods of a Run after Detach.
var ErrDetached = errors.New("detached from the run")

// LostError means that the output from offset From up to To is no longer available.
type LostError struct {
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Damaged bool  `json:"damaged,omitempty"` // the agent truncated its output file; continue at From, not at To
}

func (e *LostError) Error() string {
	return fmt.Sprintf("output from %d to %d of the run is lost", e.From, e.To)
}

// next returns the offset at which to continue reading.
func (e *LostError) next() int64 {
	if e.Damaged {
		return e.From
	}
	return e.To
}

const (
	requestWait = 5 * time.Second
	// stopSlack is how long Stop waits for the runner in addition to the grace period.
	stopSlack = 8 * time.Second
	// wholeInput is the maximum size of the parts into which Stdin divides a Write. Each part reaches the agent
	// completely or not at all.
	wholeInput = 1 << 20
)

// runPhase is the phase of a run, as far as the client of the run knows it.
type runPhase int

const (
	runLive   runPhase = iota
	runExited          // Done is closed
	runEnded           // the position of the end of the output is known
)

// Run is a client's handle of one run. The caller must Detach it. Methods are safe for concurrent use, but only one
// goroutine may read Stdout.
type Run struct {
	c    *Client
	info Info
	in   runInput
	out  *Output

	ctx    context.Context // done after Detach
	cancel context.CancelFunc
	end    runEnd
}

// runEnd is what the client knows about the end of a run. Safe for concurrent use.
type runEnd struct {
	done  chan struct{}
	ended chan struct{} // closed when the phase becomes runEnded

	mu     sync.Mutex
	phase  runPhase
	status Status
	stderr string // last bytes of standard error; the runner sent them with the status
	lost   error  // set if the client cannot learn how the run ended
}

func newRun(c *Client, info Info, offset int64) (r *Run, err error) {
	r = &Run{c: c, info: info, end: runEnd{done: make(chan struct{}), ended: make(chan struct{})}}
	r.ctx, r.cancel = context.WithCancel(c.life.ctx)
	r.in = runInput{run: r, sent: info.InputEnd}
	if r.out, err = c.newOutput(r, offset); err != nil {
		r.cancel()
	}
	return r, err
}

// ID returns the run's ID.
func (r *Run) ID() string { return r.info.ID }

// PID returns the agent's process ID.
func (r *Run) PID() int { return r.info.PID }

// Info returns the state that the run had when this client attached.
func (r *Run) Info() Info { return r.info }

// Stdin writes to the agent. A Write returns when the kernel has received the whole input for the agent. If this client
// dies during a Write of up to a megabyte, the agent receives the whole input or nothing. If the runner dies, a Write
// continues through the next runner, but fails if the input was only partly written. Writes to a dead agent fail. Close
// closes the agent's standard input.
func (r *Run) Stdin() io.WriteCloser { return &r.in }

// Stdout returns the agent's output from the offset at which this client attached. If output is missing, Read returns a
// *LostError once; the next Read continues after the missing part. Read returns io.EOF shortly after the agent's exit,
// even if another process of the agent continues to write. It returns ErrDetached after Detach, and
// *LostEnvironmentError if the runner is unreachable.
func (r *Run) Stdout() *Output { return r.out }

// Offset returns the position up to which this client has read the output. Attach can continue there. Lost output
// counts as read.
func (r *Run) Offset() int64 { return r.out.position() }

// StderrTail returns the last few kilobytes of standard error. After Detach, it returns "" unless the agent had ended
// before Detach.
func (r *Run) StderrTail() string {
	r.end.mu.Lock()
	known, text := r.end.phase > runLive || r.ctx.Err() != nil, r.end.stderr
	r.end.mu.Unlock()
	if known {
		return text
	}
	ctx, cancel := context.WithTimeout(r.ctx, requestWait)
	defer cancel()
	answer, _ := r.ask(ctx, request{Op: opStderr}) // empty on failure
	return answer.Stderr
}

// Done returns a channel that is closed when the agent has exited and Exit is valid.
func (r *Run) Done() <-chan struct{} { return r.end.done }

// Exit returns how the agent ended. It is valid only after Done.
func (r *Run) Exit() Exit { return r.Status().Exit }

// Status returns the status of the run. Exit is valid after Done. The other fields are valid after Stdout has returned
// io.EOF.
func (r *Run) Status() Status {
	r.end.mu.Lock()
	defer r.end.mu.Unlock()
	return r.end.status
}

func (e *runEnd) hasEnded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase == runEnded
}

// outputEnd returns the offset of the end of the output. It is valid only in phase runEnded.
func (r *Run) outputEnd() int64 { return r.Status().OutputEnd }

// finish records the end of the run. The runner sends two statuses: one when the agent has exited, and one when the
// output has ended. The first status may lack the end of the output.
func (e *runEnd) finish(status Status, stderr string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == runEnded {
		return
	}
	if e.phase == runLive {
		close(e.done)
	}
	e.status, e.phase, e.stderr = status, runExited, stderr
	if status.Ended {
		e.phase = runEnded
		close(e.ended)
	}
}

// When returns the time at which the agent printed the output at an offset. The time is accurate to about 100 ms or,
// for a long run, to a thousandth of the run's duration. When returns the zero time for output that the agent printed
// after this client attached.
func (r *Run) When(offset int64) time.Time {
	t := r.info.Times
	if offset < 0 || offset >= r.info.OutputEnd {
		return time.Time{}
	}
	n := sort.Search(len(t)/2, func(i int) bool { return t[2*i] > offset })
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(t[2*n-1])
}

// Interrupt sends SIGINT to the agent's process group. The error matches os.ErrProcessDone if the agent has exited.
func (r *Run) Interrupt() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestWait)
	defer cancel()
	l, err := r.c.reach(ctx, AsIs)
	if err == nil {
		_, err = l.ask(ctx, request{Op: opSignal, Run: r.ID(), Signal: int(syscall.SIGINT)}, nil)
	}
	if errors.Is(err, syscall.ESRCH) {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("signal run %s: %w", r.ID(), err)
	}
	return nil
}

// ask sends an idempotent request about the run.
func (r *Run) ask(ctx context.Context, q request) (reply, error) {
	q.Run = r.ID()
	return r.c.ask(ctx, q, AsIs)
}

// Limit replaces the limits of the run, and returns when the runner has stored them. The new MaxAge counts from now.
func (r *Run) Limit(ctx context.Context, l Limits) error {
	if _, err := r.ask(ctx, request{Op: opLimits, Limits: &l}); err != nil {
		return fmt.Errorf("limit run %s: %w", r.ID(), err)
	}
	return nil
}

// Inspect returns the current state of the run.
func (r *Run) Inspect(ctx context.Context) (Info, error) {
	answer, err := r.ask(ctx, request{Op: opLookUp})
	if err != nil {
		return r.info, fmt.Errorf("inspect run %s: %w", r.ID(), err)
	}
	return *answer.Info, nil
}

// Forget deletes the output before offset, and all of standard error. It does not delete output that this client has
// not read. A client that later reads deleted output gets a *LostError. Offsets do not change.
func (r *Run) Forget(ctx context.Context, offset int64) error {
	if _, err := r.ask(ctx, request{Op: opForget, Offset: min(offset, r.Offset())}); err != nil {
		return fmt.Errorf("forget output of run %s: %w", r.ID(), err)
	}
	return nil
}

// Stop ends the agent and all its descendants: it sends SIGTERM, waits for the grace period, sends SIGKILL, and returns
// when no process is left. If ctx ends, Stop sends SIGKILL at once. Stop works after the agent's exit and after Detach.
// A second Stop has no effect.
func (r *Run) Stop(ctx context.Context, grace time.Duration) error {
	err := r.stop(ctx, grace)
	if errors.Is(err, syscall.ENOENT) { // the run was collected, so no process is left
		err = nil
	}
	if err != nil {
		return fmt.Errorf("stop run %s: %w", r.ID(), err)
	}
	return nil
}

func (r *Run) stop(ctx context.Context, grace time.Duration) error {
	asking, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	_, err := r.c.askToEnd(asking, request{Op: opStop, Run: r.ID(), Grace: grace})
	if err == nil || ctx.Err() == nil {
		return err
	}
	now, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopSlack)
	defer cancel()
	_, err = r.c.askToEnd(now, request{Op: opStop, Run: r.ID()})
	return err
}

// Detach detaches from the run. The agent continues. Later reads return ErrDetached. A second Detach has no effect.
func (r *Run) Detach() {
	r.c.mu.Lock()
	held, l := r.c.held.runs[r], r.c.link
	delete(r.c.held.runs, r)
	r.c.mu.Unlock()
	if !held {
		return
	}
	r.cancel()
	if l != nil {
		_ = l.send(request{Op: opDetach, Run: r.ID()}, nil) // if the connection is broken, the run has no owner anyway
	}
	r.out.from.close()
}

type runInput struct {
	run *Run

	mu   sync.Mutex // held during a write
	sent int64      // bytes sent since the start of the agent
}

func (i *runInput) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run.out.from.noteActivity()
	for written := 0; ; {
		part := p[written:min(written+wholeInput, len(p))]
		if err := i.send(part); err != nil {
			return written, fmt.Errorf("write to run %s: %w", i.run.ID(), err)
		}
		i.sent += int64(len(part))
		written += len(part)
		if written == len(p) {
			return written, nil
		}
	}
}

// send writes a part of the input completely or not at all. If the connection breaks during the write, send asks the
// next connection whether the part arrived.
func (i *runInput) send(part []byte) error {
	r, c := i.run, i.run.c
	for {
		select {
		case <-r.end.done:
			return os.ErrProcessDone
		case <-r.ctx.Done():
			return ErrDetached
		default:
		}
		l, err := c.reach(c.life.ctx, AsIs)
		if err != nil {
			return err
		}
		_, err = l.ask(c.life.ctx, request{Op: opWrite, Run: r.ID()}, part)
		if !errors.Is(err, ErrGone) || c.life.over() {
			return err
		}
		answer, err := r.ask(c.life.ctx, request{Op: opLookUp})
		switch {
		case err != nil:
			return err
		case answer.Info.InputTorn || answer.Info.Status != nil:
			return ErrGone
		case answer.Info.InputEnd > i.sent:
			return nil
		}
	}
}

func (i *runInput) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.run.ctx.Err() != nil {
		return ErrDetached
	}
	ctx, cancel := context.WithTimeout(i.run.c.life.ctx, requestWait)
	defer cancel()
	if _, err := i.run.ask(ctx, request{Op: opCloseInput}); err != nil {
		return fmt.Errorf("close standard input of run %s: %w", i.run.ID(), err)
	}
	return nil
}
