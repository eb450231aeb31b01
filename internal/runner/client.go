package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Options of a Client. The zero value is good.
type Options struct {
	// Command starts a runner: a program that calls Main, and its arguments. Default: this very program, also when its
	// file was replaced after the start, with the argument "runner". root=DIR is added.
	Command []string
	// Program is the file by which a runner of an earlier build is told from one of this build. Default: the command's
	// program.
	Program string
	// Upgrade has a runner of another build replaced by one of this build, in place, at the first connection.
	Upgrade bool

	file *os.File // of the command's program; see Small
}

const (
	connectWait = 10 * time.Second
	connectLook = time.Millisecond
	relinkPause = 100 * time.Millisecond
)

var (
	// ErrGone says that the connection to the runner broke, and it is unknown whether it did what it was asked.
	ErrGone     = errors.New("the connection to the runner is lost")
	errClosed   = errors.New("the runs were closed")
	errNoRunner = errors.New("no runner runs")
)

// VersionError says that the runner speaks another version of the protocol.
type VersionError struct{ Client, Runner int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the runner speaks protocol version %d, ductor speaks %d", e.Runner, e.Client)
}

// Client starts and finds the runs of a directory, by the runner that it starts at need. Safe for concurrent use.
type Client struct {
	local         // on this machine
	remote Remote // elsewhere; nil on this machine
	tools  toolRelays
	lifetime

	linking sync.Mutex // held while a connection is made
	mu      sync.Mutex
	link    *link
	runs    map[*Run]bool
	early   map[string]reply // of runs that are about to be held: how they ended
}

// local is what a client of this machine has.
type local struct {
	dir   string
	opts  Options
	files announcer
	pids  []int // runners of ours that are not reaped; under mu of the client
}

// lifetime is how far the end of a client has come.
type lifetime struct {
	open   context.Context // over when Close begins
	shut   context.CancelFunc
	starts sync.WaitGroup  // of starts, and of what gives them up; entered with the client's mu held
	life   context.Context // over when no start is under way after that
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// Open makes dir if it is not there, readable by its user only. It starts nothing. The caller must Close the client.
func Open(dir string, opts Options) (*Client, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	if len(opts.Command) == 0 {
		opts.Command = []string{"/proc/self/exe", "runner"}
	}
	if opts.Program == "" {
		opts.Program = opts.Command[0]
	}
	c := newClient()
	c.dir, c.opts = dir, opts
	if c.files.watcher, err = newWatcher(); err == nil { // else this user has no more instances
		c.wg.Go(c.files.watcher.serve)
	}
	return c, nil
}

func newClient() *Client {
	c := &Client{runs: map[*Run]bool{}, early: map[string]reply{}}
	c.open, c.shut = context.WithCancel(context.Background())
	c.life, c.stop = context.WithCancel(context.Background())
	return c
}

// Close detaches from every run. The runs and the runner go on. A start that is under way is given up: Close waits
// until the runner has ended its agent, 10 seconds at most. It also waits, for leaveWait at most, until the runner has
// done what it was asked: then a runner without another client makes no files any more. Idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	c.shut()
	c.mu.Unlock()
	c.starts.Wait()
	c.stop()
	for _, r := range c.held() {
		r.Detach()
	}
	if l := c.alive(); l != nil {
		l.leave()
	}
	if c.files.watcher != nil {
		c.files.watcher.close()
	}
	c.wg.Wait()
	c.reap()
	return nil
}

func (c *Client) held() []*Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.runs))
}

// Prepare starts the runner if none runs, and makes its environment if need be.
func (c *Client) Prepare(ctx context.Context) error {
	_, err := c.connect(ctx, Make)
	return err
}

// takeBack attaches to the held runs anew, over a new connection.
func (c *Client) takeBack(ctx context.Context, l *link) error {
	for _, r := range c.held() {
		if r.at() == runEnded {
			continue
		}
		answer, err := l.ask(ctx, request{Op: opAttach, Run: r.ID(), Offset: r.Offset()}, nil)
		switch {
		case errors.Is(err, syscall.ENOENT): // collected, or removed by hand
			r.finish(Status{Ended: true, OutputEnd: math.MaxInt64}, "")
		case err != nil:
			return err
		case answer.Info.Status != nil:
			r.finish(*answer.Info.Status, answer.Stderr)
		}
	}
	return nil
}

// ended takes what the runner tells of a run's end.
func (c *Client) ended(r reply) {
	c.mu.Lock()
	if _, expected := c.early[r.Run]; expected {
		c.early[r.Run] = r
	}
	c.mu.Unlock()
	for _, run := range c.held() {
		if run.ID() == r.Run {
			run.finish(*r.Status, r.Stderr)
		}
	}
}

// expect keeps what the runner says of a run's end before the run is held. Call the function it returns afterwards.
func (c *Client) expect(id string) (held func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early[id] = reply{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.early, id)
	}
}

// Attach makes this client the owner of a run, from the offset up to which it has processed the output. A run that is
// not there gives an error matching fs.ErrNotExist.
func (c *Client) Attach(ctx context.Context, id string, offset int64) (*Run, error) {
	return c.join(ctx, request{Op: opAttach, Run: id, Offset: offset})
}

// Follow reads along without owning: the run does not wait for this client and does not live for it.
func (c *Client) Follow(ctx context.Context, id string, offset int64) (*Run, error) {
	return c.join(ctx, request{Op: opLookUp, Run: id, Offset: offset})
}

func (c *Client) join(ctx context.Context, q request) (*Run, error) {
	if err := c.there(q.Run); err != nil {
		return nil, fmt.Errorf("%s run %s: %w", q.Op, q.Run, err)
	}
	defer c.expect(q.Run)()
	run, err := c.joinOnce(ctx, q)
	for errors.Is(err, ErrGone) && ctx.Err() == nil && c.life.Err() == nil {
		run, err = c.joinOnce(ctx, q)
	}
	if err != nil {
		return nil, fmt.Errorf("%s run %s: %w", q.Op, q.Run, err)
	}
	return run, nil
}

func (c *Client) joinOnce(ctx context.Context, q request) (*Run, error) {
	l, err := c.connect(ctx, Revive)
	if err != nil {
		return nil, err
	}
	r, err := l.ask(ctx, q, nil)
	if err != nil {
		return nil, err
	}
	return c.hold(l, r, q.Offset)
}

// there says whether a run has a directory; no runner is started for one that has none.
func (c *Client) there(id string) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	if c.remote != nil {
		return nil // who knows?
	}
	_, err := os.Lstat(c.pathOf(id))
	return err
}

// pathOf is a file of a run, on this machine.
func (c *Client) pathOf(id string, name ...string) string {
	return filepath.Join(append([]string{c.dir, id}, name...)...)
}

// hold makes a Run of what a connection told. It gives ErrGone if that is lost by now: then the run has no owner.
func (c *Client) hold(l *link, answer reply, offset int64) (*Run, error) {
	r, err := newRun(c, *answer.Info, offset)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.runs[r] = true
	early := c.early[r.ID()]
	closed := c.open.Err() != nil
	c.mu.Unlock()
	if r.info.Status != nil {
		r.finish(*r.info.Status, answer.Stderr)
	}
	if early.Status != nil {
		r.finish(*early.Status, early.Stderr)
	}
	if closed {
		r.Detach()
		return nil, errClosed
	}
	select {
	case <-l.lost:
		r.Detach()
		return nil, ErrGone
	default: // from now on the runs that are held are taken back
		return r, nil
	}
}

// List tells what runs there are, ended ones that were not collected included.
func (c *Client) List(ctx context.Context) ([]Info, error) {
	none, err := c.isEmpty()
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	if none {
		return nil, nil
	}
	r, err := c.ask(ctx, request{Op: opList}, Revive)
	if err != nil && !errors.Is(err, ErrNoEnvironment) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return r.List, nil
}

// isEmpty says whether it is known without a runner that there is no run.
func (c *Client) isEmpty() (bool, error) {
	if c.remote != nil {
		return false, nil
	}
	entries, err := os.ReadDir(c.dir)
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.IsDir() && checkID(e.Name()) == nil }), err
}

// Kill ends a run's agent and every descendant: TERM, the run's own grace, KILL. What it printed stays to be collected.
// A run that is not there has ended, so that is no error.
func (c *Client) Kill(ctx context.Context, id string) error { return c.end(ctx, id, opStop) }

// Collect ends what is left of a run and removes it from the disk. No client needs to be attached.
func (c *Client) Collect(ctx context.Context, id string) error { return c.end(ctx, id, opCollect) }

// ownGrace has a run stopped with the grace of its limits.
const ownGrace = -1

func (c *Client) end(ctx context.Context, id string, op op) error {
	if c.there(id) != nil {
		return nil
	}
	_, err := c.askToEnd(ctx, request{Op: op, Run: id, Grace: ownGrace})
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("%s run %s: %w", op, id, err)
	}
	return nil
}

const (
	// versionVerb has a program of Inside print its version of the protocol.
	versionVerb = "version"
	versionWait = 5 * time.Second
)

// Small gives the options that start runners of this machine by the small program in a file, which takes a quarter of
// the memory that ductor's own does. They name it by a descriptor that stays open, so that they start that very program
// also when the file was replaced. A file that is not there or speaks another version gives an error.
func Small(ctx context.Context, path string) (Options, error) {
	f, err := os.Open(path)
	if err != nil {
		return Options{}, err
	}
	program := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	if err := Speaks(ctx, program); err != nil {
		return Options{}, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return Options{Command: []string{program, run}, file: f}, nil
}

// Speaks says why a program of Inside does not speak Version: with a *VersionError if it speaks another, nil if it
// does.
func Speaks(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, versionVerb)
	cmd.Dir, cmd.Env = "/", runnerEnv()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("ask its version: %w", err)
	}
	version, err := strconv.Atoi(string(bytes.TrimSpace(out)))
	if err == nil && version != Version {
		err = &VersionError{Client: Version, Runner: version}
	}
	return err
}

// SmallProgram is the path of the file that Small was given; empty for other options.
func (o Options) SmallProgram() string {
	if o.file == nil {
		return ""
	}
	return o.file.Name()
}

// titled puts the name of a runner's program before its arguments, for users who list processes.
func titled(args []string) []string {
	name := "ductor"
	if len(args) > 0 && args[0] == run {
		name = "ductor-runner"
	}
	return append([]string{name}, args...)
}
