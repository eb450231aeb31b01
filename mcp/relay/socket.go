package relay

import (
	"context"
	"fmt"
	"net"

	"ductor/internal/statesocket"
)

// socketFile is ductor's socket in its state directory.
const socketFile = "mcp.sock"

// Listen makes the socket in dir, which only this user can connect to. It takes the place of one that a process left.
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
