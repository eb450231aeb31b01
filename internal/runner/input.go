package runner

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/runner/fork"
)

// input is an agent's standard input. Only one write to it is in progress at a time.
type input struct {
	end *os.File // the runner's end of the socket; nil if a new runner could not recover it

	mu     sync.Mutex // held during a write
	state  sync.Mutex
	sent   int64 // bytes that reached the agent, including a write in progress
	torn   bool  // a write was interrupted, so the agent has received only a part of it
	closed bool
}

// newInput creates a socket pair for an agent's standard input. The agent inherits two descriptors. The first becomes
// its descriptor 0. The second duplicates the end to which the runner writes. Because of this duplicate, the socket
// stays open if the runner dies.
func newInput() (agents [2]int, in *input, inode uint64, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return agents, nil, 0, fmt.Errorf("create a socket: %w", err)
	}
	ours, err := unix.FcntlInt(uintptr(pair[1]), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		inode, err = inodeOf(ours)
	}
	if err == nil {
		err = unix.SetNonblock(ours, true)
	}
	if err != nil {
		_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		return agents, nil, 0, fmt.Errorf("prepare a socket: %w", err)
	}
	return pair, &input{end: os.NewFile(uintptr(ours), "input")}, inode, nil
}

// recoverInput returns the input of an agent that a previous runner started. The parameter stored is the descriptor of
// the write end of the agent's standard input, or 0 if the runner did not get this descriptor from a Store. In the
// second case, recoverInput copies the write end from the agent, which has it as InputFD. If the kernel forbids this,
// every write to the returned input fails.
func recoverInput(pid int, inode uint64, stored int) *input {
	fd := stored
	if fd == 0 {
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return &input{}
		}
		defer unix.Close(pidfd)
		if fd, err = unix.PidfdGetfd(pidfd, fork.InputFD, 0); err != nil {
			return &input{}
		}
	}
	// The agent may have closed its duplicate, and opened another file with the same descriptor number. The inode of fd
	// then differs.
	if got, err := inodeOf(fd); err != nil || got != inode || unix.SetNonblock(fd, true) != nil {
		_ = unix.Close(fd)
		return &input{}
	}
	return &input{end: os.NewFile(uintptr(fd), "input")}
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// write writes all of p. It calls onBegin before the first byte. Afterwards it calls onDone with the number of written
// bytes.
func (i *input) write(p []byte, onBegin func(), onDone func(n int64)) (position int64, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.Lock()
	switch {
	case i.end == nil:
		err = errors.New("the agent's input is lost")
	case i.torn:
		err = errors.New("an earlier write to the agent was interrupted")
	case i.closed:
		err = os.ErrClosed
	}
	if err == nil {
		i.sent += int64(len(p))
	}
	i.state.Unlock()
	if err != nil {
		return i.position(), err
	}
	onBegin()
	n, err := i.end.Write(p)
	onDone(int64(n))
	i.state.Lock()
	defer i.state.Unlock()
	i.sent -= int64(len(p) - n)
	i.torn = err != nil && n > 0
	return i.sent, err
}

// position returns the number of bytes that reached the agent, including a write in progress.
func (i *input) position() int64 {
	i.state.Lock()
	defer i.state.Unlock()
	return i.sent
}

func (i *input) fillInfo(info *Info) {
	i.state.Lock()
	defer i.state.Unlock()
	info.InputEnd, info.InputTorn, info.InputClosed = i.sent, i.torn, i.closed
}

// closeWrite closes the agent's input, so that the agent reads EOF. It returns false if the input was already closed.
func (i *input) closeWrite() (wasOpen bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.Lock()
	defer i.state.Unlock()
	if i.closed || i.end == nil {
		return false, nil
	}
	raw, err := i.end.SyscallConn()
	if err != nil {
		return false, err
	}
	err = raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	i.closed = err == nil
	return i.closed, err
}

// close closes the socket. This also unblocks a write to a dead agent.
func (i *input) close() {
	if i.end == nil {
		return
	}
	_ = i.end.SetWriteDeadline(time.Unix(1, 0))
	_ = i.end.Close()
}

// writeInput writes to the agent's input. It logs the start and the end of the write. So, if the runner crashes during
// the write, the next runner knows that the write was interrupted.
func (a *agent) writeInput(seq uint64, p []byte) (position int64, err error) {
	return a.in.write(p, func() { a.log.append(lineBegin, int64(seq), int64(len(p))) }, func(n int64) {
		if n == int64(len(p)) {
			a.log.append(lineEnd, n)
		}
	})
}
