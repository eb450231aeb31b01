package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// directory is the directory of the runs. The process that holds its lock is the runner, and listens on its socket.
type directory struct {
	path     string
	lock     *os.File
	listener *net.UnixListener
}

func (d *directory) of(id string) string { return filepath.Join(d.path, id) }

// acquire makes this process the runner of the directory. It returns false if another process already is the runner.
// After an upgrade, lock and listen are descriptors that this process already has. Otherwise they are 0.
func (d *directory) acquire(lock, listen int) (ok bool, err error) {
	if lock > 0 {
		return true, d.inherit(lock, listen)
	}
	return d.claim()
}

// claim locks the directory and creates the socket. It returns false if another process already is the runner.
func (d *directory) claim() (ok bool, err error) {
	d.lock, err = os.OpenFile(filepath.Join(d.path, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, err
	}
	if err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return false, err
	}
	if err := os.Remove(filepath.Join(d.path, socketFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	path, done, err := shortPath(d.path)
	if err != nil {
		return false, err
	}
	defer done()
	if d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return false, fmt.Errorf("create the socket: %w", err)
	}
	d.listener.SetUnlinkOnClose(false) // do not remove the socket by this path, which is only valid in this function
	return true, os.Chmod(filepath.Join(d.path, socketFile), 0o600)
}

// handOver prepares the lock and the listener for an upgrade of this process to another program. It returns the
// arguments for that program, which then calls inherit. The caller must call done if the upgrade fails.
func (d *directory) handOver() (args []string, done func(), err error) {
	f, err := d.listener.File()
	if err != nil {
		return nil, nil, fmt.Errorf("pass on the socket: %w", err)
	}
	lock, lockErr := passOn("lock", int(d.lock.Fd()))
	listen, listenErr := passOn("listen", int(f.Fd()))
	if err := errors.Join(lockErr, listenErr); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return []string{"root=" + d.path, lock, listen}, func() { _ = f.Close() }, nil
}

// inherit continues with the descriptors of the lock and the listener that this process had before an upgrade.
func (d *directory) inherit(lock, listen int) error {
	unix.CloseOnExec(lock)
	unix.CloseOnExec(listen)
	d.lock = os.NewFile(uintptr(lock), lockFile)
	f := os.NewFile(uintptr(listen), socketFile)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("adopt the socket: %w", err)
	}
	d.listener = l.(*net.UnixListener)
	return nil
}

// passOn makes a descriptor stay open when this process executes its next program. It returns an argument for that
// program, such as "lock=5".
func passOn(name string, fd int) (arg string, err error) {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return "", fmt.Errorf("pass on a file: %w", err)
	}
	return fmt.Sprintf("%s=%d", name, fd), nil
}

// hasSocket reports whether the socket's file exists. Without it, no client can connect.
func (d *directory) hasSocket() bool {
	_, err := os.Lstat(filepath.Join(d.path, socketFile))
	return err == nil
}

// shortPath returns a path of the socket in dir that fits into the 107 bytes of a socket address. The path uses an open
// descriptor of dir. The caller must call done to close the descriptor.
func shortPath(dir string) (path string, done func(), err error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + socketFile, func() { _ = unix.Close(fd) }, nil
}
