package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// ErrGone is what a request gives when the supervisor's connection ended.
var ErrGone = errors.New("the supervisor is gone")

// errUnsent is ErrGone where nothing was sent.
var errUnsent = fmt.Errorf("nothing was sent: %w", ErrGone)

// RemoteError is an error of the supervisor's. It matches what its system error matches, fs.ErrNotExist for one.
type RemoteError struct {
	Text  string
	Errno syscall.Errno // 0 if there is none
}

func (e *RemoteError) Error() string { return e.Text }

func (e *RemoteError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// OffsetError says that a journal ends before the offset a client had already reached: it was cut short.
type OffsetError struct {
	Offset, End int64
}

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the spool was cut short: it ends at %d, before %d", e.End, e.Offset)
}

// link is a client's end of a connection: requests, and frames that are handed on. serve runs on one
// goroutine; the rest is safe for concurrent use.
type link struct {
	conn net.Conn
	pace *pacedReader // of what comes
	r    *frameReader
	w    frameWriter

	mu      sync.Mutex
	seq     uint64
	waiting map[uint64]chan reply
	closed  bool
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, w: frameWriter{w: conn}, waiting: map[uint64]chan reply{}}
	l.pace = newPacedReader(conn, l.awaited)
	l.r = newFrameReader(l.pace)
	return l
}

// awaited says whether somebody waits for an answer.
func (l *link) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

// greet sends a first frame, which is or holds h, and reads the answer. Any error closes the connection.
func (l *link) greet(ctx context.Context, k kind, first greeting) (welcome, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) })
	w, err := l.exchange(k, first)
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = l.conn.Close()
		return w, err
	}
	return w, l.conn.SetDeadline(time.Time{})
}

// greeting is what a connection may begin with: a hello, or a request that holds one.
type greeting interface{ greets() hello }

func (h hello) greets() hello { return h }

func (l *link) exchange(first kind, g greeting) (welcome, error) {
	var w welcome
	h := g.greets()
	if err := l.w.json(first, g); err != nil {
		return w, fmt.Errorf("say hello: %w: %w", ErrGone, err)
	}
	k, payload, err := l.r.next()
	if err != nil {
		return w, fmt.Errorf("await welcome: %w: %w", ErrGone, err)
	}
	switch k {
	case kindWelcome:
		if err := json.Unmarshal(payload, &w); err != nil {
			return w, fmt.Errorf("read welcome: %w", err)
		}
		_, err := agree(h.Protocol, w.Protocol)
		return w, err
	case kindRefused:
		var no refused
		if err := json.Unmarshal(payload, &no); err != nil {
			return w, fmt.Errorf("read refusal: %w", err)
		}
		return w, no.err(h)
	}
	return w, fmt.Errorf("a supervisor began with %q", string(k))
}

func (no refused) err(h hello) error {
	switch no.Kind {
	case refusedVersion:
		return &VersionError{Client: h.Protocol, Supervisor: no.Protocol}
	case refusedOffset:
		return &OffsetError{Offset: h.Offset, End: no.End}
	}
	return &RemoteError{Text: no.Error, Errno: syscall.Errno(no.Errno)}
}

// ask does a request and waits for the answer.
func (l *link) ask(ctx context.Context, q request) (reply, error) {
	seq, answer, err := l.expect()
	if err != nil {
		return reply{}, err
	}
	q.Seq = seq
	if err := l.w.json(kindRequest, q); err != nil {
		l.forget(seq)
		return reply{}, fmt.Errorf("%s: %w: %w", q.Op, ErrGone, err)
	}
	return l.await(ctx, string(q.Op), seq, answer)
}

// send does a request and does not wait for the answer, which is dropped.
func (l *link) send(q request) error {
	l.mu.Lock()
	l.seq++
	q.Seq = l.seq
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return ErrGone
	}
	if err := l.w.json(kindRequest, q); err != nil {
		return fmt.Errorf("%s: %w: %w", q.Op, ErrGone, err)
	}
	return nil
}

// input sends bytes to the agent and waits until they are in its pipe.
func (l *link) input(p []byte) error {
	seq, answer, err := l.expect()
	if err != nil {
		return err
	}
	if err := l.w.marked(kindInput, int64(seq), p); err != nil {
		l.forget(seq)
		return fmt.Errorf("write to the agent: %w: %w", ErrGone, err)
	}
	_, err = l.await(context.Background(), "write to the agent", seq, answer) // the agent's end is the deadline
	return err
}

func (l *link) await(ctx context.Context, what string, seq uint64, answer <-chan reply) (reply, error) {
	select {
	case r, ok := <-answer:
		if !ok {
			return r, fmt.Errorf("%s: %w", what, ErrGone)
		}
		if r.Error != "" {
			return r, &RemoteError{Text: r.Error, Errno: syscall.Errno(r.Errno)}
		}
		return r, nil
	case <-ctx.Done():
		l.forget(seq)
		return reply{}, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
}

func (l *link) expect() (uint64, chan reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, nil, errUnsent
	}
	l.seq++
	answer := make(chan reply, 1)
	l.waiting[l.seq] = answer
	l.pace.hurry()
	return l.seq, answer, nil
}

func (l *link) forget(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, seq)
}

// serve reads frames until the connection ends, gives answers to who asked, and hands the rest on.
func (l *link) serve(handle func(kind, []byte) error) error {
	defer l.close()
	for {
		k, payload, err := l.r.next()
		if err != nil {
			return err
		}
		if k == kindReply {
			err = l.answer(payload)
		} else {
			err = handle(k, payload)
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) answer(payload []byte) error {
	var r reply
	if err := json.Unmarshal(payload, &r); err != nil {
		return fmt.Errorf("read reply: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer, ok := l.waiting[r.Seq]; ok {
		delete(l.waiting, r.Seq)
		answer <- r
	}
	return nil
}

func (l *link) close() {
	_ = l.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for seq, answer := range l.waiting {
		delete(l.waiting, seq)
		close(answer)
	}
}
