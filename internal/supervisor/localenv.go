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
	"time"
)

const (
	redial     = 10 * time.Millisecond
	redialMost = 3 * time.Second
	specWait   = time.Second
	firstPoll  = 500 * time.Microsecond
)

// localEnv is a directory of runs on this machine. Safe for concurrent use.
type localEnv struct {
	dir  string
	opts Options
	net  transport
	pool pool
}

// selfCommand starts a supervisor: this program again.
func selfCommand() []string { return []string{"/proc/self/exe", "supervise"} }

// openLocalEnv makes the directory if it is not there, and waits for what dead clients had begun to start.
func openLocalEnv(dir string, opts Options) (*localEnv, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	if len(opts.Command) == 0 {
		opts.Command = selfCommand()
	}
	g := &localEnv{dir: dir, opts: opts, net: unixTransport{}}
	if err := errors.Join(awaitOrphans(context.Background(), dir), sweepStaging(dir)); err != nil {
		return nil, err
	}
	sweepCgroups(context.Background(), dir)
	g.pool.open(append(slices.Clone(opts.Command), "root="+dir), min(opts.Spares, maxSpares))
	return g, nil
}

func (g *localEnv) close() { g.pool.close() }
func (g *localEnv) tidy()  { g.pool.reap() }

// start gives a supervisor the spec in h. The disk is looked at only by a supervisor.
func (g *localEnv) start(ctx context.Context, h hello) (*link, welcome, error) {
	spec, err := prepare(ctx, *h.Spec)
	if err != nil {
		return nil, welcome{}, err
	}
	h.Spec = &spec
	child, spare, err := g.pool.take()
	if err != nil {
		return nil, welcome{}, fmt.Errorf("start a supervisor: %w", err)
	}
	l, w, err := g.hand(ctx, child, h)
	if errors.Is(err, ErrGone) && spare && !g.there(spec.ID) { // it died before it read the spec
		if child, err = g.pool.spawn(); err == nil {
			l, w, err = g.hand(ctx, child, h)
		}
	}
	return l, w, err
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
	path, err := lookPath(spec.Path)
	if err != nil {
		return spec, err
	}
	spec.Path = path
	return spec, spec.check()
}

// lookPath is exec.LookPath with a whole path as its answer. What is not there gives an error matching
// fs.ErrNotExist.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("find %s in PATH: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return filepath.Abs(path)
}

func (g *localEnv) lookPath(_ context.Context, name string) (string, error) { return lookPath(name) }

// hand gives a supervisor its spec. One that does not answer is ended, and its agent with it.
func (g *localEnv) hand(ctx context.Context, child *starting, h hello) (*link, welcome, error) {
	l := newLink(child.conn)
	w, err := l.greet(ctx, kindHello, h)
	if err != nil {
		g.pool.dismiss(child)
	}
	return l, w, err
}

func (g *localEnv) there(id string) bool {
	_, err := os.Lstat(g.path(id))
	return err == nil
}

func (g *localEnv) path(id string) string { return filepath.Join(g.dir, id) }

// record reads spec.json.
func (g *localEnv) record(id string) (record, error) {
	var rec record
	if err := checkID(id); err != nil {
		return rec, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	if err := g.readNewSpec(id, &rec); err != nil {
		return rec, err
	}
	if rec.ID != id {
		return rec, fmt.Errorf("%s is of run %q", filepath.Join(g.path(id), specFile), rec.ID)
	}
	return rec, nil
}

// readNewSpec waits for the spec of a run that begins just now: the supervisor writes it a moment after it
// made the directory.
func (g *localEnv) readNewSpec(id string, rec *record) error {
	for {
		err := readJSON(g.path(id), specFile, rec)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		info, statErr := os.Stat(g.path(id))
		if statErr != nil || time.Since(info.ModTime()).Abs() > specWait {
			return err
		}
		time.Sleep(firstPoll)
	}
}

// join greets the supervisor of a run. It gives ErrGone when there is none and the disk has what is left.
func (g *localEnv) join(ctx context.Context, _ Effort, id string, h hello) (*link, welcome, error) {
	rec, err := g.record(id)
	if errors.Is(err, fs.ErrNotExist) && checkID(id) == nil && g.there(id) { // its supervisor was killed at once
		return nil, welcome{}, ErrGone
	}
	if err != nil {
		return nil, welcome{}, err
	}
	return g.connect(ctx, rec, h)
}

// connect greets the supervisor of a run. It gives ErrGone when there is none.
func (g *localEnv) connect(ctx context.Context, rec record, h hello) (*link, welcome, error) {
	if h.Protocol == (Protocol{}) {
		h.Protocol = g.opts.Protocol
	}
	for until := time.Now().Add(redialMost); ; {
		if !rec.supervised() {
			return nil, welcome{}, ErrGone
		}
		conn, err := g.net.dial(ctx, g.path(rec.ID))
		if err == nil {
			l := newLink(conn)
			w, err := l.greet(ctx, kindHello, h)
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
func (g *localEnv) ids() ([]string, error) {
	entries, err := os.ReadDir(g.dir)
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
