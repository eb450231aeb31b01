package runner

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// input is an agent's standard input. One write follows the other.
type input struct {
	end *os.File // ours of the socket; nil where it cannot be had

	mu     sync.Mutex // held during a write
	state  sync.Mutex
	sent   int64 // bytes that reached the agent, or that a write is busy with
	torn   bool  // a write was cut off
	closed bool
}

// newInput makes a socket: the agent's standard input, and its other end, which the agent keeps for us.
func newInput() (agents [2]int, in *input, inode uint64, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return agents, nil, 0, fmt.Errorf("make a socket: %w", err)
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

// takeInput takes our end of the socket back: the one that was kept, or else the agent's. It has none where the kernel
// does not allow that.
func takeInput(pid int, inode uint64, kept int) *input {
	fd := kept
	if fd == 0 {
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return &input{}
		}
		defer unix.Close(pidfd)
		if fd, err = unix.PidfdGetfd(pidfd, inputFD, 0); err != nil {
			return &input{}
		}
	}
	if got, err := inodeOf(fd); err != nil || got != inode || unix.SetNonblock(fd, true) != nil {
		_ = unix.Close(fd) // the agent closed it, and opened something else
		return &input{}
	}
	return &input{end: os.NewFile(uintptr(fd), "input")}
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// write writes p as a whole. begun is called before the first byte is written, done after the last.
func (i *input) write(p []byte, begun func(), done func(n int64)) (position int64, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.Lock()
	switch {
	case i.end == nil:
		err = errors.New("the agent's input cannot be had any more")
	case i.torn:
		err = errors.New("an earlier write to the agent was cut off")
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
	begun()
	n, err := i.end.Write(p)
	done(int64(n))
	i.state.Lock()
	defer i.state.Unlock()
	i.sent -= int64(len(p) - n)
	i.torn = err != nil && n > 0
	return i.sent, err
}

// position is how many bytes reached the agent; bytes of a write that is busy count.
func (i *input) position() int64 {
	i.state.Lock()
	defer i.state.Unlock()
	return i.sent
}

// tell says in info what reached the agent.
func (i *input) tell(info *Info) {
	i.state.Lock()
	defer i.state.Unlock()
	info.InputEnd, info.InputTorn, info.InputClosed = i.sent, i.torn, i.closed
}

// finish gives the agent end of file. It says whether it had none before.
func (i *input) finish() (first bool, err error) {
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

// release frees a writer that waits for an agent that is dead, and the socket.
func (i *input) release() {
	if i.end == nil {
		return
	}
	_ = i.end.SetWriteDeadline(time.Unix(1, 0))
	_ = i.end.Close()
}

// take writes to the agent's input. The log says before and after what is written.
func (a *agent) take(seq uint64, p []byte) (position int64, err error) {
	return a.in.write(p, func() { a.note(lineBegin, int64(seq), int64(len(p))) }, func(n int64) {
		if n == int64(len(p)) {
			a.note(lineEnd, n)
		}
	})
}
