package supervisor

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	open := func(path string, mode os.FileMode) { // as if somebody had been careless
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for dir := root.path(run.ID()); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		open(dir, 0o755)
	}
	open(filepath.Join(root.path(run.ID()), socketFile), 0o777)
	answer, err := helloAs(61234, filepath.Join(root.path(run.ID()), socketFile))
	if err != nil || !strings.Contains(answer, "user 61234 may not") {
		t.Errorf("%q, %v", answer, err)
	}
	if info, err := run.Inspect(t.Context()); err != nil || info.AttachedBy != os.Getpid() {
		t.Errorf("%+v, %v", info, err)
	}
}

// helloAs says hello as another user. Only its thread becomes that user, and ends.
func helloAs(uid int, path string) (answer string, err error) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return
		}
		buf := make([]byte, 1000)
		var n int
		if n, err = unix.Read(fd, buf); err == nil {
			answer = string(buf[:n])
		}
	}()
	<-said
	return answer, err
}

func TestSocketThatWasRemovedComesBack(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	run.Detach()
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	if err := os.Remove(filepath.Join(root.path(run.ID()), socketFile)); err != nil {
		t.Fatal(err)
	}
	again := attach(t, root, run.ID(), 0)
	if _, err := io.WriteString(again.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, again.Stdout()); got != "hello" {
		t.Errorf("%q", got)
	}
}

func TestPathOfAnyLength(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), strings.Repeat("longer", 20))
	root := reopen(t, dir, Options{})
	run := start(t, root, sh(`cat`))
	run.Detach()
	again := attach(t, root, run.ID(), 0)
	if _, err := io.WriteString(again.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, again.Stdout()); got != "hello" {
		t.Errorf("%q", got)
	}
}
