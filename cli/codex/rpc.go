package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"ductor/cli"
)

// message is one line of the app server's protocol: JSON-RPC without its version. It is a request if it has
// ID and Method, a notification if it has a Method alone, else a reply.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
	// EmittedAt is when a notification was made, in milliseconds since 1970; 0 where that is not said.
	EmittedAt int64 `json:"emittedAtMs,omitempty"`
}

// rpcError is why a request was refused.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

const (
	methodNotFound = -32601
	maxPending     = 1 << 10 // questions that may wait for an answer at a time
)

var errTooManyCalls = errors.New("too many questions wait for the app server's answer")

// conn matches the lines that one program prints with what was asked of it. It reads and writes nothing by
// itself: take is given the lines, write takes them. Answers may come in any order, twice or never. Safe for
// concurrent use.
type conn struct {
	write func(line []byte) error
	// told gets notifications, asked gets requests, in order. A request of which asked knows nothing is
	// answered as such.
	told  func(message)
	asked func(message) (known bool)

	mu      sync.Mutex
	prefix  string // of the names of questions; no other connection to the same program has it
	next    int
	pending map[string]func(message)
	ended   error // why no answer will come any more
}

// newConn makes a conn whose questions are named after prefix.
func newConn(prefix string, write func([]byte) error, told func(message), asked func(message) bool) *conn {
	return &conn{prefix: prefix, write: write, told: told, asked: asked, pending: map[string]func(message){}}
}

// take deals with one line. It is false for a line that is no message.
func (c *conn) take(line []byte) bool {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return false
	}
	hasID := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case m.Method != "" && hasID:
		if !c.asked(m) {
			_ = c.refuse(m.ID, m.Method) // a program that does not read shows otherwise
		}
	case m.Method != "":
		c.told(m)
	case hasID:
		c.answered(m)
	default:
		return false
	}
	return true
}

// answered hands a reply to who waits for it. One that nobody waits for is passed over: it came twice, too
// late, or answers what an earlier ductor asked.
func (c *conn) answered(m message) {
	var name string
	if json.Unmarshal(m.ID, &name) != nil {
		return
	}
	c.mu.Lock()
	f := c.pending[name]
	delete(c.pending, name)
	c.mu.Unlock()
	if f != nil {
		f(m)
	}
}

// expect has f called with the reply to the question called name.
func (c *conn) expect(name string, f func(message)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return c.ended
	case len(c.pending) >= maxPending:
		return errTooManyCalls
	}
	c.pending[name] = f
	return nil
}

// forget undoes expect.
func (c *conn) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, name)
}

// name makes a new name for a question.
func (c *conn) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.prefix + "." + strconv.Itoa(c.next)
}

// end makes every call that waits fail with err.
func (c *conn) end(err error) {
	c.mu.Lock()
	c.ended = err
	waiting := c.pending
	c.pending = map[string]func(message){}
	c.mu.Unlock()
	for _, f := range waiting {
		f(message{Error: &rpcError{Message: err.Error()}})
	}
}

// call asks and waits for the answer, which is read into result unless that is nil. An answer that refuses
// gives an error with an *rpcError in its chain.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	name := c.name()
	line, err := question(name, method, params)
	if err != nil {
		return err
	}
	came := make(chan message, 1)
	if err := c.expect(name, func(m message) { came <- m }); err != nil {
		return fmt.Errorf("ask for %s: %w", method, err)
	}
	defer c.forget(name)
	if err := c.write(line); err != nil {
		return fmt.Errorf("ask for %s: %w", method, err)
	}
	select {
	case m := <-came:
		return read(m, method, result)
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer to %s: %w", method, context.Cause(ctx))
	}
}

func read(m message, method string, result any) error {
	if m.Error != nil {
		return fmt.Errorf("%s: %w", method, m.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return &cli.Failure{
			Kind: cli.BadOutput, Agent: Agent, Reason: "it answered " + method + " with something else",
			Detail: cli.Shorten(string(m.Result), 1000), Cause: err,
		}
	}
	return nil
}

// tell sends a notification.
func (c *conn) tell(method string) error {
	line, err := encode(message{Method: method})
	if err != nil {
		return err
	}
	return c.write(line)
}

// reply answers a request.
func (c *conn) reply(id json.RawMessage, result any) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	line, err := encode(message{ID: id, Result: raw})
	if err != nil {
		return err
	}
	return c.write(line)
}

func (c *conn) refuse(id json.RawMessage, method string) error {
	line, err := encode(message{ID: id, Error: &rpcError{Code: methodNotFound, Message: "ductor has no method " + cli.Shorten(method, 100)}})
	if err != nil {
		return err
	}
	return c.write(line)
}

// question is the line that asks.
func question(name, method string, params any) ([]byte, error) {
	if params == nil {
		params = struct{}{}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}
	id, err := json.Marshal(name)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}
	return encode(message{ID: id, Method: method, Params: raw})
}

func encode(m message) ([]byte, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return append(line, '\n'), nil
}
