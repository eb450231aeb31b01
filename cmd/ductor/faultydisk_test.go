package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faultyDisk intercepts fsync and fdatasync of the programs that it starts, and returns an error while one is set.
// Calls of their children pass.
type faultyDisk struct {
	t     testing.TB
	errno atomic.Int32
	mu    sync.Mutex
	pids  []int
	ends  []func()
}

func newFaultyDisk(t testing.TB) *faultyDisk {
	t.Helper()
	d := &faultyDisk{t: t}
	t.Cleanup(func() {
		for _, end := range d.ends {
			end()
		}
	})
	return d
}

// fail sets the error of the disk, or 0 for none.
func (d *faultyDisk) fail(no syscall.Errno) { d.errno.Store(int32(no)) }

// start starts a program with this disk.
func (d *faultyDisk) start(cmd *exec.Cmd) error {
	type result struct {
		listener int
		err      error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the filter belongs to the thread and its children
		listener, err := filterFlushes()
		if err == nil {
			err = cmd.Start()
		}
		started <- result{listener, err}
	}()
	r := <-started
	if r.err != nil {
		return r.err
	}
	d.mu.Lock()
	d.pids = append(d.pids, cmd.Process.Pid)
	d.mu.Unlock()
	return d.serve(r.listener)
}

// filterFlushes makes the kernel report flushes of this thread and of its future children.
func filterFlushes() (listener int, err error) {
	const notify, allow = unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_ALLOW
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 2, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FSYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: allow},
		{Code: unix.BPF_RET | unix.BPF_K, K: notify},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no new privileges: %w", err)
	}
	fd, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&prog)))
	if no != 0 {
		return 0, fmt.Errorf("seccomp: %w", no)
	}
	return int(fd), nil
}

// serve answers the kernel's reports until the test ends.
func (d *faultyDisk) serve(listener int) error {
	wake, stop, err := os.Pipe()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d.answer(listener, int(wake.Fd())) {
		}
	}()
	d.ends = append(d.ends, func() {
		stop.Close()
		<-done
		wake.Close()
		unix.Close(listener)
	})
	return nil
}

// The sizes of struct seccomp_notif and struct seccomp_notif_resp, and offsets of the used fields.
const (
	askSize, answerSize = 80, 24
	askPID              = 8
	answerError         = 16
	answerFlags         = 20
)

// answer waits for one call and answers it. It returns false if the test ended or no caller is left.
func (d *faultyDisk) answer(listener, stop int) bool {
	fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, -1); err != nil {
		return errors.Is(err, unix.EINTR)
	}
	if fds[1].Revents != 0 || fds[0].Revents&unix.POLLIN == 0 {
		return false
	}
	var ask [askSize]byte
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV,
		uintptr(unsafe.Pointer(&ask))); no != 0 {
		return no == unix.EINTR || no == unix.ENOENT
	}
	var reply [answerSize]byte
	copy(reply[:8], ask[:8])
	tid := int(binary.NativeEndian.Uint32(ask[askPID:]))
	if no := d.errno.Load(); no != 0 && d.isOwnThread(tid) {
		binary.NativeEndian.PutUint32(reply[answerError:], uint32(-no))
	} else {
		binary.NativeEndian.PutUint32(reply[answerFlags:], unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE)
	}
	// The caller may have ended.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND,
		uintptr(unsafe.Pointer(&reply)))
	return true
}

// isOwnThread reports whether a thread belongs to a program that start started, and not to one of its children.
func (d *faultyDisk) isOwnThread(tid int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, pid := range d.pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid)); err == nil {
			return true
		}
	}
	return false
}
