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

// link is a connection to the runner.
type link struct {
	frames
	mu      sync.Mutex
	seq     uint64
	pending map[uint64]chan reply
	lost    chan struct{} // closed when nothing more is received
	why     error         // then
}

// connect gives the connection to the runner. On this machine AsIs gives errNoRunner where none runs.
func (c *Client) connect(ctx context.Context, effort Effort) (*link, error) {
	if l := c.alive(); l != nil {
		return l, nil
	}
	var conn net.Conn
	var err error
	if c.remote != nil { // it may take minutes to make what is not there, for which no held run waits
		if conn, err = c.remote.Dial(ctx, effort); err != nil {
			return nil, fmt.Errorf("connect to the runner: %w", err)
		}
	}
	c.linking.Lock()
	defer c.linking.Unlock()
	l := c.alive()
	if l != nil || c.life.Err() != nil {
		if conn != nil {
			_ = conn.Close() // another was quicker
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
	if err := errors.Join(c.takeBack(ctx, l), c.offerTools(ctx, l)); err != nil {
		_ = l.conn.Close() // the next connection takes the runs back
		return nil, err
	}
	c.mu.Lock()
	c.link = l
	c.mu.Unlock()
	return l, nil
}

// alive is the connection, if it has not broken.
func (c *Client) alive() *link {
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

// newLink receives over a connection.
func (c *Client) newLink(conn net.Conn) *link {
	l := &link{frames: frames{conn: conn}, pending: map[uint64]chan reply{}, lost: make(chan struct{})}
	c.wg.Go(func() { c.receive(l) })
	return l
}

// greet connects to a runner of this machine, and says hello. It has one of another build replaced.
func (c *Client) greet(ctx context.Context, effort Effort) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	program, err := programID(c.opts.Program)
	if err != nil {
		return nil, err
	}
	for upgraded := !c.opts.Upgrade; ; upgraded = true {
		conn, err := c.dial(ctx, effort)
		if err != nil {
			return nil, err
		}
		l := c.newLink(conn)
		r, err := l.ask(ctx, request{Op: opHello, Version: Version, Program: program}, nil)
		if errors.Is(err, ErrGone) && ctx.Err() == nil { // it was about to leave
			continue
		}
		if err == nil && r.Program != program && !upgraded {
			_, err = l.ask(ctx, request{Op: opUpgrade, Path: c.path(), Args: c.opts.Command[1:]}, nil)
			if errors.Is(err, ErrGone) { // it is another program now
				continue
			}
			err = nil // it is busy: the next start of ductor tries again
		}
		return l.accept(r, err)
	}
}

// accept gives the connection to a runner that answered hello, if it speaks our protocol, and else closes it.
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

// path is our command's program as another process finds it.
func (c *Client) path() string {
	if path := c.opts.Command[0]; path != "/proc/self/exe" {
		return path
	}
	return fmt.Sprintf("/proc/%d/exe", os.Getpid())
}

// dial connects to the socket, and starts a runner where none answers.
func (c *Client) dial(ctx context.Context, effort Effort) (net.Conn, error) {
	for {
		conn, err := dialSocket(ctx, c.dir)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("connect to the runner: %w", err)
		}
		if effort == AsIs {
			return nil, errNoRunner
		}
		if err := c.spawn(ctx); err != nil {
			return nil, fmt.Errorf("start the runner: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the runner: %w", context.Cause(ctx))
		case <-time.After(connectLook):
		}
	}
}

// dialSocket connects to the runner of a directory.
func dialSocket(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// spawn starts a runner in a session of its own, with no word of our environment but where to find things, and returns
// when its socket is there, or when it leaves because another runner has the directory.
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
	args := append(titled(c.opts.Command[1:]), "root="+c.dir)
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
	_, _ = ready.Read(make([]byte, 1)) // one that has no socket closes it
	return nil
}

// reap takes the exit of runners that we started and that are dead.
func (c *Client) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids = slices.DeleteFunc(c.pids, func(pid int) bool {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return got == pid || errors.Is(err, unix.ECHILD)
	})
}

// runnerEnv holds no secret, and keeps the runtime small.
func runnerEnv() []string {
	env := []string{"GOMAXPROCS=2", "GOTRACEBACK=single"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR", "GORACE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// receive takes what the runner sends, until the connection breaks. Then it makes another for the runs that are held.
func (c *Client) receive(l *link) {
	for {
		var r reply
		body, err := l.receive(&r)
		if err != nil {
			l.why = err
			break
		}
		r.body = body
		switch {
		case r.Seq == 0 && r.Status != nil:
			c.ended(r)
			continue
		case r.Seq == 0 && r.Relay != "":
			c.tools.take(c, l, r)
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
	c.tools.lose(l)
	for broke := time.Now(); c.uses(l) && c.life.Err() == nil &&
		slices.ContainsFunc(c.held(), func(r *Run) bool { return r.at() < runEnded }); {
		_, err := c.connect(c.life, c.least())
		switch {
		case err == nil:
			return
		case c.remote != nil && c.givesUp(err, broke):
			c.lose(err)
			return
		}
		select {
		case <-c.life.Done():
		case <-time.After(relinkPause):
		}
	}
}

// leaveWait is how long a client that leaves waits for what the runner is still doing for it.
const leaveWait = 500 * time.Millisecond

// leave says that nothing is asked any more, waits for the runner to say the same, and closes the connection.
func (l *link) leave() {
	if half, ok := l.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		wait := time.NewTimer(leaveWait)
		defer wait.Stop()
		select {
		case <-l.lost:
		case <-wait.C:
		}
	}
	_ = l.conn.Close()
}

// uses says whether a connection is the client's, once it is decided whether it becomes that.
func (c *Client) uses(l *link) bool {
	c.linking.Lock()
	defer c.linking.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link == l
}

// await waits for the end of the connection to a runner that said it leaves; not long, as one that tries to become
// another program may stay.
func (l *link) await(ctx context.Context) {
	select {
	case <-l.lost:
	case <-ctx.Done():
	case <-time.After(relinkPause):
	}
}

// posted is a request that was sent, whose reply is waited for by one goroutine.
type posted struct {
	l      *link
	seq    uint64
	answer chan reply
}

// post sends a request.
func (l *link) post(q request, body []byte) posted {
	p := posted{l: l, answer: make(chan reply, 1)}
	l.mu.Lock()
	l.seq++
	p.seq = l.seq
	l.pending[p.seq] = p.answer
	l.mu.Unlock()
	q.Seq = p.seq
	if l.send(q, body) != nil {
		_ = l.conn.Close() // that of a part would spoil the next
		<-l.lost
	}
	return p
}

// reply waits for the reply. It gives ErrGone when the connection breaks before.
func (p posted) reply(ctx context.Context) (reply, error) {
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
	case r := <-p.answer: // the last that was received
		return r, r.err()
	default:
		return reply{}, fmt.Errorf("%w: %w", ErrGone, l.why)
	}
}

// ask sends a request and waits for its reply.
func (l *link) ask(ctx context.Context, q request, body []byte) (reply, error) {
	return l.post(q, body).reply(ctx)
}

// ask does a request that may be done twice: after a broken connection it is made again.
func (c *Client) ask(ctx context.Context, q request, effort Effort) (reply, error) {
	for {
		l, err := c.reach(ctx, effort)
		if err != nil {
			return reply{}, err
		}
		r, err := l.ask(ctx, q, nil)
		if !errors.Is(err, ErrGone) || ctx.Err() != nil || c.life.Err() != nil {
			return r, err
		}
	}
}
