package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of a Root. The zero value is good.
type Options struct {
	// Command starts a supervisor: a program that calls Main, and its arguments. Default: this very
	// program, also when its file was replaced meanwhile, with the argument "supervise". root=DIR is added.
	Command []string
	// Spares is how many idle supervisors are kept ready, so that a start need not wait for a process of
	// ours as well. At most 8.
	Spares int
	// Protocol is what this client speaks; the zero value is what the build speaks. For drills of upgrades.
	Protocol Protocol
}

const maxSpares = 8

var errClosed = errors.New("the runs were closed")

// Root is a directory of runs and the way to start them. Use Open. Safe for concurrent use.
type Root struct {
	dir   string
	opts  Options
	net   transport
	brood brood

	mu     sync.Mutex
	runs   map[*Run]bool
	closed bool
}

// Open makes dir if it is not there, for nobody else to look into. What a client started that is dead by then
// is a run by then, or never will be; supervisors in between are waited for, at most a second. Close what it
// returns.
func Open(dir string, opts Options) (*Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	if len(opts.Command) == 0 {
		opts.Command = []string{"/proc/self/exe", "supervise"}
	}
	if opts.Protocol == (Protocol{}) {
		opts.Protocol = ours()
	}
	r := &Root{dir: dir, opts: opts, net: unixTransport{}, runs: map[*Run]bool{}}
	if err := errors.Join(settleStrays(context.Background(), dir), sweepNests(dir)); err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	r.brood.open(append(slices.Clone(opts.Command), "root="+dir), min(opts.Spares, maxSpares))
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
	r.brood.close()
	return nil
}

// Start starts an agent under a supervisor of its own and attaches to it. ctx bounds the start only. A program
// that is not there gives an error matching fs.ErrNotExist, a missing directory one that does not; an ID
// that was used before and not collected gives one matching fs.ErrExist.
func (r *Root) Start(ctx context.Context, spec Spec) (*Run, error) {
	if r.isClosed() {
		return nil, fmt.Errorf("start: %w", errClosed)
	}
	spec, err := prepare(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	h := hello{Protocol: r.opts.Protocol, Role: roleStart, Spec: &spec, Window: window}
	child, spare, err := r.brood.take()
	if err != nil {
		return nil, fmt.Errorf("start a supervisor: %w", err)
	}
	l, w, err := r.hand(ctx, child, h)
	if errors.Is(err, ErrGone) && spare && !r.there(spec.ID) { // it died before it read the spec
		if child, err = r.brood.spawn(); err == nil {
			l, w, err = r.hand(ctx, child, h)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return r.adopt(l, w, 0)
}

// prepare checks what can be checked here, for better words than the system has.
func prepare(ctx context.Context, spec Spec) (Spec, error) {
	if ctx.Err() != nil {
		return spec, context.Cause(ctx)
	}
	if spec.ID == "" {
		spec.ID = rand.Text()
	}
	if spec.Dir != "" {
		if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
			return spec, fmt.Errorf("%s is not a directory that can be used", spec.Dir)
		}
	}
	path, err := exec.LookPath(spec.Path)
	if errors.Is(err, exec.ErrNotFound) {
		return spec, fmt.Errorf("find %s in PATH: %w", spec.Path, fs.ErrNotExist)
	}
	if err != nil {
		return spec, fmt.Errorf("find %s: %w", spec.Path, err)
	}
	if spec.Path, err = filepath.Abs(path); err != nil {
		return spec, err
	}
	return spec, spec.check()
}

// hand gives a supervisor its spec. One that does not answer is ended, and its agent with it.
func (r *Root) hand(ctx context.Context, child *newborn, h hello) (*link, welcome, error) {
	l := newLink(child.conn)
	w, err := l.greet(ctx, h)
	if err != nil {
		r.brood.dismiss(child)
	}
	return l, w, err
}

func (r *Root) there(id string) bool {
	_, err := os.Lstat(r.path(id))
	return err == nil
}

func (r *Root) path(id string) string { return filepath.Join(r.dir, id) }

// adopt makes a Run of a connection.
func (r *Root) adopt(l *link, w welcome, offset int64) (*Run, error) {
	run := newRun(r, l, w.Info, offset)
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.runs[run] = true
	}
	r.mu.Unlock()
	run.begin()
	if closed {
		run.Detach()
		return nil, errClosed // what was started is listed as nobody's
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
	r.brood.bury()
}

// Attach makes this client the owner of a run, from the offset up to which it has processed the output. An
// owner that was there before is told. A spool that ends before offset gives *OffsetError, a supervisor of
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
	rec, err := r.record(id)
	if errors.Is(err, fs.ErrNotExist) && checkID(id) == nil && r.there(id) { // its supervisor was killed at once
		return r.exhume(record{ID: id}, h.Offset)
	}
	if err != nil {
		return nil, err
	}
	l, w, err := r.connect(ctx, rec, h)
	if err == nil {
		return r.adopt(l, w, h.Offset)
	}
	if errors.Is(err, ErrGone) {
		return r.exhume(rec, h.Offset)
	}
	return nil, err
}

// record reads spec.json.
func (r *Root) record(id string) (record, error) {
	var rec record
	if err := checkID(id); err != nil {
		return rec, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	if err := r.readNewSpec(id, &rec); err != nil {
		return rec, err
	}
	if rec.ID != id {
		return rec, fmt.Errorf("%s is of run %q", filepath.Join(r.path(id), specFile), rec.ID)
	}
	return rec, nil
}

// readNewSpec waits for the spec of a run that begins just now: the supervisor writes it a moment after it
// made the directory.
func (r *Root) readNewSpec(id string, rec *record) error {
	for {
		err := readJSON(r.path(id), specFile, rec)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		info, statErr := os.Stat(r.path(id))
		if statErr != nil || time.Since(info.ModTime()).Abs() > specWait {
			return err
		}
		time.Sleep(firstPoll)
	}
}

const (
	redial     = 10 * time.Millisecond
	redialMost = 3 * time.Second
	specWait   = time.Second
)

// connect greets the supervisor of a run. It gives ErrGone when there is none.
func (r *Root) connect(ctx context.Context, rec record, h hello) (*link, welcome, error) {
	h.Protocol = r.opts.Protocol
	for until := time.Now().Add(redialMost); ; {
		if !rec.supervised() {
			return nil, welcome{}, ErrGone
		}
		conn, err := r.net.dial(ctx, r.path(rec.ID))
		if err == nil {
			l := newLink(conn)
			w, err := l.greet(ctx, h)
			if !errors.Is(err, ErrGone) {
				return l, w, err
			}
		} else if time.Now().After(until) {
			return nil, welcome{}, fmt.Errorf("connect: %w", err)
		}
		if time.Now().After(until) {
			return nil, welcome{}, errors.New("the supervisor runs and does not answer")
		}
		_ = rec.Supervisor.Signal(relistenSignal) // somebody removed its socket, perhaps
		select {
		case <-ctx.Done():
			return nil, welcome{}, context.Cause(ctx)
		case <-time.After(redial):
		}
	}
}

// ids lists the runs there are.
func (r *Root) ids() ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && checkID(e.Name()) == nil && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}
