package service

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// pool keeps live sessions between turns, one per conversation, and keeps count of the processes of all
// sessions. A session is in it as idle, or lent to the turn that runs; its lock is held for bookkeeping only.
type pool struct {
	idleLimit time.Duration
	max       int          // processes that are not waiting for their user; 0 is no limit
	maxMemory int64        // bytes of all of them; 0 is no limit
	available func() int64 // bytes that agents may still take; nil is no limit
	closeWait time.Duration
	now       func() time.Time
	log       *slog.Logger
	work      *group
	launchers func(cli.Sandbox) []cli.Launcher
	ending    <-chan struct{} // closed when the service ends

	measureSoon chan struct{} // a token when a turn ended

	mu      sync.Mutex
	idle    map[cli.Conversation]*pooled
	lent    map[*pooled]bool
	closing map[closeKey][]chan struct{}
	warming map[cli.Conversation]*warming
	places  map[*place]bool
	typical map[cli.Agent]int64 // the most that a process of the agent was seen to hold, in bytes
	queue   []*waiter
	closed  bool
	leaving bool // sessions that work in the background are detached, not closed
}

// pooled is a session with what the pool knows of it.
type pooled struct {
	conversation cli.Conversation
	session      cli.Session
	mode         cli.Mode
	agent        cli.Agent
	sandbox      cli.Sandbox
	at           *place
	used         time.Time
	timer        *time.Timer             // while idle
	approvals    map[cli.ApprovalID]bool // what its turn waits for its user to decide
	drop         bool                    // close it instead of keeping it
}

func newPooled(entry *agentEntry, mode cli.Mode, conversation cli.Conversation, session cli.Session, at *place) *pooled {
	return &pooled{
		conversation: conversation, session: session, mode: mode, agent: entry.provider.Agent(), sandbox: entry.runEnv.sandbox, at: at,
		approvals: map[cli.ApprovalID]bool{},
	}
}

// info is the session's, or nothing if the provider panics.
func (p *pooled) info() (info cli.SessionInfo) {
	_ = guard(p.agent, func() error { info = p.session.Info(); return nil }) // not alive, then
	return info
}

// fits is false also if the provider panics.
func (p *pooled) fits(req cli.Request) (fits bool) {
	_ = guard(p.agent, func() error { fits = p.session.Fits(req); return nil })
	return fits
}

// suits says whether the session can take req as it is.
func (p *pooled) suits(entry *agentEntry, mode cli.Mode, req cli.Request) bool {
	return p.sandbox == entry.runEnv.sandbox && p.agent == entry.provider.Agent() && p.mode == mode && p.info().Alive && p.fits(req)
}

func newPool(opts Options, work *group, ending <-chan struct{}, launchers func(cli.Sandbox) []cli.Launcher) *pool {
	return &pool{
		idleLimit: opts.IdleLimit, max: opts.MaxSessions, maxMemory: opts.MaxMemory, available: opts.Available, closeWait: opts.Grace + cli.StopSlack,
		now: opts.Now, log: opts.Logger, work: work, launchers: launchers, ending: ending, measureSoon: make(chan struct{}, 1),
		idle: map[cli.Conversation]*pooled{}, lent: map[*pooled]bool{}, closing: map[closeKey][]chan struct{}{},
		warming: map[cli.Conversation]*warming{}, places: map[*place]bool{}, typical: map[cli.Agent]int64{},
	}
}

// borrow takes the conversation's idle session out, if it can take req, and lends it. A session that
// cannot is closed first: two processes of one session would spoil each other's history. Nil means that
// the caller opens one; ctx bounds the wait.
func (p *pool) borrow(ctx context.Context, entry *agentEntry, mode cli.Mode, req cli.Request) *pooled {
	for {
		p.mu.Lock()
		had := p.lendIdle(req.Conversation)
		p.mu.Unlock()
		if had != nil {
			if had.suits(entry, mode, req) {
				return had
			}
			p.discardInBackground(had)
		}
		if !p.awaitClosing(ctx, entry.closeKey(req.Conversation)) {
			return nil
		} // else one may have been opened ahead by now
	}
}

// lendIdle lends the conversation's idle session, if there is one. mu is held.
func (p *pool) lendIdle(conversation cli.Conversation) *pooled {
	had := p.takeIdle(conversation)
	if had != nil {
		p.lent[had] = true
		had.used = p.now()
	}
	return had
}

// takeIdle is called with mu held.
func (p *pool) takeIdle(conversation cli.Conversation) *pooled {
	had := p.idle[conversation]
	if had != nil {
		p.rouse(had)
	}
	return had
}

// rouse takes a session out of the idle ones. mu is held.
func (p *pool) rouse(s *pooled) {
	s.timer.Stop()
	s.at.idle--
	delete(p.idle, s.conversation)
}

// lend enters a session that was just opened, at the place that was had for it.
func (p *pool) lend(entry *agentEntry, mode cli.Mode, conversation cli.Conversation, session cli.Session, at *place) *pooled {
	lent := newPooled(entry, mode, conversation, session, at)
	lent.used = p.now()
	pid := lent.info().PID
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent[lent] = true
	p.settleIn(lent, pid)
	return lent
}

// giveBack keeps a lent session for the next turn. It reports false if the session is to be closed instead.
func (p *pool) giveBack(lent *pooled) bool {
	info := lent.info()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !info.Alive || lent.drop || p.closed && !(p.leaving && info.Background) || lent.mode != cli.Live || p.idle[lent.conversation] != nil {
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
	p.settleIn(lent, info.PID)
	p.rest(lent)
	return true
}

// rest makes a session idle. mu is held.
func (p *pool) rest(s *pooled) {
	s.used = p.now()
	p.idle[s.conversation] = s
	s.at.idle++
	s.timer = time.AfterFunc(p.idleLimit, func() { p.expire(s) })
	if s.at.pid != 0 && s.at.pid == s.at.ended { // after it was asked whether it lives
		p.evict(s.at)
	}
	p.serve()
}

// keep enters an idle session; false if there is one already or one is lent, or the pool is closed.
func (p *pool) keep(entry *agentEntry, conversation cli.Conversation, session cli.Session, at *place) bool {
	s := newPooled(entry, cli.Live, conversation, session, at)
	pid := s.info().PID
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.has(conversation) {
		return false
	}
	p.settleIn(s, pid)
	p.rest(s)
	return true
}

// has says whether the conversation has a session. mu is held.
func (p *pool) has(conversation cli.Conversation) bool {
	if p.idle[conversation] != nil {
		return true
	}
	for lent := range p.lent {
		if lent.conversation == conversation {
			return true
		}
	}
	return false
}

// status lists the sessions. Idle ones whose process is dead are closed instead.
func (p *pool) status() []cli.SessionStatus {
	p.mu.Lock()
	var list []cli.SessionStatus
	var sessions []*pooled
	add := func(s *pooled, busy bool) {
		list = append(list, cli.SessionStatus{Conversation: s.conversation, Sandbox: s.sandbox, Busy: busy, Used: s.used})
		sessions = append(sessions, s)
	}
	for _, s := range p.idle {
		add(s, false)
	}
	for s := range p.lent {
		add(s, true)
	}
	p.mu.Unlock()
	var living []cli.SessionStatus
	for i, s := range sessions {
		list[i].SessionInfo = s.info()
		if !list[i].Busy && !list[i].Alive {
			p.expire(s)
			continue
		}
		living = append(living, list[i])
	}
	slices.SortFunc(living, func(a, b cli.SessionStatus) int { return cmp.Compare(a.Conversation, b.Conversation) })
	return living
}
