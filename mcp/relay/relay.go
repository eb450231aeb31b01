// Package relay forwards messages between an agent's MCP client and ductor. It reconnects after ductor restarts. It
// does not use an MCP library, so that the program inside containers stays small. The package also stores the tokens of
// clients outside of turns.
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

// TokenVar is the environment variable with the token that identifies the agent. DirVar is the environment variable
// with the directory of ductor's socket. Verb is the first argument of the program that an agent starts.
const (
	Verb     = "mcp"
	TokenVar = "DUCTOR_MCP_TOKEN"
	DirVar   = "DUCTOR_MCP_DIR"
)

// Hello is the first line of a connection. After a reconnect, it includes the parameters of the client's initialize
// request, because the client sends that request only once.
type Hello struct {
	Token      string          `json:"token"`
	Secret     string          `json:"secret,omitempty"` // of a client outside of turns; see statesocket.Guard
	Initialize json.RawMessage `json:"initialize,omitempty"`
	// Recheck asks ductor to end the connections of revoked tokens and then this connection. A Hello with Recheck is
	// the only line of its connection.
	Recheck bool `json:"recheck,omitempty"`
}

// Refusal is the only line that ductor sends on a connection that it rejects.
type Refusal struct {
	Refused string `json:"refused"`
}

const (
	// MaxLine limits a message. It exceeds ductor's own limits, so that ductor can answer messages that are too long.
	MaxLine = 8 << 20
	// dialTimeout is how long the relay waits for ductor, and dialPause the pause between attempts.
	dialTimeout = 20 * time.Second
	dialPause   = 100 * time.Millisecond

	codeFailed = -32000 // JSON-RPC code of a server error
)

// Relay connects one MCP client to ductor.
type Relay struct {
	Token  string
	Secret string // if the client is outside of turns
	Dial   func(ctx context.Context) (net.Conn, error)

	out struct {
		sync.Mutex
		io.Writer
	}
	mu         sync.Mutex
	conn       net.Conn                   // nil if not connected
	initialize json.RawMessage            // parameters of the client's initialize request
	pending    map[string]json.RawMessage // IDs of unanswered requests
	refused    string
	readers    sync.WaitGroup
}

// envelope contains the fields of a message that the relay reads.
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

// send forwards a message to ductor. It returns only errors of the client's connection.
func (r *Relay) send(ctx context.Context, line []byte) error {
	var m envelope
	_ = json.Unmarshal(line, &m) // ductor answers invalid messages
	for {
		conn, err := r.connect(ctx)
		if err != nil && m.Method != "" && len(m.ID) > 0 {
			return r.sendError(m.ID, fmt.Sprintf("ductor cannot be reached: %v", err))
		}
		if err != nil {
			return nil
		}
		if !r.expect(conn, m) {
			continue // the connection has just ended
		}
		if _, err := conn.Write(append(line, '\n')); err != nil {
			_ = conn.Close() // receive then answers pending requests
		}
		return nil
	}
}

// expect records a message before it is sent. It returns false if the connection has ended.
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

// receive forwards ductor's messages until the connection ends. Then it answers pending requests with an error. It does
// not send the requests again, since they may have had an effect.
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
			break // the client is gone
		}
	}
	_ = conn.Close()
	r.mu.Lock()
	ids := r.pending
	r.conn, r.pending = nil, map[string]json.RawMessage{}
	r.mu.Unlock()
	for _, id := range ids {
		_ = r.sendError(id, why) // fails if the client is gone
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
