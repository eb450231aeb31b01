package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"ductor/internal/statesocket"
)

// Message is what a CLI says, on one line.
type Message struct {
	Agent string          `json:"agent"`
	Dir   string          `json:"dir"` // the working directory of the hook
	Event json.RawMessage `json:"event"`
	// ID names the message. It stays the same if a hook asks again because ductor was restarted; Since is when it asked first, then.
	ID    string    `json:"id,omitempty"`
	Since time.Time `json:"since,omitzero"`
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
	l, err := statesocket.Listen(state, socketFile)
	if err != nil {
		return nil, fmt.Errorf("listen for terminals: %w", err)
	}
	return l, nil
}

func dial(state string) (net.Conn, error) {
	return statesocket.Dial(context.Background(), state, socketFile)
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
