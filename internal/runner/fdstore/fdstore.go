// Package fdstore stores file descriptors of a process, so that the next process can continue with them. In a
// container, the first process stores descriptors of the runner: the ends of sockets to which the runner writes the
// agents' input. The next runner could not get these descriptors from the agents, because Docker forbids pidfd_getfd.
package fdstore

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Store keeps descriptors for a Client. The zero value is empty. Safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	files map[string]int // descriptors by name
}

// Operations: the first byte of a message to a Store. The name of a file follows.
const (
	opPut    = 'k' // store the attached descriptor
	opDelete = 'd'
	opList   = 'l' // send each descriptor in its own message, then listEnd
	listEnd  = "."
)

const maxName = 64

// listWait is how long All waits for a message, in seconds.
const listWait = 5

// Serve handles the messages of a Client. It closes the socket when the client has exited.
func (s *Store) Serve(socket int) {
	defer unix.Close(socket)
	for {
		text, fd, err := receive(socket)
		if err != nil || text == "" {
			return
		}
		s.handle(socket, text[0], text[1:], fd)
	}
}

func (s *Store) handle(socket int, op byte, name string, fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, known := s.files[name]; known && op != opList {
		_ = unix.Close(old)
		delete(s.files, name)
	}
	switch op {
	case opPut:
		if s.files == nil {
			s.files = map[string]int{}
		}
		s.files[name] = fd
	case opList:
		for name, fd := range s.files {
			// Fails only if the client has exited.
			_ = unix.Sendmsg(socket, []byte(name), unix.UnixRights(fd), nil, 0)
		}
		_ = unix.Sendmsg(socket, []byte(listEnd), nil, nil, 0)
	}
}

// receive receives a message and the message's descriptor. The descriptor is -1 if the message has none.
func receive(socket int) (text string, fd int, err error) {
	buf, side := make([]byte, 1+maxName), make([]byte, unix.CmsgSpace(4))
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

// Client is the descriptor of a connection to a Store. The methods of Client(0) do nothing.
type Client int

// Put stores a file under a name. It replaces a file with the same name.
func (c Client) Put(name string, f *os.File) error {
	if c == 0 {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Control(func(fd uintptr) {
		sendErr = unix.Sendmsg(int(c), append([]byte{opPut}, name...), unix.UnixRights(int(fd)), nil, 0)
	})
	if err = errors.Join(err, sendErr); err != nil {
		return fmt.Errorf("store a descriptor: %w", err)
	}
	return nil
}

// Delete deletes a file.
func (c Client) Delete(name string) {
	if c != 0 {
		// If this fails, the Store contains a descriptor that no process uses.
		_ = unix.Sendmsg(int(c), append([]byte{opDelete}, name...), nil, nil, 0)
	}
}

// All returns all stored files as descriptors.
func (c Client) All() (map[string]int, error) {
	if c == 0 {
		return nil, nil
	}
	all := map[string]int{}
	err := unix.SetsockoptTimeval(int(c), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: listWait})
	if err == nil {
		err = unix.Sendmsg(int(c), []byte{opList}, nil, nil, 0)
	}
	for err == nil {
		var name string
		var fd int
		if name, fd, err = receive(int(c)); name == listEnd || name == "" {
			break
		}
		all[name] = fd
	}
	return all, err
}
