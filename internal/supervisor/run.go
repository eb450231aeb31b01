package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrDetached is what a Run gives after Detach.
var ErrDetached = errors.New("detached from the run")

// TakenError says that another client took the run over.
type TakenError struct {
	PID int // of that client
}

func (e *TakenError) Error() string { return fmt.Sprintf("process %d took the run over", e.PID) }

const requestWait = 5 * time.Second

// Run is a client's hold on one run. Every Run ends in Detach or Collect. Methods are safe for concurrent
// use; Stdout has one reader.
type Run struct {
	root  *Root
	info  Info
	again hello // joins the run anew, in its role
	in    runInput
	out   Output

	served chan struct{} // closed when nothing more is received
	done   chan struct{}
	life   context.Context // over when the client leaves
	leave  context.CancelFunc

	mu       sync.Mutex
	link     *link         // nil when there was no supervisor any more
	relinked chan struct{} // closed when another takes the place of link
	inputEnd int64         // how much input the supervisor had taken when link began
	complete bool          // all of the output was received
	gathers  bool          // Stdout is to gather

	rejoins    int   // since the output came to rejoinedAt; receive's
	rejoinedAt int64 // ditto
	detached   bool
	taken      *TakenError
	gone       error // why nothing more is received
	status     Status
	stderr     []byte
	finished   bool // done is closed
}

func newRun(root *Root, l *link, info Info, again hello) *Run {
	run := &Run{root: root, info: info, again: again, link: l, served: make(chan struct{}), done: make(chan struct{})}
	run.life, run.leave = context.WithCancel(context.Background())
	run.relinked = make(chan struct{})
	run.in = runInput{run: run, sent: info.InputEnd}
	run.out.run = run
	run.out.inbox = newInbox(again.Offset, func(limit int64) { _ = run.current().w.marked(kindWindow, limit, nil) })
	return run
}

// current is the connection of this moment; nil when there was never one.
func (r *Run) current() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link
}

// begin starts to receive. The goroutine ends with the connection; Detach and Collect wait for it.
func (r *Run) begin() { go r.receive() }

// ID names the run.
func (r *Run) ID() string { return r.info.ID }

// PID is the agent's process id.
func (r *Run) PID() int { return r.info.PID }

// Info is what was known when this client attached.
func (r *Run) Info() Info { return r.info }

// Stdin writes to the agent. A Write returns when all of it is in the agent's pipe; up to a megabyte arrives
// as a whole or, when this client dies on the way, not at all. Writes to a dead agent fail. A Write to a run in a
// Place outlives a broken connection. Close gives the agent end of file.
func (r *Run) Stdin() io.WriteCloser { return &r.in }

// Stdout reads what the agent prints, from the offset this client attached at. It gives *LostError once
// where output is missing and can be read on, and io.EOF at the end, which comes shortly after the agent's
// exit even when something it started holds the pipe. After Detach it gives ErrDetached, after another
// client attached *TakenError.
func (r *Run) Stdout() *Output { return &r.out }

// Offset is how many bytes of the output were read or lost, from its very beginning: what to give to Attach.
func (r *Run) Offset() int64 { offset, _ := r.out.position(); return offset }

// LostBytes is how many bytes of the output this client never got.
func (r *Run) LostBytes() int64 { _, lost := r.out.position(); return lost }

// StderrTail is the last few kilobytes of standard error so far.
func (r *Run) StderrTail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.stderr)
}

// Done is closed when the agent exited and Exit is valid, or when this client can no longer learn of it.
func (r *Run) Done() <-chan struct{} { return r.done }

// Exit is how the agent ended; valid after Done.
func (r *Run) Exit() Exit { return r.Status().Exit }

// Status is Exit and what belongs to it; valid after Done, and complete after the end of Stdout as well.
func (r *Run) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Err says why nothing more is received: nil while it is, ErrDetached, *TakenError, ErrGone or, of a run in a
// Place, *LostPlaceError.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// receive takes what the supervisor sends.
func (r *Run) receive() {
	defer close(r.served)
	defer r.leave()
	gone := r.serve()
	for errors.Is(gone, ErrGone) && r.root.localEnv == nil && !r.over() {
		if err := r.rejoin(); err != nil {
			gone = r.why(&LostPlaceError{Err: err})
			break
		}
		gone = r.serve()
	}
	r.mu.Lock()
	r.gone = gone
	finished := r.finished
	r.mu.Unlock()
	if !finished {
		var status Status
		if errors.Is(gone, ErrGone) && r.root.localEnv != nil {
			status = r.root.lastStatus(r.info.ID)
		}
		r.finish(status)
	}
	r.out.inbox.close(gone)
}

// serve receives over one connection, and says why no more comes.
func (r *Run) serve() error {
	_ = r.current().serve(r.handle)
	return r.why(ErrGone)
}

// why is the reason for which nothing is received, or otherwise if this client knows none of its own.
func (r *Run) why(otherwise error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.detached:
		return ErrDetached
	case r.taken != nil:
		return r.taken
	}
	return otherwise
}

// over says whether there is nothing more to learn of the run.
func (r *Run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished && r.complete
}

func (r *Run) handle(k kind, payload []byte) error {
	switch k {
	case kindOutput:
		offset, data, err := cutMark(payload)
		if err != nil {
			return err
		}
		return r.out.inbox.put(offset, data)
	case kindLost:
		var l lossNote
		if err := json.Unmarshal(payload, &l); err != nil {
			return fmt.Errorf("read loss: %w", err)
		}
		return r.out.inbox.lose(l)
	case kindStderr:
		r.addStderr(payload)
	case kindExit:
		var status Status
		if err := json.Unmarshal(payload, &status); err != nil {
			return fmt.Errorf("read exit: %w", err)
		}
		r.finish(status)
	case kindEnd:
		r.completed(payload)
		r.out.inbox.close(io.EOF)
	case kindTaken:
		var t takenNote
		if err := json.Unmarshal(payload, &t); err != nil {
			return fmt.Errorf("read takeover: %w", err)
		}
		r.mu.Lock()
		r.taken = &TakenError{PID: t.PID}
		r.mu.Unlock()
		return r.taken
	}
	return nil // a later version's
}

// completed takes what is known of the end by the end of the output.
func (r *Run) completed(payload []byte) {
	_, raw, err := cutMark(payload)
	var status Status
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete = true
	if err != nil || json.Unmarshal(raw, &status) != nil {
		return // the agent still runs
	}
	if r.finished {
		r.status = status
	}
}

func (r *Run) addStderr(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stderr = append(r.stderr, p...)
	if over := len(r.stderr) - stderrKept; over > 0 {
		r.stderr = append(r.stderr[:0], r.stderr[over:]...)
	}
}

func (r *Run) finish(status Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return
	}
	r.finished, r.status = true, status
	if status.Stderr != "" {
		r.stderr = []byte(status.Stderr)
	}
	close(r.done)
}

// Interrupt sends SIGINT to the agent's process group.
func (r *Run) Interrupt() error { return r.Signal(syscall.SIGINT) }

// Signal sends a signal to the agent's process group. An agent that exited gives an error matching
// os.ErrProcessDone.
func (r *Run) Signal(sig syscall.Signal) error {
	select {
	case <-r.done:
		return fmt.Errorf("signal run %s: %w", r.ID(), os.ErrProcessDone)
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestWait)
	defer cancel()
	if _, err := r.ask(ctx, request{Op: opSignal, Signal: int(sig)}); err != nil {
		return fmt.Errorf("signal run %s: %w", r.ID(), err)
	}
	return nil
}

// Update replaces the labels and, unless limits is nil, the limits; MaxAge counts anew then. It returns when
// the supervisor knows: a client that dies afterwards leaves a run with these labels. The disk
// follows within some 20 ms. Owners only.
func (r *Run) Update(ctx context.Context, labels map[string]string, limits *Limits) error {
	if _, err := r.ask(ctx, request{Op: opUpdate, Labels: labels, Limits: limits}); err != nil {
		return fmt.Errorf("update run %s: %w", r.ID(), err)
	}
	return nil
}

// Announce is an Update that does not wait for the answer: it is in force before anything arrives that is written to
// Stdin afterwards, and at the latest when that Write returns. An error means that it was not sent.
func (r *Run) Announce(labels map[string]string, limits *Limits) error {
	err := ErrGone
	if l := r.current(); l != nil {
		err = l.send(request{Op: opUpdate, Labels: labels, Limits: limits})
	}
	if err != nil {
		return fmt.Errorf("update run %s: %w", r.ID(), err)
	}
	return nil
}

// Times is when the output so far was printed. It gives ErrGone when the supervisor is: only it knows.
func (r *Run) Times(ctx context.Context) (Times, error) {
	answer, err := r.ask(ctx, request{Op: opTimes})
	var times Times
	if err == nil {
		times, err = answer.Times.times()
	}
	if err != nil {
		return times, fmt.Errorf("ask for times of run %s: %w", r.ID(), err)
	}
	return times, nil
}

// Inspect is what is known now.
func (r *Run) Inspect(ctx context.Context) (Info, error) {
	answer, err := r.ask(ctx, request{Op: opInfo})
	if err == nil && answer.Info == nil {
		err = errors.New("the supervisor did not tell")
	}
	if err != nil {
		return r.info, fmt.Errorf("inspect run %s: %w", r.ID(), err)
	}
	return *answer.Info, nil
}

// ask does a request over the connection, or over the next one when that breaks. It gives Err when there is none, and
// ErrGone when ctx is done before there is.
func (r *Run) ask(ctx context.Context, q request) (reply, error) {
	for {
		l := r.current()
		if l == nil {
			return reply{}, ErrGone
		}
		answer, err := l.ask(ctx, q)
		if !errors.Is(err, ErrGone) {
			return answer, err
		}
		if gone := r.awaitLink(ctx, l); gone != nil {
			return reply{}, gone
		}
		if !q.Op.repeatable() && !errors.Is(err, errUnsent) {
			return reply{}, err
		}
	}
}

// inputTaken is how much input the supervisor had taken when the connection of this moment began.
func (r *Run) inputTaken() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inputEnd
}

// awaitLink returns when another connection has taken the place of one that broke. The error says why none does: Err,
// or ErrGone when ctx is done.
func (r *Run) awaitLink(ctx context.Context, broken *link) error {
	r.mu.Lock()
	there, relinked := r.link != broken, r.relinked
	r.mu.Unlock()
	if there {
		return nil
	}
	select {
	case <-relinked:
		return nil
	case <-r.served: // receive gives up in time
		return r.Err()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrGone, context.Cause(ctx))
	}
}
