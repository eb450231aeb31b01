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

// ErrDetached is what a Run gives after Detach.
var ErrDetached = errors.New("detached from the run")

// LostError says that the bytes of [From, To) of a run's output cannot be had any more.
type LostError struct {
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Damaged bool  `json:"damaged,omitempty"` // the agent removed them, and its output goes on at From
}

func (e *LostError) Error() string {
	return fmt.Sprintf("output from %d to %d of the run is lost", e.From, e.To)
}

// next is the offset to read on from.
func (e *LostError) next() int64 {
	if e.Damaged {
		return e.From
	}
	return e.To
}

const (
	requestWait = 5 * time.Second
	// stopSlack is how long beyond its grace a stop may take before it counts as unanswered.
	stopSlack = 8 * time.Second
	// wholeInput is how much of one Write reaches the agent as a whole or not at all.
	wholeInput = 1 << 20
)

// runPhase is what a client knows of a run's end.
type runPhase int

// The phases of a run at a client.
const (
	runLive   runPhase = iota
	runExited          // Done is closed
	runEnded           // the end of the output is known
)

// Run is a client's hold on one run. Every Run ends in Detach. Methods are safe for concurrent
// use; Stdout has one reader.
type Run struct {
	c    *Client
	info Info
	in   runInput
	out  *Output

	life  context.Context // over when it is detached from
	leave context.CancelFunc
	done  chan struct{}
	ended chan struct{} // closed when it reaches the phase runEnded

	mu sync.Mutex
	runEnd
}

// runEnd is what a client knows of the end of a run.
type runEnd struct {
	phase  runPhase
	status Status
	stderr string // its tail, as it was told with the status
	lost   error  // why nothing more can be learned
}

func newRun(c *Client, info Info, offset int64) (r *Run, err error) {
	r = &Run{c: c, info: info, done: make(chan struct{}), ended: make(chan struct{})}
	r.life, r.leave = context.WithCancel(c.life)
	r.in = runInput{run: r, sent: info.InputEnd}
	if r.out, err = c.newOutput(r, offset); err != nil {
		r.leave()
	}
	return r, err
}

// ID names the run.
func (r *Run) ID() string { return r.info.ID }

// PID is the agent's process id.
func (r *Run) PID() int { return r.info.PID }

// Info is what was known when this client attached.
func (r *Run) Info() Info { return r.info }

// Stdin writes to the agent. A Write returns when the kernel has all of it for the agent; up to a megabyte arrives as a
// whole or, when this client dies on the way, not at all. A Write outlives the death of the runner, unless it was cut
// off by that. Writes to a dead agent fail. Close gives the agent end of file.
func (r *Run) Stdin() io.WriteCloser { return &r.in }

// Stdout reads what the agent prints, from the offset this client attached at. It gives *LostError once
// where output is missing and can be read on, and io.EOF at the end, which comes shortly after the agent's
// exit even when something it started writes on. After Detach it gives ErrDetached, and *LostEnvironmentError where the
// runner cannot be reached any more.
func (r *Run) Stdout() *Output { return r.out }

// Offset is how many bytes of the output were read or lost, from its very beginning: what to give to Attach.
func (r *Run) Offset() int64 { return r.out.position() }

// StderrTail is the last few kilobytes of standard error so far; after Detach, of an agent that had ended.
func (r *Run) StderrTail() string {
	r.mu.Lock()
	known, text := r.phase > runLive || r.life.Err() != nil, r.stderr
	r.mu.Unlock()
	if known {
		return text
	}
	ctx, cancel := context.WithTimeout(r.life, requestWait)
	defer cancel()
	answer, _ := r.ask(ctx, request{Op: opStderr}) // what cannot be had is empty
	return answer.Stderr
}

// Done is closed when the agent exited and Exit is valid.
func (r *Run) Done() <-chan struct{} { return r.done }

// Exit is how the agent ended; valid after Done.
func (r *Run) Exit() Exit { return r.Status().Exit }

// Status is Exit and what belongs to it; valid after Done, and complete after the end of Stdout as well.
func (r *Run) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *Run) at() runPhase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase
}

// outputEnd is where the output ends, once that is known.
func (r *Run) outputEnd() int64 { return r.Status().OutputEnd }

// finish takes what is known of the end, and the tail of standard error.
func (r *Run) finish(status Status, stderr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == runEnded {
		return
	}
	if r.phase == runLive {
		close(r.done)
	}
	r.status, r.phase, r.stderr = status, runExited, stderr
	if status.Ended {
		r.phase = runEnded
		close(r.ended)
	}
}

// When is when the output at an offset was printed, of what was printed before this client attached: to some 100 ms, or
// to a thousandth of the time it all took. Zero when it was not printed by then.
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

// Interrupt sends SIGINT to the agent's process group. An agent that exited gives an error matching os.ErrProcessDone.
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

// ask does a request about the run that may be done twice.
func (r *Run) ask(ctx context.Context, q request) (reply, error) {
	q.Run = r.ID()
	return r.c.ask(ctx, q, AsIs)
}

// Limit replaces the limits; MaxAge counts anew then. It returns when the runner knows.
func (r *Run) Limit(ctx context.Context, l Limits) error {
	if _, err := r.ask(ctx, request{Op: opLimits, Limits: &l}); err != nil {
		return fmt.Errorf("limit run %s: %w", r.ID(), err)
	}
	return nil
}

// Inspect is what is known now.
func (r *Run) Inspect(ctx context.Context) (Info, error) {
	answer, err := r.ask(ctx, request{Op: opLookUp})
	if err != nil {
		return r.info, fmt.Errorf("inspect run %s: %w", r.ID(), err)
	}
	return *answer.Info, nil
}

// Forget frees the output before offset, and standard error; who asks for that output later gets *LostError. Offsets
// stay as they are. Output that this client has not read is never freed.
func (r *Run) Forget(ctx context.Context, offset int64) error {
	if _, err := r.ask(ctx, request{Op: opForget, Offset: min(offset, r.Offset())}); err != nil {
		return fmt.Errorf("forget output of run %s: %w", r.ID(), err)
	}
	return nil
}

// Stop ends the agent and every descendant: TERM, grace, KILL, reap, look again. It returns when none is
// left, and at once when none was. When ctx is done the grace is over. Idempotent; it works after the agent
// exited and after Detach.
func (r *Run) Stop(ctx context.Context, grace time.Duration) error {
	err := r.stop(ctx, grace)
	if errors.Is(err, syscall.ENOENT) { // collected, and nothing is collected that lives
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

// Detach leaves the run as it is, agent and all, and forgets it. Reads end with ErrDetached. Idempotent.
func (r *Run) Detach() {
	r.c.mu.Lock()
	held, l := r.c.runs[r], r.c.link
	delete(r.c.runs, r)
	r.c.mu.Unlock()
	if !held {
		return
	}
	r.leave()
	if l != nil {
		_ = l.send(request{Op: opDetach, Run: r.ID()}, nil) // a broken connection owns nothing
	}
	r.out.from.close()
}

// runInput is the agent's standard input.
type runInput struct {
	run *Run

	mu   sync.Mutex // one write after the other
	sent int64      // from the agent's beginning on
}

func (i *runInput) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run.out.from.stir()
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

// send writes what arrives as a whole or not at all. After a broken connection the runner says whether it did.
func (i *runInput) send(part []byte) error {
	r, c := i.run, i.run.c
	for {
		select {
		case <-r.done:
			return os.ErrProcessDone
		case <-r.life.Done():
			return ErrDetached
		default:
		}
		l, err := c.reach(c.life, AsIs)
		if err != nil {
			return err
		}
		_, err = l.ask(c.life, request{Op: opWrite, Run: r.ID()}, part)
		if !errors.Is(err, ErrGone) || c.life.Err() != nil {
			return err
		}
		answer, err := r.ask(c.life, request{Op: opLookUp})
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
	if i.run.life.Err() != nil {
		return ErrDetached
	}
	ctx, cancel := context.WithTimeout(i.run.c.life, requestWait)
	defer cancel()
	if _, err := i.run.ask(ctx, request{Op: opCloseInput}); err != nil {
		return fmt.Errorf("close standard input of run %s: %w", i.run.ID(), err)
	}
	return nil
}
