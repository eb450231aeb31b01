package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Message is what a CLI says, on one line.
type Message struct {
	Agent string          `json:"agent"`
	Dir   string          `json:"dir"` // the working directory of the hook
	Event json.RawMessage `json:"event"`
}

// Answer is a line of ductor's. The first says whether ductor will answer at all; where it will, one with the answer follows.
type Answer struct {
	Wait   bool            `json:"wait,omitempty"`
	Output json.RawMessage `json:"output,omitempty"` // for the CLI; empty: it asks at its terminal
}

// MostBytes limits a message.
const MostBytes = 4 << 20

const socketFile = "terminal.sock" // in the state directory

// Listen makes the socket in the state directory, for this user alone. It takes the place of one that a process left.
func Listen(state string) (*net.UnixListener, error) {
	if err := os.Remove(filepath.Join(state, socketFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of the previous process: %w", err)
	}
	path, done, err := short(state)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for terminals: %w", err)
	}
	l.SetUnlinkOnClose(false) // the path is good for now only
	if err := os.Chmod(filepath.Join(state, socketFile), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), l.Close())
	}
	return l, nil
}

func dial(state string) (net.Conn, error) {
	path, done, err := short(state)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.Dial("unix", path)
}

// short names the socket by an open directory: the name of a socket has room for about a hundred bytes.
func short(dir string) (path string, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("open the directory of the socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketFile), func() { _ = d.Close() }, nil
}

// CheckPeer is an error unless a process of this user is at the other end.
func CheckPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("look at who connects: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("user %d may not tell of terminals", cred.Uid)
	}
	return nil
}
