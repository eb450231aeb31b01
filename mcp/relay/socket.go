package relay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// socketFile is ductor's socket in its state directory.
const socketFile = "mcp.sock"

// Listen makes the socket in dir, which only this user can connect to. It takes the place of one that a process left.
func Listen(dir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dir, socketFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of the previous process: %w", err)
	}
	path, done, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the path is good for now only
	if err := os.Chmod(filepath.Join(dir, socketFile), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), l.Close())
	}
	return l, nil
}

// Dial connects to the socket in dir.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to ductor: %w", err)
	}
	return conn, nil
}

// short names the socket by an open directory: the name of a socket has room for about a hundred bytes.
func short(dir string) (path string, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("open the directory of the socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketFile), func() { _ = d.Close() }, nil
}
