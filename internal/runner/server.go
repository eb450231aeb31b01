package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/runner/fdstore"
)

// defaultIdle is how long a runner without an agent waits before it exits.
const defaultIdle = 15 * time.Minute

type server struct {
	dir      directory
	program  string        // identity of the runner's program file; see programID
	idle     time.Duration // how long a runner without an agent waits before it exits
	holder   holder
	runs     runTable
	prepared prepared // files of the next run
	children children
	clients  clients
	growth   *growthWatch
	files    writeWatch    // watches output files for clients that cannot open them
	wakes    chan struct{} // wakes enforceDeadlines
	life     *scope        // all goroutines; canceled when the runner leaves
}

func newServer(a arguments) *server {
	return &server{
		dir: directory{path: a.root}, program: a.program, idle: a.idle, holder: holder{store: fdstore.Client(a.store)},
		runs: runTable{idleFrom: sinceBoot()}, children: children{byPID: map[int]*agent{}},
		clients: clients{conns: map[*conn]bool{}}, wakes: make(chan struct{}, 1), life: newScope(),
	}
}

type conn struct {
	frames
	pid  int
	gone chan struct{} // closed when the connection breaks

	relay  string // name of the relay if the client is a program that uses tools; guarded by the clients' mu
	serves bool   // whether the client serves tools; guarded by the clients' mu
}

// replyWait is how long a write to a client may block. After this time, the runner closes the connection, so that a
// client that does not read cannot delay the end of agents.
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
	s.runs.add(a)
	s.growth.add(a)
	s.wake()
}

func (s *server) remove(a *agent) {
	s.growth.remove(a)
	s.runs.remove(a)
	s.wake()
}

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
		c, err := s.dir.listener.AcceptUnix()
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
		s.life.Go(func() { s.serve(&conn{frames: frames{conn: c}, pid: pid, gone: make(chan struct{})}) })
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
	if !s.clients.add(c) { // the runner is leaving
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
		// Register a new run now, because the next request may already refer to it.
		started, err := s.announce(q)
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
	s.clients.remove(c)
	for _, a := range s.runs.all() {
		a.setOwner(c, nil)
	}
	s.clients.endRelays(c)
	busy.Wait()
	s.prepared.wait()
	_ = c.conn.Close()
	s.wake() // the runner may now exit, if this was its last client
}

// endReport returns a reply that describes how the agent ended.
func (a *agent) endReport() reply {
	status := a.life.currentStatus()
	return reply{Run: a.record.ID, Status: &status, Stderr: a.out.Stderr()}
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
		// Wait for the starts in progress, so that the list also includes a run whose client died during the start.
		s.runs.await("")
		r := reply{List: []Info{}}
		for _, a := range s.runs.all() {
			r.List = append(r.List, a.info(true))
		}
		return r, nil
	case opRelay:
		return reply{}, s.clients.relay(c, q.Run, body)
	case opLookPath:
		path, err := LookPath(q.Path)
		return reply{Path: path}, err
	}
	a, err := s.runs.find(q.Run)
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
	return s.runs.begin(q.Spec.ID)
}

func (s *server) startFor(c *conn, spec Spec) (reply, error) {
	a, err := s.start(spec, c)
	if err != nil {
		return reply{}, err
	}
	if !s.clients.contains(c) {
		a.setOwner(c, nil)
	}
	return a.describe(false), nil // the agent may have exited already
}

func (a *agent) describe(processes bool) reply {
	info := a.info(processes)
	return reply{Info: &info, Stderr: a.out.Stderr()}
}

func (a *agent) handle(c *conn, q request, body []byte) (reply, error) {
	switch q.Op {
	case opAttach:
		a.out.SetRead(q.Offset)
		a.setOwner(nil, c)
		r := a.describe(false)
		a.enforceJournal() // the agent may have written output since the last check
		r.Info.Times = a.out.Times()
		return r, nil
	case opDetach:
		a.setOwner(c, nil)
		return reply{}, nil
	case opLookUp:
		return a.describe(true), nil
	case opPull:
		return a.pull(c, q)
	case opStderr:
		return reply{Stderr: a.out.Stderr()}, nil
	case opWrite:
		position, err := a.writeInput(q.Seq, body)
		return reply{Offset: position}, err
	case opCloseInput:
		if first, err := a.in.closeWrite(); !first {
			return reply{}, err
		}
		a.log.append(lineClosed)
		return reply{}, nil
	case opSignal:
		return reply{}, a.s.children.signal(a, syscall.Signal(q.Signal))
	case opStop:
		by := ByStop
		if q.Grace < 0 {
			by, q.Grace = ByKill, a.life.grace()
		}
		return reply{}, a.terminate(by, q.Grace)
	case opLimits:
		if q.Limits != nil {
			a.setLimits(*q.Limits)
		}
		return reply{}, nil
	case opRead:
		a.out.SetRead(q.Offset)
		a.updateFlow()
		return reply{}, nil
	case opForget:
		a.out.FreeOutput(q.Offset)
		a.logFreed()
		return reply{}, nil
	case opCollect:
		return reply{}, a.collect()
	}
	return reply{}, fmt.Errorf("the runner cannot do %q", q.Op)
}
