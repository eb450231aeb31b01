package runner

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// After Close, no agent of a cancelled start is left, even if the runner had not begun the start.
func TestCloseEndsCancelledStarts(t *testing.T) {
	for name, givesUp := range map[string]func(cancel context.CancelFunc, c *Client){
		"its context ends":  func(cancel context.CancelFunc, _ *Client) { cancel() },
		"the client closes": func(_ context.CancelFunc, c *Client) { go c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			other, c := reopen(t, dir, Options{}), reopen(t, dir, Options{})
			if err := c.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			id, _ := runnerOf(other)
			if err := id.Signal(unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			spec := sh("exec sleep 60")
			spec.ID = "given-up"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() {
				_, err := c.Start(ctx, spec)
				result <- err
			}()
			eventually(t, "the start is asked for", func() bool {
				c.link.mu.Lock()
				defer c.link.mu.Unlock()
				return len(c.link.pending) > 0
			})
			givesUp(cancel, c)
			if err := <-result; err == nil {
				t.Error("the start succeeded")
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			eventually(t, "the client closes", func() bool {
				_, err := c.Start(t.Context(), spec)
				return errors.Is(err, errClosed)
			})
			if err := id.Signal(unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			await(t, "closed", closed)
			if _, err := other.Attach(t.Context(), spec.ID, 0); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("attach to what was given up: %v", err)
			}
			if left := processesOfRun(t, spec.ID); len(left) > 0 {
				t.Errorf("it runs: %v", left)
			}
		})
	}
}

// A connection over which reattaching fails is not used.
func TestReattachOverTheNextConnection(t *testing.T) {
	dir := t.TempDir()
	s := newFakeRunner(t, dir)
	c, err := Open(dir, Options{Command: runnerCommand(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := make(chan *conn, 1)
	go func() {
		first <- s.serve(request{Op: opStart}, reply{Info: &Info{ID: "held", Alive: true}})
	}()
	spec := sh("exit 0")
	spec.ID = "held"
	if err := os.Mkdir(filepath.Join(dir, spec.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{outFile, errFile} {
		if err := os.WriteFile(filepath.Join(dir, spec.ID, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	_ = (<-first).conn.Close()
	refused := s.serve(request{Op: opAttach}, reply{Error: "too many open files", Errno: int(syscall.EMFILE)})
	defer refused.conn.Close()
	taken := s.serve(request{Op: opAttach}, reply{Info: &Info{ID: "held", Status: &Status{Ended: true}}})
	defer taken.conn.Close()
	await(t, "the run is told of its end", r.Done())
}

// While a runner exits at once, or breaks each connection, the pauses between the attempts grow.
func TestConnectPausesBetweenAttempts(t *testing.T) {
	const allowed = 20 // pauses of 1, 2, 4 … ms make 11 attempts in a second
	prepare := func(t *testing.T, o Options, dir string) {
		c, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Prepare(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("prepare: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("it exits", func(t *testing.T) {
		starts := filepath.Join(t.TempDir(), "starts")
		shell := []string{"/bin/sh", "-c", `printf x >>"$0"`, starts}
		prepare(t, Options{Command: shell, Program: shell[0]}, t.TempDir())
		if data, _ := os.ReadFile(starts); len(data) > allowed {
			t.Errorf("%d runners were started in a second", len(data))
		}
	})
	t.Run("it breaks the connection", func(t *testing.T) {
		dir := t.TempDir()
		s := newFakeRunner(t, dir)
		accepted := make(chan int)
		go func() {
			n := 0
			for ; ; n++ {
				conn, err := s.listener.Accept()
				if err != nil {
					break
				}
				_ = conn.Close()
			}
			accepted <- n
		}()
		prepare(t, Options{Command: runnerCommand(t)}, dir)
		_ = s.listener.Close()
		if n := <-accepted; n == 0 || n > allowed {
			t.Errorf("%d connections in a second", n)
		}
	})
}

// fakeRunner is a runner whose replies the test chooses.
type fakeRunner struct {
	t        *testing.T
	listener *net.UnixListener
}

func newFakeRunner(t *testing.T, dir string) *fakeRunner {
	t.Helper()
	path, done, err := shortPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &fakeRunner{t, l}
}

// serve accepts a connection, answers hello, and answers the first request, which must be q.
func (f *fakeRunner) serve(q request, answer reply) *conn {
	f.t.Helper()
	_ = f.listener.SetDeadline(time.Now().Add(patience))
	raw, err := f.listener.Accept()
	if err != nil {
		f.t.Error(err)
		ours, theirs := net.Pipe()
		raw = ours
		_ = theirs.Close()
	}
	c := &conn{frames: frames{conn: raw}}
	for _, to := range []struct {
		op     op
		answer reply
	}{{opHello, reply{Version: Version}}, {q.Op, answer}} {
		var got request
		if _, err := c.receive(&got); err != nil || got.Op != to.op {
			f.t.Errorf("asked for %q, %v", got.Op, err)
		}
		to.answer.Seq = got.Seq
		if err := c.send(to.answer, nil); err != nil {
			f.t.Error(err)
		}
	}
	return c
}

// A list waits for starts in progress, whose clients may be dead.
func TestAListWaitsForStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		spec := Spec{ID: "one"}
		started, err := s.announce(request{Op: opStart, Spec: &spec})
		if err != nil {
			t.Fatal(err)
		}
		listed := make(chan struct{})
		go func() {
			defer close(listed)
			if _, err := s.handle(nil, request{Op: opList}, nil); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-listed:
			t.Error("it did not wait")
		default:
		}
		started()
		<-listed
	})
}

// A leaving runner also closes a connection that it accepted and did not serve yet. Otherwise it would wait for its
// client, and the client for the next runner.
func TestALeavingRunnerClosesALateConnection(t *testing.T) {
	s := &server{clients: clients{conns: map[*conn]bool{}}}
	s.clients.close()
	client, accepted := net.Pipe()
	s.serve(&conn{frames: frames{conn: accepted}, gone: make(chan struct{})})
	if n, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %d bytes, %v", n, err)
	}
}

// A start does not wait for ever for a leaving runner that never closes the connection.
func TestAStartAfterARunnerThatDoesNotLeave(t *testing.T) {
	dir := t.TempDir()
	s := newFakeRunner(t, dir)
	c, err := Open(dir, Options{Command: runnerCommand(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	leaving := reply{Error: "leaving", Errno: int(syscall.ESHUTDOWN)}
	next := make(chan *conn, 1)
	go func() {
		stuck := s.serve(request{Op: opStart}, leaving)
		for q := (request{}); ; {
			if _, err := stuck.receive(&q); err != nil {
				break
			}
			leaving.Seq = q.Seq
			_ = stuck.send(leaving, nil)
		}
		_ = stuck.conn.Close()
		next <- s.serve(request{Op: opStart}, reply{Error: "refused", Errno: int(syscall.EPERM)})
	}()
	if _, err := c.Start(t.Context(), sh("exit 0")); !errors.Is(err, syscall.EPERM) {
		t.Errorf("the start returns %v, want the answer over the next connection", err)
	}
	_ = (<-next).conn.Close()
}
