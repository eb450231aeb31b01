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

// Programs in another environment talk to tools of the client by relays: their lines pass the runner's connection to
// the client.

// serveTools is the name of the relay by which a client says that it serves tools.
const serveTools = "serve"

// mostLine bounds a line that is relayed, and relayBuffer what waits for its reader.
const (
	mostLine    = 16 << 20
	relayBuffer = 64
)

var errNoTools = errors.New("ductor serves no tools here now")

// relaying is what a connection has to do with relays; under the server's mu.
type relaying struct {
	relay  string // its name, of a program that uses tools
	serves bool   // the client serves tools
}

// relay carries a line: of the client to a program, where it has the name of a relay, or else of a program to the
// client.
func (s *server) relay(c *conn, name string, line []byte) error {
	if name == serveTools {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.serves = true
		return nil
	}
	other, name := s.otherEnd(c, name)
	switch {
	case other == nil && c.serves:
		return fmt.Errorf("there is no relay %s: %w", name, syscall.ENOENT)
	case other == nil:
		return errNoTools
	case c.serves && len(line) == 0:
		return other.conn.Close()
	}
	other.tell(reply{Relay: name, body: line})
	return nil
}

// otherEnd is where the lines of a connection go, nil for nowhere, and the name of the relay.
func (s *server) otherEnd(c *conn, name string) (*conn, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.serves && c.relay == "" {
		c.relay = fmt.Sprintf("%d-%p", c.pid, c) // no other connection has it while this one is there
	}
	name = cmp.Or(c.relay, name)
	for other := range s.conns {
		if c.serves && other.relay == name || !c.serves && other.serves {
			return other, name
		}
	}
	return nil, name
}

// endRelays ends what a connection relayed, which broke.
func (s *server) endRelays(c *conn) {
	s.mu.Lock()
	var ends []*conn
	for other := range s.conns {
		if c.serves && other.relay != "" || c.relay != "" && other.serves {
			ends = append(ends, other)
		}
	}
	s.mu.Unlock()
	for _, other := range ends {
		if c.serves {
			_ = other.conn.Close() // its program connects again
		} else {
			other.tell(reply{Relay: c.relay})
		}
	}
}

// DialTools connects a program to the tools of the client of the runner of a directory. What is written and read are
// lines. While no client serves tools, as during a restart of ductor, it returns an error: what is written then would
// be lost.
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
	go func() { // it ends with either connection
		defer conn.Close()
		lines := bufio.NewScanner(ours)
		lines.Buffer(nil, mostLine)
		for seq := uint64(2); lines.Scan() && f.send(request{Seq: seq, Op: opRelay}, lines.Bytes()) == nil; seq++ {
		}
	}()
	go func() { // so does this
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

// findTools asks the runner by a relay's first line, an empty one, whether a client serves tools.
func (f *frames) findTools(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = f.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := f.send(request{Seq: 1, Op: opRelay}, nil)
	for err == nil {
		var r reply
		if _, err = f.receive(&r); err == nil && r.Seq == 1 { // else it tells of the end of a run
			return r.err()
		}
	}
	return err
}

// toolRelays are the relays that end at a client.
type toolRelays struct {
	mu    sync.Mutex
	serve func(net.Conn) // nil: none
	open  map[relayOf]chan []byte
}

type relayOf struct {
	link *link
	name string
}

// ServeTools has serve serve the programs of a runner elsewhere, each over a connection of lines, which it closes. It
// is called before the first connection to the runner.
func (c *Client) ServeTools(serve func(net.Conn)) {
	c.tools.mu.Lock()
	defer c.tools.mu.Unlock()
	c.tools.serve = serve
	if c.tools.open == nil {
		c.tools.open = map[relayOf]chan []byte{}
	}
}

// offerTools tells a runner that this client serves tools.
func (c *Client) offerTools(ctx context.Context, l *link) error {
	c.tools.mu.Lock()
	serves := c.tools.serve != nil
	c.tools.mu.Unlock()
	if !serves {
		return nil
	}
	_, err := l.ask(ctx, request{Op: opRelay, Run: serveTools}, nil)
	if errors.Is(err, ErrGone) {
		return err
	}
	return nil // a runner of an earlier build has no relays
}

// take hands a line to the relay that it is of. A relay whose reader is far behind ends.
func (t *toolRelays) take(c *Client, l *link, r reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := relayOf{l, r.Relay}
	lines := t.open[key]
	if len(r.body) > 0 && lines == nil && t.serve != nil {
		lines = make(chan []byte, relayBuffer)
		t.open[key] = lines
		serve := t.serve
		c.wg.Go(func() { t.run(key, lines, serve) })
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

// lose ends the relays of a connection that broke.
func (t *toolRelays) lose(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, lines := range t.open {
		if key.link == l {
			delete(t.open, key)
			close(lines)
		}
	}
}

// run has a relay served until either side ends it.
func (t *toolRelays) run(key relayOf, lines <-chan []byte, serve func(net.Conn)) {
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
	said.Buffer(nil, mostLine)
	for said.Scan() {
		if key.link.send(request{Op: opRelay, Run: key.name}, said.Bytes()) != nil {
			break
		}
	}
	_ = ours.Close()
	_ = key.link.send(request{Op: opRelay, Run: key.name}, nil) // where the connection broke, so did the relay
	t.mu.Lock()
	if lines := t.open[key]; lines != nil {
		delete(t.open, key)
		close(lines)
	}
	t.mu.Unlock()
	wg.Wait()
}
