package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"ductor/cli"
)

// How sessions leave the pool: closed, detached, or kept from being there.

// closeKey names the sessions that must not overlap. An agent has another history in another place.
type closeKey struct {
	sandbox      cli.Sandbox
	conversation cli.Conversation
	agent        cli.Agent
}

func (e *agentEntry) closeKey(conversation cli.Conversation) closeKey {
	return closeKey{e.runEnv.sandbox, conversation, e.provider.Agent()}
}

func (p *pool) expire(old *pooled) {
	p.mu.Lock()
	if p.idle[old.conversation] != old {
		p.mu.Unlock()
		return
	}
	p.rouse(old)
	done := p.beginClose(old)
	p.mu.Unlock()
	p.closeInBackground(old, done)
}

// release closes the conversation's session now if it is idle, after its turn if it is lent.
func (p *pool) release(conversation cli.Conversation) {
	p.mu.Lock()
	if w := p.warming[conversation]; w != nil {
		w.cancel()
	}
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

// discard closes a lent session and returns when it is closed, or will not be for now: then it says why.
func (p *pool) discard(lent *pooled) error {
	p.mu.Lock()
	done := p.beginClose(lent)
	p.mu.Unlock()
	return p.closeNow(lent, done)
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
	old.at.closing++
	done := make(chan struct{})
	key := closeKey{old.sandbox, old.conversation, old.agent}
	p.closing[key] = append(p.closing[key], done)
	p.work.more()
	return done
}

func (p *pool) closeInBackground(old *pooled, done chan struct{}) {
	go func() { _ = p.closeNow(old, done) }() // it is logged
}

// closeNow closes a session. Its place is free once its process is dead.
func (p *pool) closeNow(old *pooled, done chan struct{}) error {
	defer p.work.leave()
	defer p.endClose(closeKey{old.sandbox, old.conversation, old.agent}, done)
	process := p.find(processID{old.sandbox, old.agent, old.info().PID})
	err := p.closeOnce(old)
	if err == nil || process == nil {
		p.leaveClosed(old.at)
		return err
	}
	p.work.more()
	go func() {
		defer p.work.leave()
		defer p.leaveClosed(old.at)
		p.awaitDead(old, process)
	}()
	return err
}

func (p *pool) closeOnce(old *pooled) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.closeWait)
	defer cancel()
	err := guard(old.agent, func() error { return old.session.Close(ctx) })
	if err != nil {
		p.log.Error("a session did not close", "agent", string(old.agent), "conversation", string(old.conversation), "err", err)
	}
	return err
}

// closeAgain is between two tries to close a session that did not close.
const closeAgain = 30 * time.Second

// awaitDead returns when a process that outlived its session is dead, or the service ends.
func (p *pool) awaitDead(old *pooled, process cli.Process) {
	again := time.NewTicker(closeAgain)
	defer again.Stop()
	for {
		select {
		case <-process.Done():
			return
		case <-p.ending:
			return
		case <-again.C:
			if p.closeOnce(old) == nil {
				return
			}
		}
	}
}

func (p *pool) leaveClosed(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.closing--
	p.leaveLocked(at)
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

// awaitClosing waits for the agent's sessions of the conversation that are being closed, and for runs that are ended. It
// says whether there were any and they are gone.
func (p *pool) awaitClosing(ctx context.Context, key closeKey) bool {
	p.mu.Lock()
	all := closeKey{sandbox: key.sandbox, agent: key.agent} // those of a process of several conversations
	waits := slices.Concat(p.closing[key], p.closing[all])
	p.mu.Unlock()
	return awaitAll(ctx, waits) && len(waits) > 0
}

func awaitAll(ctx context.Context, waits []chan struct{}) bool {
	for _, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// closeAll closes what is idle, and makes every lent session close after its turn. The group waits for it.
func (p *pool) closeAll() {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.idle {
		p.rouse(s)
		p.closeInBackground(s, p.beginClose(s))
	}
	p.mu.Unlock()
}

// letGo ends the pool's interest in a lent session, which goes on without it.
func (p *pool) letGo(lent *pooled) {
	p.mu.Lock()
	delete(p.lent, lent)
	p.mu.Unlock()
	_ = guard(lent.agent, func() error { lent.session.Detach(); return nil })
	p.leave(lent.at)
}

// detachAll detaches from what works in the background, and closes what else is idle. What is lent is detached with its turn.
func (p *pool) detachAll() {
	p.mu.Lock()
	p.closed, p.leaving = true, true
	idle := slices.Collect(maps.Values(p.idle))
	for _, s := range idle {
		p.rouse(s)
		p.lent[s] = true
	}
	p.mu.Unlock()
	for _, s := range idle {
		if s.info().Background {
			p.letGo(s)
		} else {
			p.discardInBackground(s)
		}
	}
}

// bar keeps sessions from being opened until the function it returns is called.
func (p *pool) bar(key closeKey) (lift func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.barLocked(key)
}

func (p *pool) barLocked(key closeKey) (lift func()) {
	done := make(chan struct{})
	p.closing[key] = append(p.closing[key], done)
	return func() { p.endClose(key, done) }
}
