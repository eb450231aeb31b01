package runner

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A relay connects a program in the runner's environment to the tools that a client serves. The runner passes lines
// between the program's connection and the client's connection.

// toolServerRelay is the relay name that a client uses to announce that it serves tools.
const toolServerRelay = "serve"

// maxLine limits the bytes of a line. relayBuffer limits the number of lines that wait for a slow program or tool
// server.
const (
	maxLine     = 16 << 20
	relayBuffer = 64
)

var errNoTools = errors.New("ductor serves no tools here now")

// relay forwards a line. A line from the client goes to the program at the other end of the named relay. A line from a
// program goes to the client that serves tools. An empty line from the client closes the program's connection.
func (c *clients) relay(from *conn, name string, line []byte) error {
	if name == toolServerRelay {
		c.mu.Lock()
		defer c.mu.Unlock()
		from.serves = true
		return nil
	}
	other, name := c.otherEnd(from, name)
	switch {
	case other == nil && from.serves:
		return fmt.Errorf("relay %s does not exist: %w", name, syscall.ENOENT)
	case other == nil:
		return errNoTools
	case from.serves && len(line) == 0:
		return other.conn.Close()
	}
	other.sendReply(reply{Relay: name, body: line})
	return nil
}

// otherEnd returns the connection that receives the lines from a client, and the name of the relay. The connection is
// nil if the other side is not connected.
func (c *clients) otherEnd(from *conn, name string) (*conn, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !from.serves && from.relay == "" {
		from.relay = fmt.Sprintf("%d-%p", from.pid, from) // unique among open connections
	}
	name = cmp.Or(from.relay, name)
	for other := range c.conns {
		if from.serves && other.relay == name || !from.serves && other.serves {
			return other, name
		}
	}
	return nil, name
}

func (c *clients) endRelays(broken *conn) {
	c.mu.Lock()
	var ends []*conn
	for other := range c.conns {
		if broken.serves && other.relay != "" || broken.relay != "" && other.serves {
			ends = append(ends, other)
		}
	}
	c.mu.Unlock()
	for _, other := range ends {
		if broken.serves {
			_ = other.conn.Close() // the program will connect again
		} else {
			other.sendReply(reply{Relay: broken.relay})
		}
	}
}

// DialTools connects a program to the tools of the client that serves tools to the runner in dir. The program and the
// client exchange lines of text. If no client serves tools now, for example because ductor is restarting, DialTools
// returns an error.
func DialTools(ctx context.Context, dir string) (net.Conn, error) {
	conn, err := dialSocket(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the runner: %w", err)
	}
	f := &frames{conn: conn}
	if err := f.findTools(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	ours, theirs := net.Pipe()
	go func() { // ends when either connection ends
		defer conn.Close()
		lines := bufio.NewScanner(ours)
		lines.Buffer(nil, maxLine)
		for seq := uint64(2); lines.Scan() && f.send(request{Seq: seq, Op: opRelay}, lines.Bytes()) == nil; seq++ {
		}
	}()
	go func() { // ends when either connection ends
		defer ours.Close()
		for {
			var r reply
			body, err := f.receive(&r)
			if err != nil || r.Error != "" {
				return
			}
			if r.Relay == "" {
				continue
			}
			if _, err := ours.Write(append(body, '\n')); err != nil {
				return
			}
		}
	}()
	return theirs, nil
}

// findTools sends an empty first line in order to find out whether a client serves tools.
func (f *frames) findTools(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = f.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := f.send(request{Seq: 1, Op: opRelay}, nil)
	for err == nil {
		var r reply
		if _, err = f.receive(&r); err == nil && r.Seq == 1 { // messages with another Seq report ends of runs
			return r.err()
		}
	}
	return err
}

// toolRelays are the open relays of a client that serves tools.
type toolRelays struct {
	mu    sync.Mutex
	serve func(net.Conn) // nil if the client serves no tools
	open  map[relayKey]chan []byte
}

type relayKey struct {
	link *link
	name string
}

// ServeTools sets the function that serves tools to programs in the runner's environment. The client calls serve with
// each program's connection; serve must close it. Call ServeTools before the client connects to a runner.
func (c *Client) ServeTools(serve func(net.Conn)) {
	c.tools.mu.Lock()
	defer c.tools.mu.Unlock()
	c.tools.serve = serve
	if c.tools.open == nil {
		c.tools.open = map[relayKey]chan []byte{}
	}
}

func (c *Client) offerTools(ctx context.Context, l *link) error {
	c.tools.mu.Lock()
	serves := c.tools.serve != nil
	c.tools.mu.Unlock()
	if !serves {
		return nil
	}
	_, err := l.ask(ctx, request{Op: opRelay, Run: toolServerRelay}, nil)
	if errors.Is(err, ErrGone) {
		return err
	}
	return nil // a runner of an older build does not support relays
}

// forward passes a line from a program to the goroutine that serves the program. It ends a relay whose buffer is full.
func (t *toolRelays) forward(c *Client, l *link, r reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := relayKey{l, r.Relay}
	lines := t.open[key]
	if len(r.body) > 0 && lines == nil && t.serve != nil {
		lines = make(chan []byte, relayBuffer)
		t.open[key] = lines
		serve := t.serve
		c.life.Go(func() { t.serveRelay(key, lines, serve) })
	}
	if lines == nil {
		return
	}
	if len(r.body) > 0 {
		select {
		case lines <- r.body:
			return
		default:
		}
	}
	delete(t.open, key)
	close(lines)
}

// endAll ends the relays of a broken connection to the runner.
func (t *toolRelays) endAll(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, lines := range t.open {
		if key.link == l {
			delete(t.open, key)
			close(lines)
		}
	}
}

// serveRelay calls serve for a program, and passes lines between the program and serve until either of them ends the
// relay.
func (t *toolRelays) serveRelay(key relayKey, lines <-chan []byte, serve func(net.Conn)) {
	ours, theirs := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { serve(theirs) })
	wg.Go(func() {
		defer ours.Close()
		for line := range lines {
			if _, err := ours.Write(append(line, '\n')); err != nil {
				return
			}
		}
	})
	said := bufio.NewScanner(ours)
	said.Buffer(nil, maxLine)
	for said.Scan() {
		if key.link.send(request{Op: opRelay, Run: key.name}, said.Bytes()) != nil {
			break
		}
	}
	_ = ours.Close()
	_ = key.link.send(request{Op: opRelay, Run: key.name}, nil) // fails only if the connection has broken
	t.mu.Lock()
	if lines := t.open[key]; lines != nil {
		delete(t.open, key)
		close(lines)
	}
	t.mu.Unlock()
	wg.Wait()
}
