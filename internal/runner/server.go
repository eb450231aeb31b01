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
)

// defaultIdle is how long a runner stays with no agent.
const defaultIdle = 15 * time.Minute

// server is the runner of a directory.
type server struct {
	setup
	listener *net.UnixListener
	watching
	wakes chan struct{} // the keeper looks again; one is enough
	wg    sync.WaitGroup
	life  context.Context // over when the runner leaves
	children

	mu       sync.Mutex
	runs     map[string]*agent
	conns    map[*conn]bool
	starting map[string]chan struct{} // each closed once the run is there, or is not; nil when none may start any more
	idleFrom time.Duration
}

// watching is how a runner learns of output.
type watching struct {
	growth *growthWatch
	files  announcer // for clients elsewhere
}

// setup is what a runner is told at its start.
type setup struct {
	dir     string
	idle    time.Duration // how long it stays with no agent
	program string        // identity of ours
	lock    *os.File      // held as long as this process is the runner
	store   store         // of the first process of a container
	agents  kernelLimits  // agents'
	group   string        // in which those of agents are made; empty if none can be
}

// children are the agents that this process is the parent of.
type children struct {
	reaping sync.Mutex     // held while an exit is taken, an agent is started or signalled
	byPID   map[int]*agent // under reaping
	inputs  map[string]int // of those of the runner before, by run
	next    prepared       // for the agent that starts next
}

// conn is a client's connection.
type conn struct {
	frames
	pid  int
	gone chan struct{} // closed when it broke
	relaying
}

// tellWait is how long a client may take no bytes before its connection is cut: agents that end must not wait for it.
const tellWait = 3 * time.Second

// tell sends a reply. A client that is gone asks again over its next connection.
func (c *conn) tell(r reply) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(tellWait)) // what is closed takes none
	if c.send(r, r.body) != nil {
		_ = c.conn.Close()
	}
}

func (s *server) add(a *agent) {
	s.mu.Lock()
	s.runs[a.ID] = a
	s.mu.Unlock()
	s.growth.set(a)
	s.wake()
}

func (s *server) remove(a *agent) {
	s.growth.drop(a)
	s.mu.Lock()
	delete(s.runs, a.ID)
	s.idleFrom = sinceBoot()
	s.mu.Unlock()
	s.wake()
}

// find gives a run. One that is being started is there when it is started.
func (s *server) find(id string) (*agent, error) {
	s.mu.Lock()
	if started := s.starting[id]; started != nil {
		s.mu.Unlock()
		<-started
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if a := s.runs[id]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("there is no run %s: %w", id, syscall.ENOENT)
}

// all lists the runs by age.
func (s *server) all() []*agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.runs), func(a, b *agent) int { return a.Started.Compare(b.Started) })
}

// wake makes the keeper look again.
func (s *server) wake() { poke(s.wakes) }

// poke wakes who reads a channel, which has room for one: what is in it is enough.
func poke(wakes chan<- struct{}) {
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
		if err != nil { // too many open files, perhaps
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

// peer is the process at the other end, of this user.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred,
			credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return 0, fmt.Errorf("user %d may not use the runner", cred.Uid)
	}
	return int(cred.Pid), nil
}

// serve handles the requests of a connection and returns when all are done. What says who owns a run, and what is
// relayed, is done in its order; the rest is done each on a goroutine of its own.
func (s *server) serve(c *conn) {
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	var busy sync.WaitGroup
	for {
		var q request
		body, err := c.receive(&q)
		if err != nil {
			break
		}
		started, err := s.announce(q) // before a later request asks for the run
		handle := func() {
			var r reply
			if err == nil {
				r, err = s.do(c, q, body)
				started()
			}
			c.tell(r.of(q, err))
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
	s.next.settle()
	_ = c.conn.Close()
	s.wake() // it may have been the last one
}

// tell tells all clients how a run ended so far.
func (s *server) tell(a *agent) {
	status := a.status()
	r := reply{Run: a.ID, Status: &status, Stderr: a.out.stderr()}
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.tell(r)
	}
}

// of makes a reply to a request that gave err.
func (r reply) of(q request, err error) reply {
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

// do does a request that needs no run, or passes it on.
func (s *server) do(c *conn, q request, body []byte) (reply, error) {
	switch q.Op {
	case opHello:
		return reply{Version: Version, Program: s.program, PID: os.Getpid()}, nil
	case opUpgrade:
		return reply{}, s.upgrade(q.Path, q.Args, body)
	case opStart:
		return s.startFor(c, *q.Spec)
	case opList:
		s.awaitStarts() // who asks after the death of a client must find what that started
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
	return a.do(c, q, body)
}

// announce notes that a request starts a run. Call the function it returns when the run is there, or is not.
func (s *server) announce(q request) (started func(), err error) {
	if q.Op != opStart {
		return func() {}, nil
	}
	if q.Spec == nil {
		return nil, errors.New("nothing is to be started")
	}
	id := q.Spec.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.starting == nil:
		return nil, fmt.Errorf("the runner is about to leave: %w", syscall.ESHUTDOWN)
	case s.starting[id] != nil:
		return nil, fmt.Errorf("the run %s is being started: %w", id, syscall.EEXIST)
	}
	there := make(chan struct{})
	s.starting[id] = there
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.starting, id)
		close(there)
	}, nil
}

// awaitStarts returns when every start that is under way now has ended.
func (s *server) awaitStarts() {
	s.mu.Lock()
	starting := slices.Collect(maps.Values(s.starting))
	s.mu.Unlock()
	for _, there := range starting {
		<-there
	}
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
	info := a.info(false) // it may have ended by now
	return reply{Info: &info, Stderr: a.out.stderr()}, nil
}

// do does a request of one run.
func (a *agent) do(c *conn, q request, body []byte) (reply, error) {
	switch q.Op {
	case opAttach:
		a.out.took(q.Offset)
		a.setOwner(nil, c)
		info := a.info(false)
		a.look() // some of the output may be newer than the last look
		info.Times = a.out.allTimes()
		return reply{Info: &info, Stderr: a.out.stderr()}, nil
	case opDetach:
		a.setOwner(c, nil)
		return reply{}, nil
	case opLookUp:
		info := a.info(true)
		return reply{Info: &info, Stderr: a.out.stderr()}, nil
	case opPull:
		return a.pull(c, q)
	case opStderr:
		return reply{Stderr: a.out.stderr()}, nil
	case opWrite:
		position, err := a.take(q.Seq, body)
		return reply{Offset: position}, err
	case opCloseInput:
		if first, err := a.in.finish(); !first {
			return reply{}, err
		}
		a.note(lineClosed)
		return reply{}, nil
	case opSignal:
		return reply{}, a.kill(syscall.Signal(q.Signal))
	case opStop:
		if q.Grace < 0 {
			q.Grace = a.facts().limits.Grace
		}
		return reply{}, a.end(ByStop, q.Grace)
	case opLimits:
		if q.Limits != nil {
			a.limit(*q.Limits)
		}
		return reply{}, nil
	case opRead:
		a.out.took(q.Offset)
		a.pause()
		return reply{}, nil
	case opForget:
		a.out.forget(q.Offset)
		a.noteFreed()
		return reply{}, nil
	case opCollect:
		return reply{}, a.collect()
	}
	return reply{}, fmt.Errorf("the runner cannot do %q", q.Op)
}

// closeConns ends all connections.
func (s *server) closeConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.conn.Close()
	}
}
