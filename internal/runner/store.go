package runner

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// keptInputs are the runners' ends of agents' inputs, which the first process of a container keeps: the next runner
// cannot take them from the agents there, as Docker lets no program use pidfd_getfd. Safe for concurrent use.
type keptInputs struct {
	mu    sync.Mutex
	files map[string]int // by run
}

// The first byte of a message to the kept inputs; the name of a run follows.
const (
	storeKeep = 'k' // the descriptor beside it
	storeDrop = 'd'
	storeList = 'l' // tell all, a message each, and an end
	storeEnd  = "."
)

// storeWait is how many seconds the kept inputs may take to be told.
const storeWait = 5

// serve does what a runner wants over a socket, which it closes when the runner is dead.
func (k *keptInputs) serve(socket int) {
	defer unix.Close(socket)
	for {
		text, fd, err := receiveFD(socket)
		if err != nil || text == "" {
			return
		}
		k.mu.Lock()
		run := text[1:]
		if old, known := k.files[run]; known && text[0] != storeList {
			_ = unix.Close(old)
			delete(k.files, run)
		}
		switch text[0] {
		case storeKeep:
			k.files[run] = fd
		case storeList:
			for run, fd := range k.files {
				// a runner that is dead reads nothing
				_ = unix.Sendmsg(socket, []byte(run), unix.UnixRights(fd), nil, 0)
			}
			_ = unix.Sendmsg(socket, []byte(storeEnd), nil, nil, 0)
		}
		k.mu.Unlock()
	}
}

// receiveFD receives a message and the descriptor beside it; -1 for none.
func receiveFD(socket int) (text string, fd int, err error) {
	buf, side := make([]byte, 1+maxID), make([]byte, unix.CmsgSpace(4))
	var n, m int
	for {
		n, m, _, _, err = unix.Recvmsg(socket, buf, side, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || m == 0 {
		return string(buf[:max(n, 0)]), -1, err
	}
	messages, err := unix.ParseSocketControlMessage(side[:m])
	if err != nil || len(messages) != 1 {
		return "", -1, errors.Join(errors.New("a message has no descriptor"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return "", -1, errors.Join(errors.New("a message has no descriptor"), err)
	}
	return string(buf[:n]), fds[0], nil
}

func storeArg(fd int) string { return "store=" + strconv.Itoa(fd) }

// store is a runner's connection to the kept inputs; 0 where there are none.
type store int

// fds is the connection, if there is one.
func (s store) fds() []int {
	if s == 0 {
		return nil
	}
	return []int{int(s)}
}

// keep has an input kept.
func (s store) keep(run string, in *input) error {
	if s == 0 {
		return nil
	}
	raw, err := in.end.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Control(func(fd uintptr) {
		sendErr = unix.Sendmsg(int(s), append([]byte{storeKeep}, run...), unix.UnixRights(int(fd)), nil, 0)
	})
	if err = errors.Join(err, sendErr); err != nil {
		return fmt.Errorf("keep the agent's input: %w", err)
	}
	return nil
}

// drop has an input forgotten.
func (s store) drop(run string) {
	if s != 0 {
		_ = unix.Sendmsg(int(s), append([]byte{storeDrop}, run...), nil, nil, 0) // else it is kept for nothing
	}
}

// all takes the inputs that are kept.
func (s store) all() (map[string]int, error) {
	if s == 0 {
		return nil, nil
	}
	all := map[string]int{}
	err := unix.SetsockoptTimeval(int(s), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: storeWait})
	if err == nil {
		err = unix.Sendmsg(int(s), []byte{storeList}, nil, nil, 0)
	}
	for err == nil {
		var run string
		var fd int
		if run, fd, err = receiveFD(int(s)); run == storeEnd || run == "" {
			break
		}
		all[run] = fd
	}
	return all, err
}
