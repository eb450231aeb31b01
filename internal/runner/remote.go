package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Remote is an environment whose runner and files are not this machine's, such as a container. Its first process is
// Hold; see Inside. Safe for concurrent use.
type Remote interface {
	// Dial starts Connect there, and gives its standard input and output as one connection; ctx bounds
	// the start. An error matching ErrNoEnvironment says that nothing of the environment is there, and so no run can be
	// alive. With Make an error may have any reason, and its words are for users.
	Dial(ctx context.Context, effort Effort) (net.Conn, error)
	// Restart ends all that runs there at once, and starts the environment anew.
	Restart(ctx context.Context) error
	// Program is the program that the runner there is to be: its identity, and its file on this machine. Without an
	// identity any program is good.
	Program() (id, path string)
}

// Effort is what may be done to reach a runner.
type Effort int

// The efforts, from the least to the greatest.
const (
	AsIs   Effort = iota // nothing: what is not up is not there
	Revive               // what is there and does not run is started again
	Make                 // what is not there is made
)

// ErrNoEnvironment says that an environment is not there, and with it nothing that ran in it.
var ErrNoEnvironment = errors.New("the environment is not there")

// LostEnvironmentError says that the connection to a run's environment is lost, for good or for longer than a reader
// waits. What runs there may run on, until it counts as orphaned.
type LostEnvironmentError struct {
	Err error // why it cannot be reached
}

func (e *LostEnvironmentError) Error() string {
	return fmt.Sprintf("the run cannot be reached any more: %v", e.Err)
}
func (e *LostEnvironmentError) Unwrap() error { return e.Err }

const (
	// awayMost is how long a connection to another environment may be away before its runs count as lost.
	awayMost = 10 * time.Second
	// greetWait is how long a runner elsewhere may take to answer the first request.
	greetWait = 30 * time.Second
	// mostPulled is how much output is asked for at a time.
	mostPulled = 128 << 10
)

// OpenRemote gives a client of the runs in another environment. Nothing is asked of that before it is needed. The
// caller must Close the client.
func OpenRemote(r Remote) *Client {
	c := newClient()
	c.remote = r
	return c
}

// reach gives a connection. What a held run needs of another environment waits a while for one.
func (c *Client) reach(ctx context.Context, effort Effort) (*link, error) {
	for began := time.Now(); ; {
		l, err := c.connect(ctx, max(effort, c.least()))
		if err == nil || effort > AsIs || c.givesUp(err, began) || ctx.Err() != nil || c.life.Err() != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-c.life.Done():
			return nil, errClosed
		case <-time.After(relinkPause):
		}
	}
}

// least is the effort that held runs are worth: on this machine a runner is always to be had.
func (c *Client) least() Effort {
	if c.remote == nil {
		return Revive
	}
	return AsIs
}

// givesUp says whether an error will not pass with time, of a connection that broke some time ago.
func (c *Client) givesUp(err error, broke time.Time) bool {
	var version *VersionError
	return c.remote == nil || errors.Is(err, ErrNoEnvironment) || errors.As(err, &version) ||
		time.Since(broke) > awayMost
}

// lose gives up on the runs that are held.
func (c *Client) lose(err error) {
	for _, r := range c.held() {
		r.lose(err)
	}
}

// lose notes that nothing more can be learned of the run, if its end is not known.
func (r *Run) lose(err error) error {
	r.mu.Lock()
	if r.lost == nil {
		r.lost = &LostEnvironmentError{Err: err}
	}
	lost, stderr := r.lost, r.stderr
	r.mu.Unlock()
	r.finish(Status{Ended: true, OutputEnd: r.Offset()}, stderr)
	return lost
}

// pulled is the output of a run in another environment, which the runner there sends as it grows. One goroutine reads.
type pulled struct {
	run  *Run
	kept []byte  // what was received and not read
	next *posted // the request for what comes then, ahead of its reader
}

func (p *pulled) stir()       {} // the runner is asked all the time
func (p *pulled) tells() bool { return false }
func (p *pulled) close()      {}

func (p *pulled) read(buf []byte, at int64) (int, error) {
	for len(p.kept) == 0 {
		if err := p.pull(at); err != nil {
			return 0, err
		}
	}
	n := copy(buf, p.kept)
	p.kept = p.kept[n:]
	return n, nil
}

// pull waits for output, or for the end of the connection.
func (p *pulled) pull(at int64) error {
	r := p.run
	if p.next == nil {
		l, err := r.c.reach(r.life, AsIs)
		switch {
		case r.life.Err() != nil:
			return ErrDetached
		case err != nil:
			return r.lose(err)
		}
		p.post(l, at)
	}
	l := p.next.l
	answer, err := p.next.reply(r.life)
	p.next = nil
	switch {
	case r.life.Err() != nil:
		return ErrDetached
	case errors.Is(err, ErrGone):
		return nil // over the next connection
	case errors.Is(err, syscall.ENOENT): // collected
		r.finish(Status{Ended: true, OutputEnd: at}, "")
		return io.EOF
	case err != nil:
		return fmt.Errorf("read the output of run %s: %w", r.ID(), err)
	case answer.Lost != nil:
		return answer.Lost
	case answer.Status != nil:
		r.finish(*answer.Status, answer.Stderr)
		return io.EOF
	}
	p.kept = answer.body
	p.post(l, at+int64(len(p.kept)))
	return nil
}

func (p *pulled) post(l *link, at int64) {
	next := l.post(request{Op: opPull, Run: p.run.ID(), Offset: at, Length: mostPulled}, nil)
	p.next = &next
}

// askToEnd does a request that ends agents. Where nothing can be started any more, not even what would carry the
// request, the environment is started anew: that ends them too.
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

// ErrNoRoom says that an environment is there, and what was started in it to reach its runner ended at once.
var ErrNoRoom = errors.New("nothing can be started there to reach the runner")

// greetRemote says hello to a runner elsewhere, and has it replaced if it is not the program that it is to be.
func (c *Client) greetRemote(ctx context.Context, conn net.Conn) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, greetWait)
	defer cancel()
	id, path := c.remote.Program()
	for upgraded := false; ; {
		l := c.newLink(conn)
		r, err := l.ask(ctx, request{Op: opHello, Version: Version, Program: id}, nil)
		replaced := upgraded && errors.Is(err, ErrGone) // the program before it accepted us
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
			err = fmt.Errorf("%w: %w", ErrNoRoom, l.why)
		}
		return l.accept(r, err)
	}
}

// sendProgram has the runner become another program, and says whether it did: one that is busy stays what it is until
// the next connection.
func (l *link) sendProgram(ctx context.Context, id, path string) bool {
	program, err := os.ReadFile(path)
	if err != nil {
		return false // it can be done without
	}
	_, err = l.ask(ctx, request{Op: opUpgrade, Args: []string{run, "program=" + id}}, program)
	return errors.Is(err, ErrGone)
}

// LookPath finds a program by name where the runs are; a name with a slash is checked as it is. A program that is not
// there gives an error matching fs.ErrNotExist.
func (c *Client) LookPath(ctx context.Context, name string) (string, error) {
	if c.remote == nil {
		return LookPath(name)
	}
	r, err := c.ask(ctx, request{Op: opLookPath, Path: name}, Make)
	return r.Path, err
}
