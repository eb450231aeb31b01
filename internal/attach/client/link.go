// Package client connects `ductor attach` to ductor, and reconnects after a restart. In a terminal it shows the
// screen that package screen computes. In a pipe it prints plain lines.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"ductor/internal/attach/screen"
	"ductor/internal/attach/wire"
	"ductor/internal/statesocket"
)

// ErrNotRunning means that no ductor runs with this state directory.
var ErrNotRunning = errors.New("ductor isn't running, so there is nothing to attach to; start it with " +
	"`ductor run`, or `ductor service install`")

// refusal is a sentence with the reason why ductor refuses the connection permanently.
type refusal string

func (r refusal) Error() string { return string(r) }

// Limits of a connection.
const (
	mostBatch  = 200 // messages passed to the screen at once
	writeWait  = 10 * time.Second
	firstPause = 100 * time.Millisecond // first pause between attempts to connect; it doubles up to mostPause
	mostPause  = 2 * time.Second
)

// event is a change of the connection: it was established, it was lost, or messages have arrived.
type event struct {
	up       *connection
	lost     bool
	messages []wire.Message
}

type connection struct {
	net.Conn
	in *bufio.Reader
}

// dial connects to ductor, sends the Hello, and waits for the answer.
func dial(ctx context.Context, dir string) (*connection, error) {
	conn, err := statesocket.Dial(ctx, dir, wire.Socket)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning
	} else if err != nil {
		return nil, fmt.Errorf("connect to ductor: %w", err)
	}
	c := &connection{conn, bufio.NewReaderSize(conn, 64<<10)}
	secret, err := statesocket.ReadSecret(dir)
	if err == nil {
		err = c.send(wire.Request{Hello: &wire.Hello{Version: wire.Version, Secret: secret}})
	}
	var first wire.Message
	if err == nil {
		first, err = c.next()
	}
	if err == nil && first.Bye != nil {
		err = refusal(first.Bye.Sentence)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// send writes requests. After an error, the connection is unusable.
func (c *connection) send(requests ...wire.Request) error {
	var lines bytes.Buffer
	for _, r := range requests {
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			return fmt.Errorf("write to ductor: %w", err)
		}
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeWait)) // if this fails, Write fails too
	if _, err := c.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("write to ductor: %w", err)
	}
	return nil
}

func (c *connection) next() (wire.Message, error) {
	line, err := wire.ReadLine(c.in)
	if err != nil {
		return wire.Message{}, fmt.Errorf("read from ductor: %w", err)
	}
	var m wire.Message
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("read a line of ductor: %w", err)
	}
	return m, nil
}

// batch waits for a message. It returns this message and all further messages that have already arrived.
func (c *connection) batch() ([]wire.Message, error) {
	var all []wire.Message
	for {
		m, err := c.next()
		if err != nil {
			return all, err
		}
		if m.Bye != nil {
			return all, refusal(m.Bye.Sentence)
		}
		all = append(all, m)
		waiting, _ := c.in.Peek(c.in.Buffered())
		if len(all) == mostBatch || !bytes.Contains(waiting, []byte("\n")) {
			return all, nil
		}
	}
}

// follow stays connected to ductor until ctx ends or ductor refuses the connection. It calls onEvent for each event of
// the connection. If the first attempt to connect fails, follow returns the error. After any later failure, it tries
// again.
func follow(ctx context.Context, dir string, onEvent func(event)) error {
	for pause := time.Duration(0); ; {
		c, err := dial(ctx, dir)
		var refused refusal
		switch {
		case errors.As(err, &refused), err != nil && pause == 0 && ctx.Err() == nil:
			return err
		case err == nil:
			pause = firstPause
			if err = c.pump(ctx, onEvent); errors.As(err, &refused) {
				return err
			}
		default:
			pause = min(2*pause, mostPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (c *connection) pump(ctx context.Context, onEvent func(event)) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	onEvent(event{up: c})
	defer onEvent(event{lost: true})
	for {
		messages, err := c.batch()
		if len(messages) > 0 {
			onEvent(event{messages: messages})
		}
		if err != nil {
			return err
		}
	}
}

// find asks ductor for its conversations, and returns the key of the conversation with the given name; see match.
func find(ctx context.Context, dir, name string) (string, error) {
	c, err := dial(ctx, dir)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", fmt.Errorf("list conversations: %w", err)
	}
	if err := c.send(wire.Request{List: &wire.List{}}); err != nil {
		return "", err
	}
	for {
		m, err := c.next()
		switch {
		case err != nil:
			return "", err
		case m.Bye != nil:
			return "", refusal(m.Bye.Sentence)
		case m.Conversations != nil:
			return match(m.Conversations, name)
		}
	}
}

// match returns the key of a conversation. The name is the conversation's key, its title, or the beginning of its
// title. match returns an error if several titles begin with the name.
func match(all []wire.Conversation, name string) (string, error) {
	var begin, shown []string
	for _, c := range all {
		if c.Key == name || strings.EqualFold(c.Title, name) {
			return c.Key, nil
		}
		if name != "" && strings.HasPrefix(strings.ToLower(c.Title), strings.ToLower(name)) {
			begin = append(begin, c.Key)
		}
		shown = append(shown, fmt.Sprintf("  %s  %s", c.Key, screen.OneLine(c.Title)))
	}
	if len(begin) == 1 {
		return begin[0], nil
	}
	if len(begin) == 0 {
		return "", fmt.Errorf("no conversation is called %q; name one of these by its number:\n%s", name,
			strings.Join(shown, "\n"))
	}
	return "", fmt.Errorf("%d conversations are called %q; name one of these by its number:\n%s", len(begin), name,
		strings.Join(shown, "\n"))
}
