package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type link struct {
	frames
	mu      sync.Mutex
	seq     uint64
	pending map[uint64]chan reply
	lost    chan struct{} // closed when the connection has broken
	cause   error         // why the connection broke; valid after lost is closed
}

// connect returns the client's connection to the runner, and connects if necessary. effort limits what connect may
// start in order to reach the runner. If effort is AsIs and no runner runs on this machine, connect returns
// errNoRunner.
func (c *Client) connect(ctx context.Context, effort Effort) (*link, error) {
	if l := c.currentLink(); l != nil {
		return l, nil
	}
	var conn net.Conn
	var err error
	// Dial may take minutes to create an environment, so call Dial before locking c.linking.
	if c.remote != nil {
		if conn, err = c.remote.Dial(ctx, effort); err != nil {
			return nil, fmt.Errorf("connect to the runner: %w", err)
		}
	}
	c.linking.Lock()
	defer c.linking.Unlock()
	l := c.currentLink()
	if l != nil || c.life.over() {
		if conn != nil {
			_ = conn.Close() // another goroutine has connected, or the client was closed
		}
		if l == nil {
			return nil, errClosed
		}
		return l, nil
	}
	if c.remote != nil {
		l, err = c.greetRemote(ctx, conn)
	} else {
		l, err = c.greet(ctx, effort)
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.reattach(ctx, l), c.offerTools(ctx, l)); err != nil {
		_ = l.conn.Close() // the next call of connect then tries again
		return nil, err
	}
	c.mu.Lock()
	c.link = l
	c.mu.Unlock()
	return l, nil
}

// currentLink returns the connection, or nil if the client has no connection or the connection has broken.
func (c *Client) currentLink() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return nil
	}
	select {
	case <-c.link.lost:
		return nil
	default:
		return c.link
	}
}

func (c *Client) newLink(conn net.Conn) *link {
	l := &link{frames: frames{conn: conn}, pending: map[uint64]chan reply{}, lost: make(chan struct{})}
	c.life.Go(func() { c.receive(l) })
	return l
}

// greet connects to a runner on this machine and sends hello. If Options.Upgrade is set, it first upgrades a runner of
// another build.
func (c *Client) greet(ctx context.Context, effort Effort) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	program, err := programID(c.opts.Program)
	if err != nil {
		return nil, err
	}
	upgrade := c.opts.Upgrade
	for pause := connectRetry; ; pause = min(2*pause, slowestRetry) {
		conn, err := c.dial(ctx, effort)
		if err == nil {
			var l *link
			if l, err = c.hello(ctx, conn, program, upgrade); err == nil {
				return l, nil
			}
			upgrade = false
		}
		if !errors.Is(err, ErrGone) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the runner: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// hello sends hello over a new connection, and asks a runner of another build to upgrade. The error matches ErrGone if
// the runner was about to exit, or if it upgrades.
func (c *Client) hello(ctx context.Context, conn net.Conn, program string, upgrade bool) (*link, error) {
	l := c.newLink(conn)
	r, err := l.ask(ctx, request{Op: opHello, Version: Version, Program: program}, nil)
	if err == nil && r.Program != program && upgrade {
		_, err = l.ask(ctx, request{Op: opUpgrade, Path: c.path(), Args: c.opts.Command[1:]}, nil)
		if !errors.Is(err, ErrGone) { // ErrGone means that the upgrade has closed the connection
			// The runner is too busy to upgrade, so use the old one. The next start of ductor tries the upgrade again.
			err = nil
		}
	}
	return l.accept(r, err)
}

// accept checks a reply to hello. If hello failed, or the runner has another protocol version, accept closes the
// connection.
func (l *link) accept(r reply, err error) (*link, error) {
	if err == nil && r.Version != Version {
		err = &VersionError{Client: Version, Runner: r.Version}
	}
	if err != nil {
		_ = l.conn.Close()
		return nil, err
	}
	return l, nil
}

// path returns the path of the runner's program, in a form that another process can open.
func (c *Client) path() string {
	if path := c.opts.Command[0]; path != "/proc/self/exe" {
		return path
	}
	return fmt.Sprintf("/proc/%d/exe", os.Getpid())
}

// dial connects to the runner's socket. If no runner is running, dial starts one. But with the effort AsIs, dial
// returns errNoRunner instead. The error matches ErrGone if the started runner has exited.
func (c *Client) dial(ctx context.Context, effort Effort) (net.Conn, error) {
	conn, err := dialSocket(ctx, c.dir)
	if noRunner(err) {
		if effort == AsIs {
			return nil, errNoRunner
		}
		if err := c.spawn(ctx); err != nil {
			return nil, fmt.Errorf("start the runner: %w", err)
		}
		if conn, err = dialSocket(ctx, c.dir); noRunner(err) {
			return nil, fmt.Errorf("%w: %w", ErrGone, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the runner: %w", err)
	}
	return conn, nil
}

func noRunner(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

func dialSocket(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// spawn starts a runner in its own session, with a minimal environment. It returns when the runner has created its
// socket, or when the new process has exited, for example because another runner already serves the directory.
func (c *Client) spawn(ctx context.Context) error {
	c.reap()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	defer null.Close()
	args := append(commandLine(c.opts.Command[1:]), "root="+c.dir)
	pid, err := syscall.ForkExec(c.opts.Command[0], args, &syscall.ProcAttr{
		Dir: "/", Env: runnerEnv(), Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err = errors.Join(err, theirs.Close()); err != nil {
		return fmt.Errorf("start %s: %w", c.opts.Command[0], err)
	}
	c.mu.Lock()
	c.pids = append(c.pids, pid)
	c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })()
	_, _ = ready.Read(make([]byte, 1)) // returns when the runner is ready or has exited
	return nil
}

// reap collects the exits of runners that this client started.
func (c *Client) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids = slices.DeleteFunc(c.pids, func(pid int) bool {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return got == pid || errors.Is(err, unix.ECHILD)
	})
}

// runnerEnv returns the environment of a runner. The environment contains no secrets. It contains settings with which a
// Go program uses less memory.
func runnerEnv() []string {
	env := []string{"GOMAXPROCS=2", "GOTRACEBACK=single"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR", "GORACE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// receive receives messages until the connection breaks. It then reconnects if the client has runs.
func (c *Client) receive(l *link) {
	for {
		var r reply
		body, err := l.receive(&r)
		if err != nil {
			l.cause = err
			break
		}
		r.body = body
		switch {
		case r.Seq == 0 && r.Status != nil:
			c.handleEnd(r)
			continue
		case r.Seq == 0 && r.Relay != "":
			c.tools.forward(c, l, r)
			continue
		}
		l.mu.Lock()
		waiting := l.pending[r.Seq]
		delete(l.pending, r.Seq)
		l.mu.Unlock()
		if waiting != nil {
			waiting <- r
		}
	}
	_ = l.conn.Close()
	close(l.lost)
	c.tools.endAll(l)
	for broke, pause := time.Now(), relinkPause; c.isCurrent(l) && !c.life.over() &&
		slices.ContainsFunc(c.heldRuns(), func(r *Run) bool { return !r.end.hasEnded() }); {
		_, err := c.connect(c.life.ctx, c.minEffort())
		switch {
		case err == nil:
			return
		case c.remote != nil && c.shouldGiveUp(err, broke):
			c.giveUpRuns(err)
			return
		}
		select {
		case <-c.life.ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, slowestRetry)
		}
	}
}

// leaveWait limits how long Close waits until the runner has handled the client's requests.
const leaveWait = 500 * time.Millisecond

// leave closes the connection. It first tells the runner that no more requests follow, and waits until the runner has
// closed its side.
func (l *link) leave() {
	if half, ok := l.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		select {
		case <-l.lost:
		case <-time.After(leaveWait):
		}
	}
	_ = l.conn.Close()
}

// isCurrent reports whether l is the client's connection. If a connect is in progress, isCurrent waits for the end of
// the connect.
func (c *Client) isCurrent(l *link) bool {
	c.linking.Lock()
	defer c.linking.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link == l
}

// awaitClose waits until a runner that is about to exit or upgrade closes the connection. The wait is limited to
// relinkPause, because a runner whose upgrade fails does not close the connection.
func (l *link) awaitClose(ctx context.Context) {
	select {
	case <-l.lost:
	case <-ctx.Done():
	case <-time.After(relinkPause):
	}
}

// pendingReply is a request that was sent, but whose reply was not read yet. Only one goroutine may wait for the reply.
type pendingReply struct {
	l      *link
	seq    uint64
	answer chan reply
}

// post sends a request without waiting for the reply.
func (l *link) post(q request, body []byte) pendingReply {
	p := pendingReply{l: l, answer: make(chan reply, 1)}
	l.mu.Lock()
	l.seq++
	p.seq = l.seq
	l.pending[p.seq] = p.answer
	l.mu.Unlock()
	q.Seq = p.seq
	if l.send(q, body) != nil {
		_ = l.conn.Close() // a partly sent request would corrupt the next request
		<-l.lost
	}
	return p
}

// reply waits for the reply. It returns ErrGone if the connection breaks first.
func (p pendingReply) reply(ctx context.Context) (reply, error) {
	l := p.l
	defer func() {
		l.mu.Lock()
		delete(l.pending, p.seq)
		l.mu.Unlock()
	}()
	select {
	case r := <-p.answer:
		return r, r.err()
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	case <-l.lost:
	}
	select {
	case r := <-p.answer: // the reply arrived before the connection broke
		return r, r.err()
	default:
		return reply{}, fmt.Errorf("%w: %w", ErrGone, l.cause)
	}
}

func (l *link) ask(ctx context.Context, q request, body []byte) (reply, error) {
	return l.post(q, body).reply(ctx)
}

// ask sends a request and waits for its reply. The request must be idempotent, because ask repeats it if the connection
// breaks.
func (c *Client) ask(ctx context.Context, q request, effort Effort) (reply, error) {
	for {
		l, err := c.reach(ctx, effort)
		if err != nil {
			return reply{}, err
		}
		r, err := l.ask(ctx, q, nil)
		if !errors.Is(err, ErrGone) || ctx.Err() != nil || c.life.over() {
			return r, err
		}
	}
}
