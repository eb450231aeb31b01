// Package statesocket makes sockets in ductor's state directory, for this user alone, and connects to them.
//
// It does NOT know what is said over one.
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

// Listen makes the socket name in dir, which only this user can connect to. It takes the place of one that a process
// left.
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
	l.SetUnlinkOnClose(false) // the path is good for now only
	if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), l.Close())
	}
	return l, nil
}

// Serve calls serve for each connection, in a goroutine of its own, until ctx ends. It closes l and the connections,
// and returns when both are done. A client that connects later fails at once, instead of waiting for an answer that
// cannot come.
func Serve(ctx context.Context, l *net.UnixListener, serve func(context.Context, *net.UnixConn)) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		<-ctx.Done()
		_ = l.Close() // it is closed once
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

// Dial connects to the socket name in dir.
func Dial(ctx context.Context, dir, name string) (net.Conn, error) {
	path, done, err := short(dir, name)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// short names the socket by an open directory: the name of a socket has room for about a hundred bytes.
func short(dir, name string) (path string, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("open the directory of the socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name), func() { _ = d.Close() }, nil
}
