package supervisor

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// handle does one request, without making the client's next frame wait.
func (c *session) handle(q request) {
	switch q.Op { // in the order of the frames, or at once
	case opCloseStdin:
		c.closeInput(q.Seq)
		return
	case opUpdate:
		c.update(q)
		return
	case opSignal:
		c.reply(q.Seq, c.srv.agent.signal(syscall.Signal(q.Signal)))
		return
	}
	select {
	case c.slots <- struct{}{}:
	default:
		c.reply(q.Seq, errors.New("too many requests at once"))
		return
	}
	c.wg.Go(func() {
		defer func() { <-c.slots }()
		c.work(q)
	})
}

func (c *session) work(q request) {
	s := c.srv
	switch q.Op {
	case opStop:
		c.reply(q.Seq, s.end(ByStop, time.Duration(q.Grace)))
	case opInfo:
		info := s.info()
		_ = c.w.json(kindReply, reply{Seq: q.Seq, Info: &info})
	case opTimes:
		_ = c.w.json(kindReply, reply{Seq: q.Seq, Times: s.publisher.times(s.clock(), time.Now()).note()})
	case opCollect:
		c.reply(q.Seq, s.collect())
		s.look()
	case opForget:
		c.reply(q.Seq, s.forgetOutput(&c.place, q.Offset))
	case opResize:
		c.reply(q.Seq, nil)
	default:
		c.reply(q.Seq, fmt.Errorf("this supervisor cannot %q", q.Op))
	}
}

var errNotOwner = errors.New("only the owner may do this")

// update changes labels and limits. The answer does not wait for the disk: what this process knows is lost
// with its agent only.
func (c *session) update(q request) {
	s := c.srv
	err := s.change(c, q.Labels, q.Limits)
	c.reply(q.Seq, err)
	if err != nil {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	if q.Limits != nil {
		s.look()
	}
}

func (s *server) change(c *session, labels map[string]string, limits *Limits) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != c { // what a dead owner still wanted must not undo what its successor does
		return errNotOwner
	}
	s.record.Labels = labels
	if limits == nil {
		return nil
	}
	l := limits.withDefaults()
	if l.MaxSpool != s.record.Limits.MaxSpool {
		s.publisher.resize(l.MaxSpool)
	}
	s.record.Limits, s.ageFrom = l, s.clock()
	return nil
}

// scribeDelay keeps the disk out of the way of the input that follows an update.
const scribeDelay = 20 * time.Millisecond

// scribe writes down what changed, the last of it when much did.
func (s *server) scribe() {
	for {
		select {
		case <-s.changed:
		case <-s.done:
			return
		}
		select {
		case <-time.After(scribeDelay):
		case <-s.done: // leave waits for this write
		}
		s.report(s.writeRecord())
	}
}
