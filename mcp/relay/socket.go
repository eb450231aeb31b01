package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"

	"ductor/internal/statesocket"
)

// socketFile is the name of ductor's socket for MCP clients, in its state directory.
const socketFile = "mcp.sock"

// Listen creates the socket in dir. Only the user of this process can connect to it. Listen replaces a socket that
// another process has left behind.
func Listen(dir string) (*net.UnixListener, error) {
	l, err := statesocket.Listen(dir, socketFile)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	return l, nil
}

// EndRevoked asks the running ductor to end all connections whose tokens were revoked, and waits until they have ended.
// It returns nil if ductor is not running.
func EndRevoked(ctx context.Context, dir string) error {
	conn, err := Dial(ctx, dir)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	raw, err := json.Marshal(Hello{Recheck: true})
	if err == nil {
		_, err = conn.Write(append(raw, '\n'))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	if err != nil {
		return fmt.Errorf("end the connections of revoked tokens: %w", err)
	}
	return nil
}

// Dial connects to the socket in dir.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	conn, err := statesocket.Dial(ctx, dir, socketFile)
	if err != nil {
		return nil, fmt.Errorf("connect to ductor: %w", err)
	}
	return conn, nil
}
