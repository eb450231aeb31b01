package supervisor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// transport is how clients reach a supervisor. There is one now; another one, for containers, would be TCP
// and a token.
type transport interface {
	// listen makes the place where clients of the run in dir connect, in place of one that is there.
	listen(dir string) (net.Listener, error)
	dial(ctx context.Context, dir string) (net.Conn, error)
	// admit refuses a peer that must not talk to us, and tells the process of one that may (0: unknown).
	admit(c net.Conn) (pid int, err error)
}

// unixTransport is a unix socket in the run's directory, for one user.
type unixTransport struct{}

func (unixTransport) listen(dir string) (net.Listener, error) {
	if err := removeIfThere(filepath.Join(dir, socketFile)); err != nil {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	path, done, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name is good only now; the directory goes as a whole
	if err := os.Chmod(filepath.Join(dir, socketFile), 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("make socket private: %w", err)
	}
	return l, nil
}

func (unixTransport) dial(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	d := net.Dialer{Timeout: 5 * time.Second}
	return d.DialContext(ctx, "unix", path)
}

// shortPath names the socket through an open directory: a socket's name ends after 107 bytes.
func shortPath(dir string) (path string, done func(), err error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + socketFile, func() { _ = unix.Close(fd) }, nil
}

func (unixTransport) admit(c net.Conn) (int, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("the peer of a %T is unknown", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("look at peer: %w", err)
	}
	var cred *unix.Ucred
	if ctlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctlErr != nil {
		err = ctlErr
	}
	if err != nil {
		return 0, fmt.Errorf("look at peer: %w", err)
	}
	if uid := uint32(os.Geteuid()); cred.Uid != uid {
		return 0, fmt.Errorf("user %d may not talk to a run of user %d", cred.Uid, uid)
	}
	return int(cred.Pid), nil
}
