package statesocket_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ductor/internal/statesocket"
)

const socketName = "test.sock"

// dialVar names the directory of the socket for a process of another user.
const dialVar = "STATESOCKET_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dialVar); dir != "" {
		conn, err := statesocket.Dial(context.Background(), dir, socketName)
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func nobody(int) (bool, error) { return false, nil }

// admit passes the next client of a socket to a guard, and returns the guard's answer.
func admit(t *testing.T, l *net.UnixListener, g statesocket.Guard, secret string) error {
	t.Helper()
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return g.Admit(conn, secret)
}

func listen(t *testing.T, dir string) *net.UnixListener {
	t.Helper()
	l, err := statesocket.Listen(dir, socketName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func open(t *testing.T, dir string, descends func(int) (bool, error)) statesocket.Guard {
	t.Helper()
	g, err := statesocket.OpenGuard(dir, descends)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGuard(t *testing.T) {
	dir := t.TempDir()
	l := listen(t, dir)
	g := open(t, dir, nobody)
	secret, err := statesocket.ReadSecret(dir)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("cannot tell")
	inRun := func(pid int) (bool, error) { return pid == os.Getpid(), nil }
	for name, c := range map[string]struct {
		secret   string
		descends func(int) (bool, error)
		want     error
	}{
		"a client":         {secret, nobody, nil},
		"no secret":        {"", nobody, statesocket.ErrSecret},
		"another secret":   {secret[1:] + "A", nobody, statesocket.ErrSecret},
		"an agent's child": {secret, inRun, statesocket.ErrNested},
		"an unknown one":   {secret, func(int) (bool, error) { return false, broken }, broken},
	} {
		conn, err := statesocket.Dial(t.Context(), dir, socketName)
		if err != nil {
			t.Fatal(err)
		}
		if err := admit(t, l, open(t, dir, c.descends), c.secret); !errors.Is(err, c.want) {
			t.Errorf("%s gets %v, not %v", name, err, c.want)
		}
		_ = conn.Close()
	}
	in, out := net.Pipe() // such as the connection to a container
	defer in.Close()
	defer out.Close()
	if err := g.Admit(in, secret); !errors.Is(err, statesocket.ErrNested) {
		t.Errorf("a client elsewhere gets %v", err)
	}
}

// The secret survives a restart. If others could read it, or if it is a link, ductor replaces it.
func TestTheSecretIsOnlyOurs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, statesocket.SecretFile)
	read := func() string {
		t.Helper()
		open(t, dir, nobody)
		secret, err := statesocket.ReadSecret(dir)
		if err != nil || len(secret) < 20 {
			t.Fatalf("the secret is %q, %v", secret, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
			t.Fatalf("its file is %v, %v", info, err)
		}
		return secret
	}
	first := read()
	if again := read(); again != first {
		t.Error("another start changes the secret")
	}
	for name, spoil := range map[string]func() error{
		"readable": func() error { return os.Chmod(path, 0o640) },
		"empty":    func() error { return os.Truncate(path, 0) },
		"a link": func() error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink(path+".old", path))
		},
	} {
		before := read()
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got, err := statesocket.ReadSecret(dir); err == nil {
			t.Errorf("%s: a client uses %q", name, got)
		}
		if read() == before {
			t.Errorf("%s: the secret stays", name)
		}
	}
}

// Another user cannot connect: the kernel prevents it, and if others could write to the socket, the guard refuses.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	dir := t.TempDir()
	l := listen(t, dir)
	g := open(t, dir, nobody)
	secret, err := statesocket.ReadSecret(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	connect := func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env, cmd.ExtraFiles = []string{dialVar + "=/proc/self/fd/3"}, []*os.File{opened}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd
	}
	if out, err := connect().CombinedOutput(); err != nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("the kernel lets another user through: %s, %v", out, err)
	}
	if err := os.Chmod(filepath.Join(dir, socketName), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := connect()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := admit(t, l, g, secret); !errors.Is(err, statesocket.ErrOtherUser) {
		t.Errorf("another user gets %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
