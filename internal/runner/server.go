package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/runner/fdstore"
	"ductor/internal/runner/fork"
)

// defaultIdle is how long a runner without an agent waits before it exits.
const defaultIdle = 15 * time.Minute

// server is the runner of a directory.
type server struct {
	dir     string
	idle    time.Duration  // how long a runner without an agent waits before it exits
	program string         // identity of this program
	lock    *os.File       // locked while this process is the runner
	store   fdstore.Client // connection to the first process of a container
	agents  fork.Limits    // kernel settings for new agents
	group   string         // control group below which each agent gets its own group; empty if not available

	listener *net.UnixListener
	growth   *growthWatch
	files    writeWatch    // watches output files for clients that cannot open them
	wakes    chan struct{} // wakes enforceDeadlines
	wg       sync.WaitGroup
	ctx      context.Context // done when the runner leaves
	children
	inputs   map[string]int // descriptors of agents' inputs that the previous runner stored, by run ID
	prepared prepared

	starts starts

	mu       sync.Mutex
	runs     map[string]*agent
	conns    map[*conn]bool // nil after closeConns
	idleFrom time.Duration
}

type conn struct {
	frames
	pid  int
	gone chan struct{} // closed when the connection breaks

	relay  string // name of the relay if the client is a program that uses tools; guarded by the server's mu
	serves bool   // whether the client serves tools; guarded by the server's mu
}

// replyWait is how long a write to a client may block. After this time, the runner closes the connection. Otherwise a
// client that does not read could delay the end of agents.
const replyWait = 3 * time.Second

// sendReply sends a reply. If sending fails, sendReply closes the connection, and the client repeats its request on a
// new connection.
func (c *conn) sendReply(r reply) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(replyWait)) // fails only on a closed connection
	if c.send(r, r.body) != nil {
		_ = c.conn.Close()
	}
}

func (s *server) add(a *agent) {
	s.mu.Lock()
	s.runs[a.ID] = a
	s.mu.Unlock()
	s.growth.add(a)
	s.wake()
}

func (s *server) remove(a *agent) {
	s.growth.remove(a)
	s.mu.Lock()
	delete(s.runs, a.ID)
	s.idleFrom = sinceBoot()
	s.mu.Unlock()
	s.wake()
}

// find returns a run. If the run is being started, find waits until it has started.
func (s *server) find(id string) (*agent, error) {
	s.starts.await(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.runs[id]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("run %s does not exist: %w", id, syscall.ENOENT)
}

// all returns all runs, the oldest first.
func (s *server) all() []*agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.runs), func(a, b *agent) int { return a.Started.Compare(b.Started) })
}

// wake wakes enforceDeadlines.
func (s *server) wake() { signalOnce(s.wakes) }

// signalOnce wakes the goroutine that receives from wakes. The channel must have a buffer of one.
func signalOnce(wakes chan<- struct{}) {
	select {
	case wakes <- struct{}{}:
	default:
	}
}

// accept serves clients until the listener is closed.
func (s *server) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, too many open files
			time.Sleep(10 * time.Millisecond)
			continue
		}
		pid, err := peer(c)
		if err != nil {
			_ = c.Close()
			continue
		}
		s.wg.Go(func() { s.serve(&conn{frames: frames{conn: c}, pid: pid, gone: make(chan struct{})}) })
	}
}

// peer returns the PID of the client. It returns an error unless the client belongs to this user or to root.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(failed, err); err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return 0, fmt.Errorf("user %d may not use the runner", cred.Uid)
	}
	return int(cred.Pid), nil
}

// serve handles the requests of a connection, and returns when all requests are handled. It handles attach, detach and
// relay requests in order, and all other requests concurrently.
func (s *server) serve(c *conn) {
	s.mu.Lock()
	leaving := s.conns == nil
	if !leaving {
		s.conns[c] = true
	}
	s.mu.Unlock()
	if leaving { // closeConns did not see this connection
		_ = c.conn.Close()
		return
	}
	var busy sync.WaitGroup
	for {
		var q request
		body, err := c.receive(&q)
		if err != nil {
			break
		}
		started, err := s.announce(q) // the next request may concern the run that this request starts
		handle := func() {
			var r reply
			if err == nil {
				r, err = s.handle(c, q, body)
				started()
			}
			c.sendReply(r.complete(q, err))
		}
		if q.Op == opAttach || q.Op == opDetach || q.Op == opRelay {
			handle()
		} else {
			busy.Go(handle)
		}
	}
	close(c.gone)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	for _, a := range s.all() {
		a.setOwner(c, nil)
	}
	s.endRelays(c)
	busy.Wait()
	s.prepared.wait()
	_ = c.conn.Close()
	s.wake() // this may have been the last client
}

func (s *server) broadcast(a *agent) {
	r := a.endReport()
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.sendReply(r)
	}
}

// endReport returns a reply that describes how the agent ended.
func (a *agent) endReport() reply {
	status := a.snapshot().status
	return reply{Run: a.ID, Status: &status, Stderr: a.out.stderr()}
}

// complete adds the sequence number of request q and the error err to a reply.
func (r reply) complete(q request, err error) reply {
	r.Seq = q.Seq
	if err != nil {
		r.Error = err.Error()
		var errno syscall.Errno
		switch {
		case errors.As(err, &errno):
			r.Errno = int(errno)
		case errors.Is(err, os.ErrNotExist):
			r.Errno = int(syscall.ENOENT)
		case errors.Is(err, os.ErrProcessDone):
			r.Errno = int(syscall.ESRCH)
		case errors.Is(err, os.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
			r.Errno = int(syscall.EPIPE)
		}
	}
	return r
}

// handle handles one request. It passes requests about a run to agent.handle.
func (s *server) handle(c *conn, q request, body []byte) (reply, error) {
	switch q.Op {
	case opHello:
		return reply{Version: Version, Program: s.program, PID: os.Getpid()}, nil
	case opUpgrade:
		return reply{}, s.upgrade(q.Path, q.Args, body)
	case opStart:
		return s.startFor(c, *q.Spec)
	case opList:
		s.starts.await("") // the list must include a run whose client died during its start
		r := reply{List: []Info{}}
		for _, a := range s.all() {
			r.List = append(r.List, a.info(true))
		}
		return r, nil
	case opRelay:
		return reply{}, s.relay(c, q.Run, body)
	case opLookPath:
		path, err := LookPath(q.Path)
		return reply{Path: path}, err
	}
	a, err := s.find(q.Run)
	if err != nil {
		return reply{}, err
	}
	return a.handle(c, q, body)
}

// announce registers a run before its start, so that other requests can wait for the start. It does nothing for
// requests other than opStart. The caller must call started when the start has succeeded or failed.
func (s *server) announce(q request) (started func(), err error) {
	if q.Op != opStart {
		return func() {}, nil
	}
	if q.Spec == nil {
		return nil, errors.New("the request has no program to start")
	}
	return s.starts.begin(q.Spec.ID)
}

func (s *server) startFor(c *conn, spec Spec) (reply, error) {
	a, err := s.start(spec, c)
	if err != nil {
		return reply{}, err
	}
	s.mu.Lock()
	left := !s.conns[c]
	s.mu.Unlock()
	if left {
		a.setOwner(c, nil)
	}
	return a.describe(false), nil // the agent may have exited already
}

// describe returns a reply that describes the run; see info.
func (a *agent) describe(processes bool) reply {
	info := a.info(processes)
	return reply{Info: &info, Stderr: a.out.stderr()}
}

// handle handles a request about one run.
func (a *agent) handle(c *conn, q request, body []byte) (reply, error) {
	switch q.Op {
	case opAttach:
		a.out.setRead(q.Offset)
		a.setOwner(nil, c)
		r := a.describe(false)
		a.checkJournal() // the agent may have written output since the last check
		r.Info.Times = a.out.copyTimes()
		return r, nil
	case opDetach:
		a.setOwner(c, nil)
		return reply{}, nil
	case opLookUp:
		return a.describe(true), nil
	case opPull:
		return a.pull(c, q)
	case opStderr:
		return reply{Stderr: a.out.stderr()}, nil
	case opWrite:
		position, err := a.writeInput(q.Seq, body)
		return reply{Offset: position}, err
	case opCloseInput:
		if first, err := a.in.closeWrite(); !first {
			return reply{}, err
		}
		a.appendLog(lineClosed)
		return reply{}, nil
	case opSignal:
		return reply{}, a.kill(syscall.Signal(q.Signal))
	case opStop:
		by := ByStop
		if q.Grace < 0 {
			by = ByKill
		}
		return reply{}, a.terminate(by, q.Grace)
	case opLimits:
		if q.Limits != nil {
			a.setLimits(*q.Limits)
		}
		return reply{}, nil
	case opRead:
		a.out.setRead(q.Offset)
		a.updateFlow()
		return reply{}, nil
	case opForget:
		a.out.freeOutput(q.Offset)
		a.logFreed()
		return reply{}, nil
	case opCollect:
		return reply{}, a.collect()
	}
	return reply{}, fmt.Errorf("the runner cannot do %q", q.Op)
}

// closeConns closes all connections. If a connection was accepted but is not yet registered, serve closes it.
func (s *server) closeConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.conn.Close()
	}
	s.conns = nil
}
