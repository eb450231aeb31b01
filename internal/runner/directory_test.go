package runner

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func acquire(t *testing.T, path string, lock, listen int) *directory {
	t.Helper()
	d := &directory{path: path}
	if ok, err := d.acquire(lock, listen); err != nil || !ok {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _, _ = d.listener.Close(), d.lock.Close() })
	return d
}

func TestADirectoryHasOneRunner(t *testing.T) {
	first := acquire(t, t.TempDir(), 0, 0)
	second := &directory{path: first.path}
	if ok, err := second.acquire(0, 0); ok || err != nil {
		t.Errorf("a second runner: %v, %v", ok, err)
	}
	_ = second.lock.Close()
	if !first.hasSocket() {
		t.Error("the second runner has removed the socket")
	}
	if err := first.lock.Close(); err != nil {
		t.Fatal(err)
	}
	acquire(t, first.path, 0, 0) // the socket file of the first runner is no obstacle
}

// The next program of the process inherits the lock and the socket, so clients can connect in the meantime.
func TestADirectoryIsHandedOver(t *testing.T) {
	first := acquire(t, t.TempDir(), 0, 0)
	args, done, err := first.handOver()
	if err != nil {
		t.Fatal(err)
	}
	a, err := parseArgs(args)
	if err != nil || a.root != first.path {
		t.Fatalf("%q: %+v, %v", args, a, err)
	}
	conn, err := dialSocket(t.Context(), first.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var fds [2]int // exec would give the next program descriptors of its own
	for i, fd := range []int{a.lock, a.listen} {
		if fds[i], err = unix.Dup(fd); err != nil {
			t.Fatal(err)
		}
	}
	next := acquire(t, a.root, fds[0], fds[1])
	accepted, err := next.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = accepted.Close()
	done()
	if err := os.Remove(filepath.Join(first.path, socketFile)); err != nil || next.hasSocket() {
		t.Errorf("the socket is still there, %v", err)
	}
}
