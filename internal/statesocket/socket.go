// Package statesocket creates sockets in ductor's state directory, accessible only to this user, and connects to them.
// A Guard rejects clients that an agent has started. The package does not define a protocol.
package statesocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// Listen creates a socket in dir, to which only this user can connect. It replaces the socket of a previous process.
func Listen(dir, name string) (*net.UnixListener, error) {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of the previous process: %w", err)
	}
	path, done, err := short(dir, name)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // do not remove the socket by path, because path is invalid after Listen returns
	if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), l.Close())
	}
	return l, nil
}

// Serve calls serve for each connection, in a separate goroutine, until ctx ends. It then closes l and all connections,
// and waits for the goroutines.
func Serve(ctx context.Context, l *net.UnixListener, serve func(context.Context, *net.UnixConn)) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		<-ctx.Done()
		_ = l.Close()
	})
	for {
		conn, err := l.AcceptUnix()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		all.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			serve(ctx, conn)
		})
	}
}

// Dial connects to a socket in dir.
func Dial(ctx context.Context, dir, name string) (net.Conn, error) {
	path, done, err := short(dir, name)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// short returns a path for a socket in dir that also works if the path of dir is long: a socket address holds only
// about a hundred bytes. The path is valid until the caller calls done.
func short(dir, name string) (path string, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("open the directory of the socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name), func() { _ = d.Close() }, nil
}
