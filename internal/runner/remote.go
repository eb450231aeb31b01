package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Remote is an environment whose runner and files are not on this machine, such as a container. The first process in
// the environment is Hold; see Inside. Safe for concurrent use.
type Remote interface {
	// Dial starts the program Connect in the environment. The returned connection is the standard input and output of
	// Connect. ctx limits only the start. If the environment does not exist, the error matches ErrNoEnvironment, and
	// all runs of the environment have ended. ductor shows the error to users if effort is Make.
	Dial(ctx context.Context, effort Effort) (net.Conn, error)
	Restart(ctx context.Context) error
	// Program returns the identity of the program that should be the runner in the environment, and the path of its
	// file on this machine. An empty identity means that any program is acceptable.
	Program() (id, path string)
}

// Effort limits the steps that a client may take to reach a runner.
type Effort int

// Effort values, in ascending order. Each allows its own step and the steps of all smaller values.
const (
	AsIs   Effort = iota // connect to a running environment
	Revive               // start an existing environment
	Make                 // create a missing environment
)

// ErrNoEnvironment means that an environment and its runs do not exist.
var ErrNoEnvironment = errors.New("the environment does not exist")

// LostEnvironmentError means that a client cannot reach the environment of its run any more, and has given up. The run
// may continue until the runner ends it as an orphan.
type LostEnvironmentError struct {
	Err error // why the environment is unreachable
}

func (e *LostEnvironmentError) Error() string {
	return fmt.Sprintf("the run is unreachable: %v", e.Err)
}
func (e *LostEnvironmentError) Unwrap() error { return e.Err }

const (
	// defaultMaxAway is how long a client tries to reach a remote environment before it gives up its runs.
	defaultMaxAway = 10 * time.Second
	// greetWait is how long a runner in a remote environment may take to answer hello.
	greetWait = 30 * time.Second
	// maxPull is the maximum number of bytes of output that a client requests at once.
	maxPull = 128 << 10
)

// OpenRemote returns a client of the runs in a remote environment. The client connects when it needs to. If it cannot
// reach the environment for maxAway, it gives up its runs. 0 means 10 s. The caller must Close the client.
func OpenRemote(r Remote, maxAway time.Duration) *Client {
	c := newClient()
	c.remote, c.opts.maxAway = r, cmp.Or(maxAway, defaultMaxAway)
	return c
}

// reach returns a connection to the runner. If effort is AsIs and the environment is unreachable, it tries again until
// maxAway has passed.
func (c *Client) reach(ctx context.Context, effort Effort) (*link, error) {
	for began := time.Now(); ; {
		l, err := c.connect(ctx, max(effort, c.minEffort()))
		if err == nil || effort > AsIs || c.shouldGiveUp(err, began) || ctx.Err() != nil || c.life.over() {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-c.life.ctx.Done():
			return nil, errClosed
		case <-time.After(relinkPause):
		}
	}
}

// minEffort returns the effort that is always allowed. A local client may always start a runner. A remote client may
// only start a stopped environment if a request needs it.
func (c *Client) minEffort() Effort {
	if c.remote == nil {
		return Revive
	}
	return AsIs
}

// shouldGiveUp reports whether the client should stop reconnecting. It should stop after a permanent error, if the
// connection broke more than maxAway ago, or if the client is local.
func (c *Client) shouldGiveUp(err error, broke time.Time) bool {
	var version *VersionError
	return c.remote == nil || errors.Is(err, ErrNoEnvironment) || errors.As(err, &version) ||
		time.Since(broke) > c.opts.maxAway
}

func (c *Client) giveUpRuns(err error) {
	for _, r := range c.heldRuns() {
		r.giveUp(err)
	}
}

// giveUp records that the client will not learn how the run ended. It has no effect if the client already knows how the
// run ended. It returns the error for readers of the output.
func (r *Run) giveUp(err error) error {
	r.end.mu.Lock()
	if r.end.lost == nil {
		r.end.lost = &LostEnvironmentError{Err: err}
	}
	lost, stderr := r.end.lost, r.end.stderr
	r.end.mu.Unlock()
	r.end.finish(Status{Ended: true, OutputEnd: r.Offset()}, stderr)
	return lost
}

// pulled is a source that requests the output from a runner in a remote environment. Only one goroutine may read from
// it.
type pulled struct {
	run      *Run
	buffered []byte        // received, but not yet read
	next     *pendingReply // request for the next output, sent in advance
}

func (p *pulled) noteActivity()       {}
func (p *pulled) reportsOffset() bool { return false }
func (p *pulled) close()              {}

func (p *pulled) read(buf []byte, at int64) (int, error) {
	for len(p.buffered) == 0 {
		if err := p.pull(at); err != nil {
			return 0, err
		}
	}
	n := copy(buf, p.buffered)
	p.buffered = p.buffered[n:]
	return n, nil
}

// pull waits for the requested output and stores it. It stores nothing and returns nil if the connection broke.
func (p *pulled) pull(at int64) error {
	r := p.run
	if p.next == nil {
		l, err := r.c.reach(r.ctx, AsIs)
		switch {
		case r.ctx.Err() != nil:
			return ErrDetached
		case err != nil:
			return r.giveUp(err)
		}
		p.post(l, at)
	}
	l := p.next.l
	answer, err := p.next.reply(r.ctx)
	p.next = nil
	switch {
	case r.ctx.Err() != nil:
		return ErrDetached
	case errors.Is(err, ErrGone):
		return nil // the next call uses a new connection
	case errors.Is(err, syscall.ENOENT): // the run was collected
		r.end.finish(Status{Ended: true, OutputEnd: at}, "")
		return io.EOF
	case err != nil:
		return fmt.Errorf("read the output of run %s: %w", r.ID(), err)
	case answer.Lost != nil:
		return answer.Lost
	case answer.Status != nil:
		r.end.finish(*answer.Status, answer.Stderr)
		return io.EOF
	}
	p.buffered = answer.body
	p.post(l, at+int64(len(p.buffered)))
	return nil
}

func (p *pulled) post(l *link, at int64) {
	next := l.post(request{Op: opPull, Run: p.run.ID(), Offset: at, Length: maxPull}, nil)
	p.next = &next
}

// askToEnd sends a request that ends agents. If the environment has reached its limit of processes, the runner may be
// unreachable. Then askToEnd restarts the environment, which also ends the agents, and sends the request again.
func (c *Client) askToEnd(ctx context.Context, q request) (reply, error) {
	r, err := c.ask(ctx, q, Revive)
	if errors.Is(err, ErrNoRoom) && ctx.Err() == nil {
		if err := c.remote.Restart(ctx); err != nil {
			return r, err
		}
		r, err = c.ask(ctx, q, Revive)
	}
	if errors.Is(err, ErrNoEnvironment) {
		return r, nil
	}
	return r, err
}

// ErrNoRoom means that the environment exists, but that the process of Connect ended immediately after its start. The
// usual reason is that the environment has reached its limit of processes.
var ErrNoRoom = errors.New("no process can be started there to reach the runner")

// greetRemote sends hello to a runner in a remote environment. If the runner is not the program that Remote.Program
// returns, greetRemote upgrades the runner.
func (c *Client) greetRemote(ctx context.Context, conn net.Conn) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, greetWait)
	defer cancel()
	id, path := c.remote.Program()
	for upgraded := false; ; {
		l := c.newLink(conn)
		r, err := l.ask(ctx, request{Op: opHello, Version: Version, Program: id}, nil)
		replaced := upgraded && errors.Is(err, ErrGone) // the runner broke the connection to upgrade
		if err == nil && id != "" && r.Program != id && !upgraded {
			upgraded = true
			replaced = l.sendProgram(ctx, id, path)
		}
		if replaced && ctx.Err() == nil {
			if conn, err = c.remote.Dial(ctx, AsIs); err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, ErrGone) {
			err = fmt.Errorf("%w: %w", ErrNoRoom, l.cause)
		}
		return l.accept(r, err)
	}
}

// sendProgram sends a new program to the runner. It reports whether the runner upgraded. If the runner is busy, it does
// not upgrade, and the next connection tries again.
func (l *link) sendProgram(ctx context.Context, id, path string) bool {
	program, err := os.ReadFile(path)
	if err != nil {
		return false // no upgrade: continue with the current program of the runner
	}
	_, err = l.ask(ctx, request{Op: opUpgrade, Args: []string{run, "program=" + id}}, program)
	return errors.Is(err, ErrGone)
}

// LookPath finds a program by name in the PATH of the environment, and returns its path. A name with a slash already is
// a path. The error matches fs.ErrNotExist if the program does not exist.
func (c *Client) LookPath(ctx context.Context, name string) (string, error) {
	if c.remote == nil {
		return LookPath(name)
	}
	r, err := c.ask(ctx, request{Op: opLookPath, Path: name}, Make)
	return r.Path, err
}
