package cli

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// pool keeps live sessions between turns, one per conversation. A session is in it as idle, or lent to
// the turn that runs; its lock is held for bookkeeping only.
type pool struct {
	idleLimit time.Duration
	max       int
	closeWait time.Duration
	now       func() time.Time
	log       *slog.Logger
	work      *group

	mu      sync.Mutex
	idle    map[Conversation]*pooled
	lent    map[*pooled]bool
	closing map[closeKey][]chan struct{}
	closed  bool
	leaving bool // sessions are let go of, not closed
}

// pooled is a session with what the pool knows of it.
type pooled struct {
	conversation Conversation
	session      Session
	mode         Mode
	agent        Agent
	used         time.Time
	timer        *time.Timer // while idle
	drop         bool        // close it instead of keeping it
}

// info is the session's, or nothing if the provider panics.
func (p *pooled) info() (info SessionInfo) {
	_ = guard(p.agent, func() error { info = p.session.Info(); return nil }) // not alive, then
	return info
}

// fits is false also if the provider panics.
func (p *pooled) fits(req Request) (fits bool) {
	_ = guard(p.agent, func() error { fits = p.session.Fits(req); return nil })
	return fits
}

func newPool(opts ServiceOptions, work *group) *pool {
	return &pool{
		idleLimit: opts.IdleLimit, max: opts.MaxSessions, closeWait: opts.Grace + stopSlack,
		now: opts.Now, log: opts.Logger, work: work,
		idle: map[Conversation]*pooled{}, lent: map[*pooled]bool{}, closing: map[closeKey][]chan struct{}{},
	}
}

// borrow takes the conversation's idle session out, if it can take req, and lends it. A session that
// cannot is closed first: two processes of one session would spoil each other's history. Nil means that
// the caller opens one; ctx bounds the wait.
func (p *pool) borrow(ctx context.Context, entry *agentEntry, mode Mode, req Request) *pooled {
	p.mu.Lock()
	had := p.takeIdle(req.Conversation)
	if had != nil {
		p.lent[had] = true
		had.used = p.now()
	}
	p.mu.Unlock()
	if had != nil {
		if had.agent == entry.provider.Agent() && had.mode == mode && had.info().Alive && had.fits(req) {
			return had
		}
		p.discardInBackground(had)
	}
	p.awaitClosing(ctx, closeKey{req.Conversation, entry.provider.Agent()})
	return nil
}

// takeIdle is called with mu held.
func (p *pool) takeIdle(conversation Conversation) *pooled {
	had := p.idle[conversation]
	if had != nil {
		had.timer.Stop()
		delete(p.idle, conversation)
	}
	return had
}

// lend enters a session that was just opened, and makes room for it.
func (p *pool) lend(agent Agent, mode Mode, conversation Conversation, session Session) *pooled {
	lent := &pooled{conversation: conversation, session: session, mode: mode, agent: agent, used: p.now()}
	p.mu.Lock()
	p.lent[lent] = true
	p.mu.Unlock()
	p.makeRoom()
	return lent
}

// makeRoom closes the longest idle sessions while there are too many.
func (p *pool) makeRoom() {
	for {
		p.mu.Lock()
		var oldest *pooled
		for _, candidate := range p.idle {
			if oldest == nil || candidate.used.Before(oldest.used) {
				oldest = candidate
			}
		}
		if oldest == nil || len(p.idle)+len(p.lent) <= p.max {
			p.mu.Unlock()
			return
		}
		p.takeIdle(oldest.conversation)
		done := p.beginClose(oldest)
		p.mu.Unlock()
		p.closeInBackground(oldest, done)
	}
}

// giveBack keeps a lent session for the next turn. It reports false if the session is to be closed instead.
func (p *pool) giveBack(lent *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if lent.drop || p.closed && !p.leaving || lent.mode != Live || p.idle[lent.conversation] != nil {
		return false
	}
	delete(p.lent, lent)
	if p.leaving {
		p.work.more()
		go func() {
			defer p.work.leave()
			p.letGo(lent)
		}()
		return true
	}
	p.rest(lent)
	return true
}

// rest makes a session idle. mu is held.
func (p *pool) rest(s *pooled) {
	s.used = p.now()
	p.idle[s.conversation] = s
	s.timer = time.AfterFunc(p.idleLimit, func() { p.expire(s) })
}

// keep enters an idle session; false if there is one already, or the pool is closed.
func (p *pool) keep(agent Agent, conversation Conversation, session Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.idle[conversation] != nil {
		return false
	}
	p.rest(&pooled{conversation: conversation, session: session, mode: Live, agent: agent})
	return true
}

func (p *pool) status() []SessionStatus {
	p.mu.Lock()
	var list []SessionStatus
	var sessions []*pooled
	add := func(s *pooled, busy bool) {
		list = append(list, SessionStatus{Conversation: s.conversation, Busy: busy, Used: s.used})
		sessions = append(sessions, s)
	}
	for _, s := range p.idle {
		add(s, false)
	}
	for s := range p.lent {
		add(s, true)
	}
	p.mu.Unlock()
	for i, s := range sessions {
		list[i].SessionInfo = s.info()
	}
	slices.SortFunc(list, func(a, b SessionStatus) int { return cmp.Compare(a.Conversation, b.Conversation) })
	return list
}
