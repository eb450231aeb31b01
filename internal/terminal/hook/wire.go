package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"ductor/internal/statesocket"
)

// Message contains an event of a CLI. A hook sends it to ductor as one line.
type Message struct {
	Agent string          `json:"agent"` // name of the agent, such as "claude"
	Dir   string          `json:"dir"`   // the working directory of the hook
	Event json.RawMessage `json:"event"`
	// ID identifies the message. If a hook repeats the message after a restart of ductor, it uses the same ID, and sets
	// Since to the time of its first attempt.
	ID    string    `json:"id,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Answer is a reply from ductor to a hook. If Wait is true, ductor will send a second Answer on the next line, and the
// hook must wait for the second Answer.
type Answer struct {
	Wait   bool            `json:"wait,omitempty"`
	Output json.RawMessage `json:"output,omitempty"` // output for the CLI; if empty, the CLI asks in its terminal
}

// MostBytes is the maximum size of a message.
const MostBytes = 4 << 20

const socketFile = "terminal.sock" // name of the socket in the state directory

// Listen creates the socket for hooks in the state directory. Only this user can access the socket. Listen replaces the
// socket of a previous process.
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
