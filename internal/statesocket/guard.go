package statesocket

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ductor/internal/rooted"
)

// SecretFile is the file in a state directory with the secret that clients must send.
const SecretFile = "socket.secret"

// Reasons why Guard.Admit refuses a client.
var (
	ErrOtherUser = errors.New("this ductor belongs to another user of this machine")
	ErrSecret    = errors.New("the secret differs from that in the file " + SecretFile + " of ductor's state directory")
	ErrNested    = errors.New("an agent of ductor started this program; only programs outside of agents may connect")
)

// Guard decides which clients may use a socket. It admits a process of this user that knows the secret of the state
// directory, unless an agent started the process.
type Guard struct {
	secret         string
	startedByAgent func(pid int) (bool, error)
}

// OpenGuard returns a Guard for the sockets in dir. It creates the secret if the secret is missing or not private. The
// function startedByAgent reports whether an agent started the process with the given PID; see host.Descends.
func OpenGuard(dir string, startedByAgent func(pid int) (bool, error)) (Guard, error) {
	secret, err := ReadSecret(dir)
	if err != nil {
		secret = rand.Text()
		if err := rooted.ReplaceFile(filepath.Join(dir, SecretFile), []byte(secret+"\n"), nil); err != nil {
			return Guard{}, fmt.Errorf("store the secret of the sockets: %w", err)
		}
	}
	return Guard{secret, startedByAgent}, nil
}

// ReadSecret returns the secret in dir, which a client must send for Guard.Admit.
func ReadSecret(dir string) (string, error) {
	f, err := os.OpenFile(filepath.Join(dir, SecretFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("start ductor first, which creates the secret of its sockets: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("read the secret of ductor's sockets: %w", ErrOtherUser)
	case err != nil:
		return "", fmt.Errorf("read the secret of ductor's sockets: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read the secret of ductor's sockets: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || int(owner) != os.Geteuid() {
		return "", fmt.Errorf("%s is not a file that only you can read; restart ductor, which replaces it", f.Name())
	}
	raw, err := io.ReadAll(io.LimitReader(f, 1<<10))
	secret := strings.TrimSpace(string(raw))
	if err == nil && len(secret) < len(rand.Text()) {
		err = fmt.Errorf("%s has no secret; restart ductor, which replaces it", f.Name())
	}
	return secret, err
}

// Admit returns an error if the client at the other end of conn is not allowed to connect. The parameter secret is the
// text that the client has sent.
func (g Guard) Admit(conn net.Conn, secret string) error {
	if err := CheckOutside(conn, g.startedByAgent); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(secret), []byte(g.secret)) != 1 {
		return ErrSecret
	}
	return nil
}

// CheckOutside returns an error if the client at the other end of conn belongs to another user, or if an agent started
// the client. The parameter startedByAgent is the same as for OpenGuard.
func CheckOutside(conn net.Conn, startedByAgent func(pid int) (bool, error)) error {
	c, ok := conn.(*net.UnixConn)
	// Only agents in a container or on another machine connect without a Unix socket.
	if !ok {
		return ErrNested
	}
	pid, err := Peer(c)
	if err != nil {
		return err
	}
	nested, err := startedByAgent(pid)
	if err != nil {
		return fmt.Errorf("find out who connects: %w", err)
	}
	if nested {
		return ErrNested
	}
	return nil
}

// Peer returns the PID of the client. It returns ErrOtherUser if the client belongs to another user.
func Peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("get the peer of a connection: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("user %d: %w", cred.Uid, ErrOtherUser)
	}
	return int(cred.Pid), nil
}
