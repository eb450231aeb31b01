package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	maxSessions = 16
	maxRequests = 8 // of one client at a time
	helloWait   = 5 * time.Second
)

// session is a client's connection.
type session struct {
	srv   *server
	conn  net.Conn
	pid   int // the client's process
	role  role
	r     *frameReader
	w     frameWriter
	place place
	slots chan struct{}
	wg    sync.WaitGroup
}

// accept greets clients until the listener is closed.
func (s *server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of files: a client that waits is better than a supervisor that spins
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-s.done:
				return
			}
		}
		s.wg.Go(func() { s.greet(conn) })
	}
}

// greet reads a hello and serves who sent it.
func (s *server) greet(conn net.Conn) {
	defer conn.Close()
	pid, err := s.net.admit(conn)
	r, w := newFrameReader(conn), frameWriter{w: conn}
	_ = conn.SetDeadline(time.Now().Add(helloWait))
	if err != nil {
		_ = w.json(kindRefused, refused{Protocol: s.proto, Error: err.Error()})
		return
	}
	h, err := readHello(r)
	if err != nil {
		return
	}
	if no := s.judge(h); no != nil {
		_ = w.json(kindRefused, no)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	s.serve(conn, r, h, pid)
}

func readHello(r *frameReader) (hello, error) {
	k, payload, err := r.next()
	if err != nil {
		return hello{}, err
	}
	var h hello
	if k != kindHello {
		return h, fmt.Errorf("a client began with %q", string(k))
	}
	return h, json.Unmarshal(payload, &h)
}

// judge says what is wrong with a hello; nil if nothing is.
func (s *server) judge(h hello) *refused {
	if _, err := agree(h.Protocol, s.proto); err != nil {
		return &refused{Protocol: s.proto, Kind: refusedVersion, Error: err.Error()}
	}
	s.publisher.mu.Lock()
	end := s.publisher.out.end
	s.publisher.mu.Unlock()
	switch h.Role {
	case roleOwn, roleWatch:
		if h.Offset > end || h.Offset < 0 {
			return &refused{Protocol: s.proto, Kind: refusedOffset, End: end, Error: fmt.Sprintf("the output ends at %d, before %d", end, h.Offset)}
		}
	case roleAsk:
	default:
		return &refused{Protocol: s.proto, Error: fmt.Sprintf("a running supervisor cannot %q", h.Role)}
	}
	return nil
}

// serve welcomes a client and does what it wants until it leaves.
func (s *server) serve(conn net.Conn, r *frameReader, h hello, pid int) {
	c := &session{srv: s, conn: conn, pid: pid, role: h.Role, r: r, w: frameWriter{w: conn}, slots: make(chan struct{}, maxRequests)}
	c.place = place{offset: h.Offset, limit: h.Offset + h.Window}
	if err := s.enter(c); err != nil {
		_ = c.w.json(kindRefused, refused{Protocol: s.proto, Error: err.Error()})
		return
	}
	err := c.w.json(kindWelcome, welcome{Protocol: s.proto, Info: s.welcomeInfo(c)})
	if c.role == roleStart {
		s.tellOnce()
	}
	if err == nil {
		if c.role != roleAsk {
			c.wg.Go(c.tell)
		}
		c.listen()
	}
	s.forget(c)
	_ = conn.SetDeadline(time.Now().Add(lastWords))
	c.wg.Wait()
}

// welcomeInfo spares the start of an agent the look at every process.
func (s *server) welcomeInfo(c *session) Info {
	if c.role != roleStart {
		return s.info()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.record.info()
	info.Supervised, info.Alive, info.Attached, info.AttachedBy, info.Processes = true, true, true, c.pid, 1
	return info
}

// enter makes c one of the sessions, and the owner if that is its role.
func (s *server) enter(c *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= maxSessions {
		return errors.New("too many clients")
	}
	s.sessions[c] = true
	if c.role == roleAsk || c.role == roleWatch {
		return nil
	}
	if s.owner != nil { // a stuck client does not keep its successor waiting
		_ = s.owner.conn.SetWriteDeadline(time.Now().Add(lastWords))
	}
	s.owner = c
	s.publisher.own(&c.place, c.pid)
	return nil
}

// forget is the end of enter.
func (s *server) forget(c *session) {
	s.publisher.leave(&c.place)
	s.mu.Lock()
	delete(s.sessions, c)
	if s.owner == c {
		s.owner, s.idleFrom = nil, s.clock()
	}
	s.mu.Unlock()
	s.look()
}

// tell sends the client what the agent says.
func (c *session) tell() {
	buf := make([]byte, chunkSize/2)
	for {
		it := c.srv.publisher.next(&c.place, buf)
		var err error
		switch {
		case it.closed:
			return
		case it.taken != 0:
			_ = c.w.json(kindTaken, takenNote{PID: it.taken})
			_ = c.conn.Close()
			return
		case it.lost != nil:
			err = c.w.json(kindLost, it.lost)
		case it.stderr != nil:
			err = c.w.bytes(kindStderr, it.stderr)
		case it.end:
			err = c.tellEnd(it)
		case it.exit != nil:
			err = c.w.json(kindExit, it.exit)
		default:
			err = c.w.marked(kindOutput, it.offset, it.data)
		}
		if err != nil {
			_ = c.conn.Close() // listen sees it
			return
		}
	}
}

// tellEnd says where the output ended, and again how the agent did: more is known of it by now.
func (c *session) tellEnd(it item) error {
	var status []byte
	if it.exit != nil {
		var err error
		if status, err = json.Marshal(it.exit); err != nil {
			return err
		}
	}
	return c.w.marked(kindEnd, it.offset, status)
}

// listen does what the client says until it leaves.
func (c *session) listen() {
	for {
		k, payload, err := c.r.next()
		if err != nil {
			return
		}
		switch k {
		case kindWindow:
			if limit, _, err := cutMark(payload); err == nil {
				c.srv.publisher.allow(&c.place, limit)
			}
		case kindInput:
			if seq, data, err := cutMark(payload); err == nil {
				c.takeInput(uint64(seq), data)
			}
		case kindRequest:
			var q request
			if err := json.Unmarshal(payload, &q); err != nil {
				return
			}
			c.handle(q)
		}
	}
}

func (c *session) reply(seq uint64, err error) {
	r := reply{Seq: seq}
	if err != nil {
		r.Error, r.Errno = err.Error(), errnoOf(err)
	}
	_ = c.w.json(kindReply, r) // listen sees a client that is gone
}

// errnoOf carries the kind of an error over the socket; 0 for none.
func errnoOf(err error) int {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return int(errno)
	}
	return 0
}
