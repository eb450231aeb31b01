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

// closeKey names the sessions that must not overlap.
type closeKey struct {
	conversation Conversation
	agent        Agent
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

// letGo ends the pool's interest in a lent session, which goes on without it.
func (p *pool) letGo(lent *pooled) {
	p.mu.Lock()
	delete(p.lent, lent)
	p.mu.Unlock()
	_ = guard(lent.agent, func() error { lent.session.Detach(); return nil })
}

// detachAll lets go of what is idle. What is lent is let go of when its turn was.
func (p *pool) detachAll() {
	p.mu.Lock()
	p.closed, p.leaving = true, true
	var idle []*pooled
	for _, s := range p.idle {
		idle = append(idle, s)
	}
	for _, s := range idle {
		p.takeIdle(s.conversation)
	}
	p.mu.Unlock()
	for _, s := range idle {
		p.letGo(s)
	}
}

// bar keeps sessions of an agent from being opened in a conversation until the function it returns is
// called.
func (p *pool) bar(conversation Conversation, agent Agent) (lift func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, done := closeKey{conversation, agent}, make(chan struct{})
	p.closing[key] = append(p.closing[key], done)
	return func() { p.endClose(key, done) }
}

func (p *pool) expire(old *pooled) {
	p.mu.Lock()
	if p.idle[old.conversation] != old {
		p.mu.Unlock()
		return
	}
	p.takeIdle(old.conversation)
	done := p.beginClose(old)
	p.mu.Unlock()
	p.closeInBackground(old, done)
}

// release closes the conversation's session now if it is idle, after its turn if it is lent.
func (p *pool) release(conversation Conversation) {
	p.mu.Lock()
	for lent := range p.lent {
		lent.drop = lent.drop || lent.conversation == conversation
	}
	had := p.takeIdle(conversation)
	if had == nil {
		p.mu.Unlock()
		return
	}
	done := p.beginClose(had)
	p.mu.Unlock()
	p.closeInBackground(had, done)
}

// spoil has a lent session closed after its turn.
func (p *pool) spoil(lent *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lent.drop = true
}

// discard closes a lent session and returns when it is closed, or will not be for now.
func (p *pool) discard(lent *pooled) {
	p.mu.Lock()
	done := p.beginClose(lent)
	p.mu.Unlock()
	p.closeNow(lent, done)
}

// discardInBackground is discard for a caller that does not wait.
func (p *pool) discardInBackground(lent *pooled) {
	p.mu.Lock()
	done := p.beginClose(lent)
	p.mu.Unlock()
	p.closeInBackground(lent, done)
}

// beginClose is called with mu held. Who calls it closes the session.
func (p *pool) beginClose(old *pooled) chan struct{} {
	delete(p.lent, old)
	done := make(chan struct{})
	key := closeKey{old.conversation, old.agent}
	p.closing[key] = append(p.closing[key], done)
	p.work.more()
	return done
}

func (p *pool) closeInBackground(old *pooled, done chan struct{}) { go p.closeNow(old, done) }

func (p *pool) closeNow(old *pooled, done chan struct{}) {
	defer p.work.leave()
	defer p.endClose(closeKey{old.conversation, old.agent}, done)
	ctx, cancel := context.WithTimeout(context.Background(), p.closeWait)
	defer cancel()
	if err := guard(old.agent, func() error { return old.session.Close(ctx) }); err != nil {
		p.log.Error("a session did not close", "agent", string(old.agent), "conversation", string(old.conversation), "err", err)
	}
}

func (p *pool) endClose(key closeKey, done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing[key] = slices.DeleteFunc(p.closing[key], func(c chan struct{}) bool { return c == done })
	if len(p.closing[key]) == 0 {
		delete(p.closing, key)
	}
	close(done)
}

// awaitClosing waits for the agent's sessions of the conversation that are being closed.
func (p *pool) awaitClosing(ctx context.Context, key closeKey) {
	p.mu.Lock()
	waits := slices.Clone(p.closing[key])
	p.mu.Unlock()
	for _, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// closeAll closes what is idle, and makes every lent session close after its turn. The group waits for it.
func (p *pool) closeAll() {
	p.mu.Lock()
	p.closed = true
	conversations := make([]Conversation, 0, len(p.idle))
	for c := range p.idle {
		conversations = append(conversations, c)
	}
	p.mu.Unlock()
	for _, c := range conversations {
		p.release(c)
	}
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
