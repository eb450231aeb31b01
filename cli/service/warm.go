package service

import (
	"context"
	"time"

	"ductor/cli"
)

// warmLimit is how long it may take to open a session ahead. A turn that comes during it waits for it.
const warmLimit = time.Minute

// warming is a session that is being opened ahead.
type warming struct {
	ctx    context.Context
	cancel context.CancelFunc // no turn wants it any more
}

// Warm opens the session that req will want, ahead of its turn, and returns at once. It does so only where the
// conversation has no turn and a process may be started without ending another one's; the conversation's own
// session makes way if it does not fit. What was opened is used by the next Run if it fits, and closed with the
// idle limit otherwise. A failure is not reported: the turn will meet it. A second Warm of a conversation
// takes the place of the first.
func (s *Service) Warm(agent cli.Agent, req cli.Request) {
	entry, failure := s.at(req.Sandbox, agent)
	if failure != nil || s.registry.HasActive(req.Conversation) {
		return
	}
	if entry.runEnv.homes != nil && req.Session == "" { // its home is not known yet
		return
	}
	s.work.spawn(func() { s.warm(entry, req) })
}

func (s *Service) warm(entry *agentEntry, req cli.Request) {
	w := &warming{}
	w.ctx, w.cancel = context.WithTimeout(s.base, warmLimit)
	defer w.cancel()
	if mode, err := s.mode(w.ctx, entry); err != nil || mode != cli.Live {
		return
	}
	req, err := s.ready(w.ctx, entry, req, nil)
	if err != nil {
		s.opts.Logger.Info("an agent could not be started ahead", "agent", string(entry.provider.Agent()), "err", err)
		return
	}
	had, waits, end := s.pool.beginWarm(w, entry.closeKey(req.Conversation), s.registry.HasActive)
	if end == nil {
		return
	}
	defer end()
	if had != nil {
		if had.suits(entry, cli.Live, req) && s.pool.giveBack(had) {
			return
		}
		_ = s.pool.discard(had)
	}
	if !awaitAll(w.ctx, waits) {
		return
	}
	at := s.pool.acquireSpare(entry, req)
	if at == nil {
		return
	}
	session, late, err := s.open(w.ctx, entry, cli.Live, req, at, nil)
	if late != nil { // what no turn wants any more is gone before another one is opened
		s.awaitLate(late)
	}
	if err != nil {
		s.opts.Logger.Info("an agent could not be started ahead", "agent", string(entry.provider.Agent()), "err", err)
	}
	if session == nil {
		return
	}
	if w.ctx.Err() != nil || !s.pool.keep(entry, req.Conversation, session, at) {
		_ = s.pool.discard(s.pool.lend(entry, cli.Live, req.Conversation, session, at))
	}
}

// beginWarm lends the conversation's idle session, if there is one, gives what is to be waited for before
// another one is opened, and keeps turns from opening one until end is called. A nil end means that there is
// nothing to be done ahead. active says whether the conversation has a turn: one that is there by now may be opening a
// session of its own, which the pool does not know yet, and one that comes later is kept from that.
func (p *pool) beginWarm(w *warming, key closeKey, active func(cli.Conversation) bool) (had *pooled, waits []chan struct{}, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	former := p.warming[key.conversation]
	if former != nil {
		former.cancel()
	}
	if p.closed || active(key.conversation) || p.idle[key.conversation] == nil && p.has(key.conversation) {
		return nil, nil, nil
	}
	waits = append(waits, p.closing[key]...)
	had = p.lendIdle(key.conversation)
	lift := p.barLocked(key)
	p.warming[key.conversation] = w
	return had, waits, func() {
		p.mu.Lock()
		if p.warming[key.conversation] == w {
			delete(p.warming, key.conversation)
		}
		p.mu.Unlock()
		lift()
	}
}

// acquireSpare is acquire for what may neither wait nor end anything. Nil if there is no place.
func (p *pool) acquireSpare(entry *agentEntry, req cli.Request) *place {
	if at := p.join(entry, cli.Live, req); at != nil {
		return at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) > 0 || !p.free(entry.provider.Agent()) {
		return nil
	}
	return p.take(entry.process(0))
}
