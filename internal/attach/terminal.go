package attach

import (
	"context"
	"net"
	"sync"
	"time"

	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// Limits for a terminal that does not read its messages.
const (
	mostQueued = 16 << 20 // bytes in the queue
	writeWait  = 20 * time.Second
)

// terminal is the connection to one client. A separate goroutine writes to the client, so that turns do not wait for
// the client.
type terminal struct {
	conn net.Conn
	user orchestrator.PersonID // the user on whose behalf the terminal acts

	in *orchestrator.ConversationID // conversation that the terminal shows, or nil; Hub.mu guards it

	mu      sync.Mutex
	waiting [][]byte
	held    [][]byte // lines to send after the call of release
	holds   bool
	bytes   int           // total size of the lines in `waiting` and `held`
	wake    chan struct{} // receives a value when a line is added to `waiting`
	over    bool
}

func newTerminal(conn net.Conn, user orchestrator.PersonID) *terminal {
	return &terminal{conn: conn, user: user, wake: make(chan struct{}, 1)}
}

// queue appends a line to the output. If the output is then too large, it disconnects the terminal.
func (t *terminal) queue(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if t.bytes += len(line); t.bytes > mostQueued {
		t.over, t.waiting, t.held = true, nil, nil
		_ = t.conn.Close() // the reading and the writing goroutine then end
		return
	}
	if t.holds {
		t.held = append(t.held, line)
		return
	}
	t.waiting = append(t.waiting, line)
	t.signal()
}

// hold delays the terminal's output until release.
func (t *terminal) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds = true
}

// release ends a hold. It queues the given line first, and then the lines that had to wait.
func (t *terminal) release(line []byte) {
	t.mu.Lock()
	t.waiting, t.held, t.holds = append(append(t.waiting, line), t.held...), nil, false
	t.bytes += len(line)
	t.mu.Unlock()
	t.signal()
}

func (t *terminal) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// write writes queued lines until ctx ends or the terminal disconnects. Before each write, it calls the function
// allowed, and stops if the result is false.
func (t *terminal) write(ctx context.Context, allowed func() bool) {
	for {
		t.mu.Lock()
		lines := net.Buffers(t.waiting)
		t.waiting, t.bytes = nil, t.bytes-size(t.waiting)
		t.mu.Unlock()
		if len(lines) > 0 {
			if !allowed() {
				return
			}
			_ = t.conn.SetWriteDeadline(time.Now().Add(writeWait)) // if this fails, WriteTo fails too
			if _, err := lines.WriteTo(t.conn); err != nil {
				return
			}
			continue
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			return
		}
	}
}

func size(lines [][]byte) (n int) {
	for _, l := range lines {
		n += len(l)
	}
	return n
}

// bye sends a Bye with the reason, and closes the connection.
func (t *terminal) bye(h *Hub, reason wire.Reason, sentence string) {
	_ = t.conn.SetWriteDeadline(time.Now().Add(byeWait)) // if this fails, Write fails too
	line := h.encode(wire.Message{Bye: &wire.Bye{Reason: reason, Sentence: sentence}})
	_, _ = t.conn.Write(line) // fails if the terminal has disconnected
	_ = t.conn.Close()
}

// byeWait limits how long writing the last line may take.
const byeWait = time.Second
