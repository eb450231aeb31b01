package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"syscall"
	"time"
)

// ErrDetached is what a Run gives after Detach.
var ErrDetached = errors.New("detached from the run")

// LostError says that the bytes of [From, To) of a run's output cannot be had any more.
type LostError struct {
	From, To int64
	Damaged  bool // somebody else removed them
}

func (e *LostError) Error() string {
	return fmt.Sprintf("output from %d to %d of the run is lost", e.From, e.To)
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

// Run is a client's hold on one run. Every Run ends in Detach or Collect. Methods are safe for concurrent
// use; Stdout has one reader.
type Run struct {
	c    *Client
	info Info
	in   runInput
	out  *Output
	err  stderr

	done chan struct{}
	gone chan struct{} // closed by Detach
	once sync.Once

	mu     sync.Mutex
	phase  runPhase
	status Status
}

func newRun(c *Client, info Info, offset int64) (*Run, error) {
	r := &Run{c: c, info: info, done: make(chan struct{}), gone: make(chan struct{})}
	r.in = runInput{run: r, sent: info.InputEnd}
	dir := filepath.Join(c.dir, info.ID)
	var err error
	if r.out, err = openOutput(r, filepath.Join(dir, outFile), offset); err != nil {
		return nil, fmt.Errorf("open the output of run %s: %w", info.ID, err)
	}
	if r.err.file, err = openPlain(filepath.Join(dir, errFile)); err != nil {
		return nil, errors.Join(fmt.Errorf("open the output of run %s: %w", info.ID, err), r.out.file.Close())
	}
	return r, nil
}

// ID names the run.
func (r *Run) ID() string { return r.info.ID }

// PID is the agent's process id.
func (r *Run) PID() int { return r.info.PID }

// Info is what was known when this client attached.
func (r *Run) Info() Info { return r.info }

// Stdin writes to the agent. A Write returns when the kernel has all of it for the agent; up to a megabyte arrives as a whole
// or, when this client dies on the way, not at all. A Write outlives the death of the runner, unless it was cut off by that.
// Writes to a dead agent fail. Close gives the agent end of file.
func (r *Run) Stdin() io.WriteCloser { return &r.in }

// Stdout reads what the agent prints, from the offset this client attached at. It gives *LostError once
// where output is missing and can be read on, and io.EOF at the end, which comes shortly after the agent's
// exit even when something it started writes on. After Detach it gives ErrDetached.
func (r *Run) Stdout() *Output { return r.out }

// Offset is how many bytes of the output were read or lost, from its very beginning: what to give to Attach.
func (r *Run) Offset() int64 { return r.out.position() }

const stderrTail = 8 << 10

// StderrTail is the last few kilobytes of standard error so far; after Detach, what they were then.
func (r *Run) StderrTail() string { return r.err.tail() }

// stderr is an agent's standard error. Safe for concurrent use.
type stderr struct {
	mu   sync.Mutex
	file *os.File // nil once it is closed
	last string   // its tail when it was closed
}

func (e *stderr) tail() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		return e.last
	}
	return e.read()
}

// read is tail with the file open. mu is held.
func (e *stderr) read() string {
	info, err := e.file.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(info.Size(), stderrTail))
	n, _ := e.file.ReadAt(buf, info.Size()-int64(len(buf))) // what can be read of it
	return string(bytes.TrimLeft(buf[:n], "\x00"))          // without what was freed
}

func (e *stderr) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file != nil {
		e.last = e.read()
		_ = e.file.Close()
		e.file = nil
	}
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

// finish takes what is known of the end.
func (r *Run) finish(status Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == runEnded {
		return
	}
	if r.phase == runLive {
		close(r.done)
	}
	r.status, r.phase = status, runExited
	if status.Ended {
		r.phase = runEnded
	}
	r.out.wake()
}

// When is when the output at an offset was printed, of what was printed before this client attached: to some 100 ms, or to
// a thousandth of the time it all took. Zero when it was not printed by then.
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
	l, err := r.c.connect(ctx, true)
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

// Update replaces the labels and the limits; MaxAge counts anew then. It returns when the runner knows.
func (r *Run) Update(ctx context.Context, labels map[string]string, l Limits) error {
	if _, err := r.c.ask(ctx, request{Op: opLimits, Run: r.ID(), Labels: labels, Limits: &l}); err != nil {
		return fmt.Errorf("update run %s: %w", r.ID(), err)
	}
	return nil
}

// Inspect is what is known now.
func (r *Run) Inspect(ctx context.Context) (Info, error) {
	answer, err := r.c.ask(ctx, request{Op: opLookUp, Run: r.ID()})
	if err != nil {
		return r.info, fmt.Errorf("inspect run %s: %w", r.ID(), err)
	}
	return *answer.Info, nil
}

// Forget frees the output before offset, and standard error; who asks for that output later gets *LostError. Offsets stay as
// they are. Output that this client has not read is never freed.
func (r *Run) Forget(ctx context.Context, offset int64) error {
	if _, err := r.c.ask(ctx, request{Op: opForget, Run: r.ID(), Offset: min(offset, r.Offset())}); err != nil {
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
	_, err := r.c.ask(asking, request{Op: opStop, Run: r.ID(), Grace: grace})
	if err == nil || ctx.Err() == nil {
		return err
	}
	now, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopSlack)
	defer cancel()
	_, err = r.c.ask(now, request{Op: opStop, Run: r.ID()})
	return err
}

// Detach leaves the run as it is, agent and all, and forgets it. Reads end with ErrDetached. Idempotent.
func (r *Run) Detach() {
	r.once.Do(func() {
		close(r.gone)
		r.c.mu.Lock()
		delete(r.c.runs, r)
		l := r.c.link
		r.c.mu.Unlock()
		if l != nil {
			_ = l.send(request{Op: opDetach, Run: r.ID()}, nil) // a broken connection owns nothing
		}
		r.out.close()
		r.err.close()
	})
}

// Collect removes what is left of a run: what runs of it, and what is on disk. The Run is detached then.
func (r *Run) Collect(ctx context.Context) error {
	if err := r.c.Collect(ctx, r.ID()); err != nil {
		return err
	}
	r.Detach()
	return nil
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
	i.run.out.stir()
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
	for {
		select {
		case <-i.run.done:
			return os.ErrProcessDone
		case <-i.run.gone:
			return ErrDetached
		default:
		}
		l, err := i.run.c.connect(i.run.c.life, true)
		if err != nil {
			return err
		}
		_, err = l.ask(i.run.c.life, request{Op: opWrite, Run: i.run.ID()}, part)
		if !errors.Is(err, ErrGone) || i.run.c.life.Err() != nil {
			return err
		}
		answer, err := i.run.c.ask(i.run.c.life, request{Op: opLookUp, Run: i.run.ID()})
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
	select {
	case <-i.run.gone:
		return ErrDetached
	default:
	}
	ctx, cancel := context.WithTimeout(i.run.c.life, requestWait)
	defer cancel()
	_, err := i.run.c.ask(ctx, request{Op: opCloseInput, Run: i.run.ID()})
	if err != nil {
		return fmt.Errorf("close standard input of run %s: %w", i.run.ID(), err)
	}
	return nil
}
