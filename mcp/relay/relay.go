// Package relay carries the messages of an agent's MCP client to ductor, and makes a new connection when ductor was restarted. It
// links nothing of the protocol, so that the program inside containers stays small.
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

// TokenVar has the token by which ductor knows the agent that calls a tool. DirVar names the directory of ductor's socket.
//
// Verb is the first argument of a program that an agent starts for a Relay.
const (
	Verb     = "mcp"
	TokenVar = "DUCTOR_MCP_TOKEN"
	DirVar   = "DUCTOR_MCP_DIR"
)

// Hello is the first line of a connection. A connection after the first has the parameters of the client's initialize request, which
// is not made again.
type Hello struct {
	Token      string          `json:"token"`
	Initialize json.RawMessage `json:"initialize,omitempty"`
}

// Refusal is the only line that ductor sends on a connection that it does not serve.
type Refusal struct {
	Refused string `json:"refused"`
}

const (
	// MaxLine bounds a message, so that one that is far too long for ductor is still answered.
	MaxLine = 8 << 20
	// dialFor is how long ductor may be away, and dialPause how often it is looked for.
	dialFor   = 20 * time.Second
	dialPause = 100 * time.Millisecond

	codeFailed = -32000 // of JSON-RPC: an error of the server's own
)

// Relay is the way from one MCP client to ductor.
type Relay struct {
	Token string
	Dial  func(ctx context.Context) (net.Conn, error)

	out struct {
		sync.Mutex
		io.Writer
	}
	mu         sync.Mutex
	conn       net.Conn                   // nil while there is none
	initialize json.RawMessage            // the parameters of the client, once it has sent them
	pending    map[string]json.RawMessage // ids of requests that are not answered
	refused    string
	readers    sync.WaitGroup
}

// envelope is what the relay reads of a message.
type envelope struct {
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Refused string          `json:"refused"`
}

// Run carries messages between a client and ductor until the client's input ends.
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

// send hands a message to ductor. The error is one of the client.
func (r *Relay) send(ctx context.Context, line []byte) error {
	var m envelope
	_ = json.Unmarshal(line, &m) // ductor says what is wrong with it
	for {
		conn, err := r.connect(ctx)
		if err != nil && m.Method != "" && len(m.ID) > 0 {
			return r.fail(m.ID, fmt.Sprintf("ductor cannot be reached: %v", err))
		}
		if err != nil {
			return nil
		}
		if !r.expect(conn, m) {
			continue // it has just ended
		}
		if _, err := conn.Write(append(line, '\n')); err != nil {
			_ = conn.Close() // its reader answers what is pending
		}
		return nil
	}
}

// expect notes what comes of a message on a connection; false if nothing comes on it any more.
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

// connect gives the connection, or makes one.
func (r *Relay) connect(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	conn, hello, refused := r.conn, Hello{r.Token, r.initialize}, r.refused
	r.mu.Unlock()
	switch {
	case refused != "":
		return nil, errors.New(refused)
	case conn != nil:
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialFor)
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

// receive carries what ductor says, until the connection ends. What was not answered by then is answered with an error: it may have
// had an effect, so it is not sent again.
func (r *Relay) receive(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, MaxLine)
	why := "ductor was restarted before it answered; look whether the call had an effect before you make it again"
	for lines.Scan() {
		var m envelope
		_ = json.Unmarshal(lines.Bytes(), &m) // the client says what is wrong with it
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
			break // the client has gone
		}
	}
	_ = conn.Close()
	r.mu.Lock()
	ids := r.pending
	r.conn, r.pending = nil, map[string]json.RawMessage{}
	r.mu.Unlock()
	for _, id := range ids {
		_ = r.fail(id, why) // a client that has gone needs no answer
	}
}

func (r *Relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
}

// fail answers a request with an error.
func (r *Relay) fail(id json.RawMessage, why string) error {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": codeFailed, "message": why}})
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
