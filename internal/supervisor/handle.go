package supervisor

import (
	"errors"
	"fmt"
	"maps"
	"syscall"
	"time"
)

// handle does one request, without making the client's next frame wait.
func (c *session) handle(q request) {
	switch q.Op {
	case opCloseStdin: // in order with what was written
		select {
		case c.srv.input <- inputItem{last: true, done: func(err error) { c.reply(q.Seq, err) }}:
		default:
			c.reply(q.Seq, errors.New("the agent does not read"))
		}
		return
	case opSignal: // at once
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
	case opRelabel:
		s.relabel(q.Labels)
		c.reply(q.Seq, nil)
	case opLimits:
		if q.Limits != nil {
			s.limit(*q.Limits)
		}
		c.reply(q.Seq, nil)
	case opInfo:
		info := s.info()
		_ = c.w.json(kindReply, reply{Seq: q.Seq, Info: &info})
	case opCollect:
		c.reply(q.Seq, s.collect())
		s.look()
	case opResize:
		c.reply(q.Seq, nil)
	default:
		c.reply(q.Seq, fmt.Errorf("this supervisor cannot %q", q.Op))
	}
}

func (s *server) relabel(labels map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Labels = maps.Clone(labels)
	s.save(specFile, s.record)
}

func (s *server) limit(l Limits) {
	l = l.withDefaults()
	s.feed.mu.Lock()
	s.feed.out.max = l.MaxSpool
	s.feed.mu.Unlock()
	s.mu.Lock()
	s.record.Limits, s.ageFrom = l, s.clock()
	s.save(specFile, s.record)
	s.mu.Unlock()
	s.look()
}
