package service

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

func newRequest(entry *agentEntry, mode cli.Mode, req cli.Request, ahead *warmUp) *request {
	r := &request{
		closeKey: entry.closeKey(req.Conversation), entry: entry, mode: mode, ahead: ahead,
		granted: make(chan *pooled, 1), short: make(chan shortage, 1), shares: func() int { return 0 },
	}
	if sharer, ok := entry.provider.(cli.Sharer); ok && mode == cli.Live {
		r.shares = func() (pid int) {
			_ = guard(r.agent, func() error { pid = sharer.Shares(req); return nil })
			return pid
		}
	}
	return r
}

// acquire returns the conversation's idle session for a turn. If that session cannot run the request, acquire closes
// it. If there is no idle session, acquire returns an entry without a session, and the caller opens the session.
//
// If the limit of processes is reached, acquire ends the least recently used idle process. If no process is idle,
// acquire waits in a queue until ctx is done. acquire calls onWait whenever the reason for waiting changes, but not for
// the short time in which an idle process ends.
//
// If ahead is not nil, the session is for a later turn. In this case, acquire neither waits for a process nor ends one.
// acquire returns nil if no session should be opened now.
func (p *pool) acquire(ctx context.Context, entry *agentEntry, mode cli.Mode, req cli.Request, ahead *warmUp,
	onWait func(shortage)) (*pooled, error) {
	for {
		e, err := p.request(ctx, newRequest(entry, mode, req, ahead), onWait)
		switch {
		case e == nil || e.session == nil || e.suits(entry, mode, req):
			return e, err
		case ahead == nil:
			p.discardInBackground(e)
		// Wait for the end of the old process, before a new session is opened.
		default:
			_ = p.discard(e)
		}
	}
}

func (p *pool) request(ctx context.Context, r *request, onWait func(shortage)) (*pooled, error) {
	p.do(func() { p.queue = append(p.queue, r) })
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case e := <-r.granted:
			return e, nil
		case now := <-r.short:
			onWait(now)
		case <-look.C: // check again, because no event reports that memory is available
			p.requestMeasurement()
			p.do(func() {})
		case <-ctx.Done():
			p.do(func() { p.queue = slices.DeleteFunc(p.queue, func(other *request) bool { return other == r }) })
			select {
			case e := <-r.granted: // the answer arrived just before ctx ended
				return e, nil
			default:
				return nil, context.Cause(ctx)
			}
		}
	}
}

// serve answers all queued requests that need not wait. For those that must wait, it ends idle processes and reports
// the reason for waiting.
func (p *pool) serve() {
	var waiting []*request
	p.queue = slices.DeleteFunc(p.queue, func(r *request) bool {
		e := p.find(r.conversation, idle)
		switch {
		case e != nil:
			e.used = p.opts.Now()
		case p.barred(r):
			return false
		// Open no session ahead of its turn if the pool is closing, or if the conversation already uses a session.
		case r.ahead != nil && (p.phase != keeping || p.find(r.conversation, opening, busy, expiring) != nil):
		default:
			e = p.start(r, len(waiting) == 0)
			if e == nil && r.ahead == nil {
				waiting = append(waiting, r)
				return false
			}
		}
		r.answer(e)
		return true
	})
	for p.shortFor(waiting) != enough && p.evictOldest() > 0 {
	}
	of := p.shortFor(waiting)
	for i, r := range waiting {
		if now := (shortage{of: of, position: i + 1}); of != enough && now != r.told {
			r.told = now
			r.forget()
			r.short <- now
		}
	}
}

// start creates an entry for a request, in a process that sessions share or in a new process. It returns nil if neither
// is possible. Only the first waiting request can get a new process, so that no other request overtakes it.
func (p *pool) start(r *request, first bool) *pooled {
	at := p.slotOf(processID{r.sandbox, r.agent, r.shares()})
	if at == nil || at.ending() {
		if !first || p.lacks(p.living(), 0, r) != enough {
			return nil
		}
		at = &slot{id: processID{sandbox: r.sandbox, agent: r.agent}}
	}
	return p.add(&pooled{closeKey: r.closeKey, entry: r.entry, mode: r.mode, state: opening}, at)
}

// answer sends e to the caller of pool.request. e is nil if no session should be opened ahead of a turn.
func (r *request) answer(e *pooled) {
	switch {
	case e == nil:
	case r.ahead != nil:
		e.state, e.ahead = warming, r.ahead
	case e.session != nil:
		e.state = busy
	}
	r.forget()
	r.granted <- e
}

// forget empties the channel r.short. The channel may contain the reason why the request waits, which no longer applies.
func (r *request) forget() {
	select {
	case <-r.short:
	default:
	}
}

// barred reports whether the request must wait. There are two reasons:
//
//   - A session with the same closeKey is being closed. If the closing entry has no conversation, its process serves
//     several conversations. All requests for the agent then wait.
//   - A session with the same closeKey is being opened or checked ahead of a turn. If the request itself is ahead of a
//     turn, it also waits for such sessions of other agents in its conversation.
func (p *pool) barred(r *request) bool {
	all := closeKey{sandbox: r.sandbox, agent: r.agent}
	for e := range p.entries() {
		switch {
		case e.state == closing && (e.closeKey == r.closeKey || e.closeKey == all),
			e.state == warming && (e.closeKey == r.closeKey || r.ahead != nil && e.conversation == r.conversation):
			return true
		}
	}
	return false
}
