package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the child pid has exited; its status is not taken yet. It waits as one waits for
// a connection, so that agents which live for hours do not cost a thread each.
func awaitExit(pid int) {
	if fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer f.Close()
		if awaitReadable(f, exited) == nil {
			return
		}
	}
	// An old kernel, or one that cannot wait for this.
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// exited says whether the process of a pidfd has.
func exited(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n > 0 && err == nil
}

// awaitReadable waits until ready says so of f's descriptor, asked at first and whenever f can be read.
func awaitReadable(f *os.File, ready func(fd int) bool) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool { return ready(int(fd)) })
}
