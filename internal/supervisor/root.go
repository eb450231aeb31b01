package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
)

// Options of a Root. The zero value is good.
type Options struct {
	// Command starts a supervisor: a program that calls Main, and its arguments. Default: this very
	// program, also when its file was replaced after the start, with the argument "supervise". root=DIR is added.
	Command []string
	// Spares is how many idle supervisors are kept ready, so that a start need not wait for a process of
	// ours as well. At most 8.
	Spares int
	// Protocol is what this client speaks; the zero value is what the build speaks. For drills of upgrades.
	Protocol Protocol
	// Place is where the runs are, if that is not this machine. Command has no meaning then, nor has the
	// directory: the place knows its own. Nothing is asked of it before it is needed.
	Place Place
}

const maxSpares = 8

var errClosed = errors.New("the runs were closed")

// Root is a directory of runs and the way to start them. Use Open. Safe for concurrent use.
type Root struct {
	*localEnv // nil when the runs are in a Place
	env       runEnv
	proto     Protocol

	mu     sync.Mutex
	runs   map[*Run]bool
	closed bool
}

// Open makes dir if it is not there, readable by its user only. What a client started that is dead by then
// is a run by then, or never will be; supervisors in between are waited for, at most a second. Close what it
// returns.
func Open(dir string, opts Options) (*Root, error) {
	if opts.Protocol == (Protocol{}) {
		opts.Protocol = ours()
	}
	r := &Root{proto: opts.Protocol, runs: map[*Run]bool{}}
	if opts.Place != nil {
		r.env = newRemoteEnv(opts)
		return r, nil
	}
	g, err := openLocalEnv(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	r.localEnv, r.env = g, g
	return r, nil
}

// Close detaches from every run and ends the spares. The runs go on. Idempotent.
func (r *Root) Close() error {
	r.mu.Lock()
	r.closed = true
	var open []*Run
	for run := range r.runs {
		open = append(open, run)
	}
	r.mu.Unlock()
	for _, run := range open {
		run.Detach()
	}
	r.env.close()
	return nil
}

// Start starts an agent under a supervisor of its own and attaches to it. ctx bounds the start only. A program
// that is not there gives an error matching fs.ErrNotExist, a missing directory one that does not; an ID
// that was used before and not collected gives one matching fs.ErrExist.
func (r *Root) Start(ctx context.Context, spec Spec) (*Run, error) {
	if r.isClosed() {
		return nil, fmt.Errorf("start: %w", errClosed)
	}
	if spec.ID == "" {
		spec.ID = rand.Text()
	}
	h := hello{Protocol: r.proto, Role: roleStart, Spec: &spec, Window: window}
	l, w, err := r.env.start(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return r.adopt(l, w, hello{Protocol: r.proto, Role: roleOwn, Window: window})
}

// adopt makes a Run of a connection; again is how it is joined anew when the connection is lost.
func (r *Root) adopt(l *link, w welcome, again hello) (*Run, error) {
	run := newRun(r, l, w.Info, again)
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.runs[run] = true
	}
	r.mu.Unlock()
	run.begin()
	if closed {
		run.Detach()
		return nil, errClosed // what was started is listed without an owner
	}
	return run, nil
}

func (r *Root) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (r *Root) forget(run *Run) {
	r.mu.Lock()
	delete(r.runs, run)
	r.mu.Unlock()
	r.env.tidy()
}

// Attach makes this client the owner of a run, from the offset up to which it has processed the output. An
// owner that was there before is told. A journal that ends before offset gives *OffsetError, a supervisor of
// another version *VersionError, a run that is not there an error matching fs.ErrNotExist. When the
// supervisor is gone, the Run gives what is on disk.
func (r *Root) Attach(ctx context.Context, id string, offset int64) (*Run, error) {
	run, err := r.join(ctx, id, hello{Role: roleOwn, Offset: offset, Window: window})
	if err != nil {
		return nil, fmt.Errorf("attach to run %s: %w", id, err)
	}
	return run, nil
}

// Follow reads along without owning: its Stdin fails, the run does not wait for it and does not live for it.
func (r *Root) Follow(ctx context.Context, id string, offset int64) (*Run, error) {
	run, err := r.join(ctx, id, hello{Role: roleWatch, Offset: offset, Window: window})
	if err != nil {
		return nil, fmt.Errorf("follow run %s: %w", id, err)
	}
	return run, nil
}

func (r *Root) join(ctx context.Context, id string, h hello) (*Run, error) {
	h.Protocol = r.proto
	l, w, err := r.env.join(ctx, Revive, id, h)
	if errors.Is(err, ErrGone) && r.localEnv != nil {
		return r.openExited(id, h.Offset)
	}
	if err != nil {
		return nil, err
	}
	return r.adopt(l, w, h)
}

// LookPath finds a program by name where the runs are; a name with a slash is checked as it is. A program that
// is not there gives an error matching fs.ErrNotExist.
func (r *Root) LookPath(ctx context.Context, name string) (string, error) {
	return r.env.lookPath(ctx, name)
}
