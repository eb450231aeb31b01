package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/cli"
)

// errSSH says that ssh ended, with its last words.
var errSSH = errors.New("ssh ended")

const (
	sshEnd      = time.Second // how long ssh may take to say why it ends
	sshWordsMax = 4 << 10
)

// sshCommand is the program whose standard input and output are an engine elsewhere: what the docker program does
// for such hosts too.
func sshCommand(u *url.URL, config string) ([]string, error) {
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") {
		return nil, errors.New("it names no machine")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("it holds a password: use a key")
	}
	args := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"}
	if config != "" {
		args = append(args, "-F", config)
	}
	if name := u.User.Username(); name != "" {
		args = append(args, "-l", name)
	}
	if port := u.Port(); port != "" {
		args = append(args, "-p", port)
	}
	args = append(args, "--", u.Hostname(), "docker")
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		args = append(args, "--host", "unix://"+path)
	}
	return append(args, "system", "dial-stdio"), nil
}

// commandConn is a program as a connection. Its Conn is a socket that is the program's standard input and output.
type commandConn struct {
	net.Conn
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	words bytes.Buffer // the program's standard error
}

// dialCommand starts a program. The connection's Close ends it.
func dialCommand(ctx context.Context, command []string) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "engine"), os.NewFile(uintptr(pair[1]), command[0])
	defer mine.Close()
	defer theirs.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, fmt.Errorf("use a socket: %w", err)
	}
	c := &commandConn{Conn: conn, ended: make(chan struct{})}
	c.cmd = exec.Command(command[0], command[1:]...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs, theirs, sshWords{c}
	c.cmd.Env = cli.ChildEnv(os.Environ(), cli.BaseEnv(), nil)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	c.cmd.WaitDelay = sshEnd
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errSSH, err), conn.Close())
	}
	go func() { // it ends with the program, which Close ends
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// sshWords takes what the program says on standard error.
type sshWords struct{ c *commandConn }

func (w sshWords) Write(p []byte) (int, error) {
	w.c.note(p)
	return len(p), nil
}

func (c *commandConn) note(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.words.Len() < sshWordsMax {
		c.words.Write(p)
	}
}

// Read gives the program's last words where it would give the end.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = c.why(err)
	}
	return n, err
}

func (c *commandConn) why(err error) error {
	select {
	case <-c.ended:
	case <-time.After(sshEnd):
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if words := strings.TrimSpace(c.words.String()); words != "" {
		return fmt.Errorf("%w: %s", errSSH, lastLine(words))
	}
	return err
}

// Close ends the program, and waits for it a moment.
func (c *commandConn) Close() error {
	err := c.Conn.Close()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-c.ended:
	case <-time.After(sshEnd):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	return err
}
