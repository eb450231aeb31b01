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

// errSSH means that the ssh program has exited. The text of a wrapping error contains its last output.
var errSSH = errors.New("ssh ended")

const (
	sshExitWait = time.Second // how long ssh may take to exit
	maxSSHWords = 4 << 10
)

// sshCommand returns a command whose standard input and output connect to a remote engine. The docker program uses the
// same command.
func sshCommand(u *url.URL, config string) ([]string, error) {
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") {
		return nil, errors.New("it names no machine")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("it holds a password: use a key")
	}
	args := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15",
		"-o", "ServerAliveCountMax=3"}
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

// commandConn is a connection through a program such as ssh. Data that is written to Conn becomes the program's
// standard input. Reads from Conn return the program's standard output.
type commandConn struct {
	net.Conn
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer // standard error of the program
}

// dialCommand starts a program and returns a connection through it. Closing the connection ends the program.
func dialCommand(ctx context.Context, command []string) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("create a socket: %w", err)
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
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs, theirs, stderrWriter{c}
	c.cmd.Env = cli.ChildEnv(os.Environ(), cli.BaseEnv(), nil)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	c.cmd.WaitDelay = sshExitWait
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errSSH, err), conn.Close())
	}
	go func() { // ends when the program exits, at the latest after Close
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

type stderrWriter struct{ c *commandConn }

func (w stderrWriter) Write(p []byte) (int, error) {
	w.c.appendStderr(p)
	return len(p), nil
}

func (c *commandConn) appendStderr(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stderr.Len() < maxSSHWords {
		c.stderr.Write(p)
	}
}

// Read reads from the program. If the program has exited, the error contains its last output on standard error.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = c.exitError(err)
	}
	return n, err
}

func (c *commandConn) exitError(err error) error {
	select {
	case <-c.ended:
	case <-time.After(sshExitWait):
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if words := strings.TrimSpace(c.stderr.String()); words != "" {
		return fmt.Errorf("%w: %s", errSSH, lastLine(words))
	}
	return err
}

// Close ends the program and waits until it has exited.
func (c *commandConn) Close() error {
	err := c.Conn.Close()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails if the program has exited
	select {
	case <-c.ended:
	case <-time.After(sshExitWait):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	return err
}
