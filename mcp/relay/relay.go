// Package relay forwards messages between an MCP client, usually an agent, and the running ductor. It reconnects after
// ductor restarts. It does not use an MCP library, so that the program in containers stays small.
//
// The package also stores the tokens of outside clients: MCP clients that do not belong to a turn of an agent, such as
// an editor.
package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Verb is the first argument of the program that an agent starts to reach ductor. TokenVar is the environment variable
// with the token that identifies the agent. DirVar is the environment variable with the directory of ductor's socket.
const (
	Verb     = "mcp"
	TokenVar = "DUCTOR_MCP_TOKEN"
	DirVar   = "DUCTOR_MCP_DIR"
)

// Hello is the first line that a relay sends. A client sends its initialize request only once, so a Hello after a
// reconnect contains the parameters of that request.
type Hello struct {
	Token      string          `json:"token"`
	Secret     string          `json:"secret,omitempty"` // only for outside clients; see statesocket.Guard
	Initialize json.RawMessage `json:"initialize,omitempty"`
	// Recheck asks ductor to end all connections whose tokens were revoked. This connection needs no Token. It sends no
	// further lines, and ductor closes it at the end.
	Recheck bool `json:"recheck,omitempty"`
}

// Refusal is the only line that ductor sends if it rejects a connection.
type Refusal struct {
	Refused string `json:"refused"`
}

const (
	// MaxLine limits the length of a message. It is higher than ductor's own limits, so that ductor can respond if a
	// message is too long.
	MaxLine = 8 << 20
	// dialTimeout is how long the relay tries to connect to ductor. dialPause is the pause between two attempts.
	dialTimeout = 20 * time.Second
	dialPause   = 100 * time.Millisecond

	codeFailed = -32000 // JSON-RPC code of a server error
)

// Relay connects one MCP client to ductor.
type Relay struct {
	Token  string
	Secret string // Hello.Secret; empty unless the client is an outside client
	Dial   func(ctx context.Context) (net.Conn, error)

	out struct {
		sync.Mutex
		io.Writer
	}
	mu         sync.Mutex
	conn       net.Conn                   // nil while not connected
	initialize json.RawMessage            // parameters of the client's initialize request
	pending    map[string]json.RawMessage // IDs of requests without a response
	refused    string
	readers    sync.WaitGroup
}

// envelope contains the fields of messages that the relay itself needs.
type envelope struct {
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Refused string          `json:"refused"`
}

// Run forwards messages between a client and ductor until the client's input ends.
func (r *Relay) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	r.out.Writer, r.pending = out, map[string]json.RawMessage{}
	defer r.readers.Wait()
	defer r.close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, MaxLine)
	for lines.Scan() {
		if err := r.send(ctx, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read from the client: %w", err)
	}
	return nil
}

// send forwards a message to ductor. It returns an error only if the client can no longer be reached.
func (r *Relay) send(ctx context.Context, line []byte) error {
	var m envelope
	_ = json.Unmarshal(line, &m) // forward an invalid message, too: ductor responds with an error
	for {
		conn, err := r.connect(ctx)
		if err != nil && m.Method != "" && len(m.ID) > 0 {
			return r.sendError(m.ID, fmt.Sprintf("ductor cannot be reached: %v", err))
		}
		if err != nil {
			return nil
		}
		if !r.expect(conn, m) {
			continue // reconnect, because the connection has just ended
		}
		if _, err := conn.Write(append(line, '\n')); err != nil {
			_ = conn.Close() // ends the loop in receive, which then responds to pending requests
		}
		return nil
	}
}

// expect records a message that the relay is about to send. It returns false if conn has ended.
func (r *Relay) expect(conn net.Conn, m envelope) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != conn {
		return false
	}
	if m.Method == "initialize" {
		r.initialize = append(json.RawMessage{}, m.Params...)
	}
	if m.Method != "" && len(m.ID) > 0 {
		r.pending[string(m.ID)] = m.ID
	}
	return true
}

func (r *Relay) connect(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	conn, refused := r.conn, r.refused
	hello := Hello{Token: r.Token, Secret: r.Secret, Initialize: r.initialize}
	r.mu.Unlock()
	switch {
	case refused != "":
		return nil, errors.New(refused)
	case conn != nil:
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := r.Dial(ctx)
	for ; err != nil; conn, err = r.Dial(ctx) {
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialPause):
		}
	}
	raw, err := json.Marshal(hello)
	if err == nil {
		_, err = conn.Write(append(raw, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	r.mu.Lock()
	r.conn = conn
	r.mu.Unlock()
	r.readers.Go(func() { r.receive(conn) })
	return conn, nil
}

// receive forwards ductor's messages until the connection ends. It then responds to pending requests with an error. The
// relay does not repeat these requests, because they may have had an effect.
func (r *Relay) receive(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, MaxLine)
	why := "ductor was restarted before it answered; look whether the call had an effect before you make it again"
	for lines.Scan() {
		var m envelope
		_ = json.Unmarshal(lines.Bytes(), &m) // the client handles invalid messages
		if m.Refused != "" {
			why = "ductor refuses the connection: " + m.Refused
			r.mu.Lock()
			r.refused = m.Refused
			r.mu.Unlock()
			break
		}
		if m.Method == "" {
			r.mu.Lock()
			delete(r.pending, string(m.ID))
			r.mu.Unlock()
		}
		if r.write(lines.Bytes()) != nil {
			break // the client has disconnected
		}
	}
	_ = conn.Close()
	r.mu.Lock()
	ids := r.pending
	r.conn, r.pending = nil, map[string]json.RawMessage{}
	r.mu.Unlock()
	for _, id := range ids {
		_ = r.sendError(id, why) // fails if the client has disconnected
	}
}

func (r *Relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
}

func (r *Relay) sendError(id json.RawMessage, why string) error {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": codeFailed, "message": why}})
	if err != nil {
		return fmt.Errorf("answer the client: %w", err)
	}
	return r.write(raw)
}

func (r *Relay) write(line []byte) error {
	r.out.Lock()
	defer r.out.Unlock()
	if _, err := r.out.Write(append(line[:len(line):len(line)], '\n')); err != nil {
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}
