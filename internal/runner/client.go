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

	"ductor/internal/runner/inotify"
)

// Options configures a Client. The zero value is valid.
type Options struct {
	// Command is the command line that starts a runner: a program that calls Main, and the program's first arguments.
	// The client appends root=DIR. The default is this process's own program with the argument "runner". The default
	// works even if the program's file was replaced in the meantime.
	Command []string
	// Program is the path of this build's program file. The client derives the identity of this build from the file. A
	// runner with another identity comes from another build. The default is the program in Command.
	Program string
	// Upgrade makes the client upgrade a runner of another build to this build. Runs continue during the upgrade.
	Upgrade bool

	file    *os.File      // the open file of the small runner program, which Small sets; nil otherwise
	maxAway time.Duration // see OpenRemote
}

const (
	connectWait  = 10 * time.Second
	connectRetry = time.Millisecond
	relinkPause  = 100 * time.Millisecond
	slowestRetry = time.Second // the pause between attempts to reach a runner doubles up to this maximum
)

var (
	// ErrGone means that the connection to the runner broke. The runner may or may not have handled the request.
	ErrGone     = errors.New("the connection to the runner is lost")
	errClosed   = errors.New("the client is closed")
	errNoRunner = errors.New("no runner is running")
)

// VersionError means that the runner speaks another version of the protocol.
type VersionError struct{ Client, Runner int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the runner speaks protocol version %d, ductor speaks %d", e.Runner, e.Client)
}

// Client starts and finds the runs in a directory. It starts a runner if necessary. Safe for concurrent use.
type Client struct {
	dir   string // directory of the runs; empty for a remote runner
	opts  Options
	files writeWatch
	pids  []int // runners that this client started and has not reaped; guarded by mu

	remote Remote // the remote environment; nil for a runner on this machine
	tools  toolRelays

	starts *scope // goroutines that start runs; Close cancels them first. Lock mu to add one
	life   *scope // all other goroutines of the client; Close cancels them after those in starts have ended

	linking sync.Mutex // held while connecting
	mu      sync.Mutex
	link    *link
	held    ownRuns // guarded by mu
}

// scope is a group of goroutines with a common context.
type scope struct {
	sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

func newScope() *scope {
	s := &scope{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *scope) over() bool { return s.ctx.Err() != nil }

// ownRuns are the runs that a client owns or follows.
type ownRuns struct {
	runs map[*Run]bool
	// ends contains reports that arrived too early: a run has ended, but the client has not created the Run yet. The
	// key is the run's ID.
	ends map[string]reply
}

// Open returns a client of the runs in dir. It creates dir if necessary, accessible only to this user. It does not
// start a runner. The caller must Close the client.
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
	if c.files.watcher, err = inotify.New(); err == nil { // fails if the user has too many inotify instances
		c.life.Go(c.files.watcher.Serve)
	}
	return c, nil
}

func newClient() *Client {
	return &Client{
		starts: newScope(), life: newScope(), held: ownRuns{runs: map[*Run]bool{}, ends: map[string]reply{}},
	}
}

// Close detaches from every run. The runs and the runner continue. If a Start is in progress, Close cancels it, and
// waits up to 10 seconds until the runner has ended the starting agent. Close then waits up to leaveWait until the
// runner has handled all requests of this client. After Close returns, the runner creates no files, unless another
// client is connected. A second Close has no effect.
func (c *Client) Close() error {
	c.mu.Lock()
	c.starts.cancel()
	c.mu.Unlock()
	c.starts.Wait()
	c.life.cancel()
	for _, r := range c.heldRuns() {
		r.Detach()
	}
	if l := c.currentLink(); l != nil {
		l.leave()
	}
	c.files.close()
	c.life.Wait()
	c.reap()
	return nil
}

func (c *Client) heldRuns() []*Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.held.runs))
}

// Prepare starts a runner if none is running. For a Remote, it creates the environment if necessary.
func (c *Client) Prepare(ctx context.Context) error {
	_, err := c.connect(ctx, Make)
	return err
}

func (c *Client) reattach(ctx context.Context, l *link) error {
	for _, r := range c.heldRuns() {
		if r.end.hasEnded() {
			continue
		}
		answer, err := l.ask(ctx, request{Op: opAttach, Run: r.ID(), Offset: r.Offset()}, nil)
		switch {
		case errors.Is(err, syscall.ENOENT): // the run was collected, or a user deleted it
			r.end.finish(Status{Ended: true, OutputEnd: math.MaxInt64}, "")
		case err != nil:
			return err
		case answer.Info.Status != nil:
			r.end.finish(*answer.Info.Status, answer.Stderr)
		}
	}
	return nil
}

func (c *Client) handleEnd(r reply) {
	c.mu.Lock()
	if _, expected := c.held.ends[r.Run]; expected {
		c.held.ends[r.Run] = r
	}
	c.mu.Unlock()
	for _, run := range c.heldRuns() {
		if run.ID() == r.Run {
			run.end.finish(*r.Status, r.Stderr)
		}
	}
}

// expectEnd prepares the client for a report that a run has ended. The report may arrive before the client has created
// the Run. The client then stores the report. The caller must call done after it has created the Run.
func (c *Client) expectEnd(id string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.ends[id] = reply{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held.ends, id)
	}
}

// Attach makes this client the owner of a run. Output before offset is skipped. The error matches fs.ErrNotExist if the
// run does not exist.
func (c *Client) Attach(ctx context.Context, id string, offset int64) (*Run, error) {
	return c.join(ctx, request{Op: opAttach, Run: id, Offset: offset})
}

// Follow reads a run's output from offset without owning the run. It has no influence on when the runner pauses or ends
// the agent.
func (c *Client) Follow(ctx context.Context, id string, offset int64) (*Run, error) {
	return c.join(ctx, request{Op: opLookUp, Run: id, Offset: offset})
}

func (c *Client) join(ctx context.Context, q request) (*Run, error) {
	if err := c.checkExists(q.Run); err != nil {
		return nil, fmt.Errorf("%s run %s: %w", q.Op, q.Run, err)
	}
	defer c.expectEnd(q.Run)()
	run, err := c.joinOnce(ctx, q)
	for errors.Is(err, ErrGone) && ctx.Err() == nil && !c.life.over() {
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
	return c.newHeldRun(l, r, q.Offset)
}

// checkExists returns an error if the run has no directory. This check avoids starting a runner for a run that does not
// exist.
func (c *Client) checkExists(id string) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	if c.remote != nil {
		return nil // this process cannot see the directories of a remote environment
	}
	_, err := os.Lstat(c.pathOf(id))
	return err
}

func (c *Client) pathOf(id string, name ...string) string {
	return filepath.Join(append([]string{c.dir, id}, name...)...)
}

// newHeldRun creates a Run from the runner's reply and registers it with the client, which is now the owner of the run.
// If the connection has broken since the reply, the runner no longer regards this client as the owner. newHeldRun then
// returns ErrGone.
func (c *Client) newHeldRun(l *link, answer reply, offset int64) (*Run, error) {
	r, err := newRun(c, *answer.Info, offset)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.held.runs[r] = true
	early := c.held.ends[r.ID()]
	closed := c.starts.over()
	c.mu.Unlock()
	if r.info.Status != nil {
		r.end.finish(*r.info.Status, answer.Stderr)
	}
	if early.Status != nil {
		r.end.finish(*early.Status, early.Stderr)
	}
	if closed {
		r.Detach()
		return nil, errClosed
	}
	select {
	case <-l.lost:
		r.Detach()
		return nil, ErrGone
	default: // if the connection l breaks later, reattach connects the run again
		return r, nil
	}
}

// List returns all runs, including ended runs until Collect deletes them.
func (c *Client) List(ctx context.Context) ([]Info, error) {
	var r reply
	none, err := c.isEmpty()
	if err == nil && !none {
		r, err = c.ask(ctx, request{Op: opList}, Revive)
	}
	if err != nil && !errors.Is(err, ErrNoEnvironment) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return r.List, nil
}

// isEmpty reports whether the directory contains no run. It does not contact the runner, and is always false for a
// Remote.
func (c *Client) isEmpty() (bool, error) {
	if c.remote != nil {
		return false, nil
	}
	entries, err := os.ReadDir(c.dir)
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.IsDir() && checkID(e.Name()) == nil }), err
}

// Kill ends a run's agent and all its descendants. It sends SIGTERM, waits for the grace period from the run's Limits,
// and sends SIGKILL. The output stays available until Collect. Kill returns nil if the run does not exist.
func (c *Client) Kill(ctx context.Context, id string) error { return c.end(ctx, id, opStop) }

// Collect ends the remaining processes of a run, and deletes the run and its output. The client need not be attached.
func (c *Client) Collect(ctx context.Context, id string) error { return c.end(ctx, id, opCollect) }

// ownGrace is the value of request.Grace that selects the grace period from the run's Limits. Kill and Collect send it.
const ownGrace = -1

func (c *Client) end(ctx context.Context, id string, op op) error {
	if c.checkExists(id) != nil {
		return nil
	}
	_, err := c.askToEnd(ctx, request{Op: op, Run: id, Grace: ownGrace})
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("%s run %s: %w", op, id, err)
	}
	return nil
}

const (
	// versionVerb is the argument that makes Inside print the protocol version.
	versionVerb = "version"
	versionWait = 5 * time.Second
)

// Small returns options for the small runner program at path, which replaces ductor as the runner on this machine. The
// small program needs a quarter of ductor's memory. Small opens the program's file, so that a later replacement of the
// file has no effect. Small returns an error if the file is missing or has another protocol version.
func Small(ctx context.Context, path string) (Options, error) {
	f, err := os.Open(path)
	if err != nil {
		return Options{}, err
	}
	program := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	if err := CheckVersion(ctx, program); err != nil {
		return Options{}, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return Options{Command: []string{program, run}, file: f}, nil
}

// CheckVersion runs a program whose main function calls Inside, and returns an error unless the program supports the
// protocol version Version. If the program supports another version, the error is a *VersionError.
func CheckVersion(ctx context.Context, program string) error {
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

// SmallProgram returns the path that was passed to Small, or "" if o did not come from Small.
func (o Options) SmallProgram() string {
	if o.file == nil {
		return ""
	}
	return o.file.Name()
}

// commandLine puts a readable program name before args, for tools such as ps.
func commandLine(args []string) []string {
	name := "ductor"
	if len(args) > 0 && args[0] == run {
		name = "ductor-runner"
	}
	return append([]string{name}, args...)
}
