package relay

import (
	"context"
	"fmt"
	"net"

	"ductor/internal/statesocket"
)

// socketFile is the name of ductor's socket in its state directory.
const socketFile = "mcp.sock"

// Listen creates the socket in dir, accessible only to this user. It replaces a socket that another process left
// behind.
func Listen(dir string) (*net.UnixListener, error) {
	l, err := statesocket.Listen(dir, socketFile)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	return l, nil
}

// Dial connects to the socket in dir.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	conn, err := statesocket.Dial(ctx, dir, socketFile)
	if err != nil {
		return nil, fmt.Errorf("connect to ductor: %w", err)
	}
	return conn, nil
}
