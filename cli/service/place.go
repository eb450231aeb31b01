package service

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// place stands for one agent process, from before it is started until it is dead: there are as many as the cap
// allows. Sessions that share a process share its place. The pool's lock guards it.
type place struct {
	sandbox cli.Sandbox
	agent   cli.Agent
	pid     int           // 0 until it is known, and where there is none between turns
	users   int           // who holds it: sessions, openings under way, runs that wait for their turn
	idle    int           // those of them that are idle sessions
	closing int           // those of them that are being closed
	memory  int64         // bytes, as last measured
	watched int           // the pid whose end is waited for
	ended   int           // the pid whose end was seen last
	freed   chan struct{} // closed when no session holds it
}

func (at *place) id() processID { return processID{at.sandbox, at.agent, at.pid} }

func (e *agentEntry) process(pid int) processID {
	return processID{e.runEnv.sandbox, e.provider.Agent(), pid}
}

// going says that the process is about to end, and no turn may join it.
func (at *place) going() bool { return at.closing == at.users }

// spare says that the process can be ended for another one.
func (at *place) spare() bool { return at.idle > 0 && at.idle+at.closing == at.users }

// waiter is a turn that waits for a place.
type waiter struct {
	agent   cli.Agent
	granted chan *place   // has room for the one answer
	changed chan struct{} // a token when there may be a process to share, and when another waiter got a place
}

func (w *waiter) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// take makes a place with one user. mu is held.
func (p *pool) take(id processID) *place {
	at := &place{sandbox: id.sandbox, agent: id.agent, pid: id.pid, users: 1, freed: make(chan struct{})}
	p.places[at] = true
	return at
}

// acquire gives a place for a process that is to be started for req, or the one of a process that it will
// share. Where none is free the longest idle process is ended, and where none is idle this waits: first come,
// first served, until ctx is done. wait is called whenever what it waits for changes, but not where a moment is
// enough, in which an idle one ends.
func (p *pool) acquire(ctx context.Context, entry *agentEntry, mode cli.Mode, req cli.Request, wait func(shortage)) (*place, error) {
	if at := p.join(entry, mode, req); at != nil {
		return at, nil
	}
	agent := entry.provider.Agent()
	p.mu.Lock()
	if len(p.queue) == 0 && p.free(agent) {
		defer p.mu.Unlock()
		return p.take(entry.process(0)), nil
	}
	w := &waiter{agent: agent, granted: make(chan *place, 1), changed: make(chan struct{}, 1)}
	p.queue = append(p.queue, w)
	p.serve()
	p.mu.Unlock()
	if at := p.join(entry, mode, req); at != nil { // it began to be shared before anybody could tell w of it
		p.quit(w)
		return at, nil
	}
	var told shortage
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		if now := p.shortageOf(w); now.position > 0 && now != told {
			told = now
			wait(now)
		}
		select {
		case <-look.C: // memory comes back without a word
			p.turned()
			p.mu.Lock()
			p.serve()
			p.mu.Unlock()
		case at := <-w.granted:
			p.mu.Lock()
			defer p.mu.Unlock()
			at.sandbox, at.agent = entry.runEnv.sandbox, entry.provider.Agent()
			return at, nil
		case <-w.changed:
			if at := p.join(entry, mode, req); at != nil {
				p.quit(w)
				return at, nil
			}
		case <-ctx.Done():
			p.quit(w)
			return nil, context.Cause(ctx)
		}
	}
}

// join gives the place of the process that req would share, if there is one.
func (p *pool) join(entry *agentEntry, mode cli.Mode, req cli.Request) *place {
	sharer, ok := entry.provider.(cli.Sharer)
	if !ok || mode != cli.Live {
		return nil
	}
	agent, pid := entry.provider.Agent(), 0
	_ = guard(agent, func() error { pid = sharer.Shares(req); return nil }) // none, then
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.placeOf(entry.process(pid))
	if at == nil || at.going() {
		return nil
	}
	at.users++
	return at
}

// placeOf finds the place of a process. mu is held.
func (p *pool) placeOf(id processID) *place {
	if id.pid == 0 {
		return nil
	}
	for at := range p.places {
		if at.id() == id {
			return at
		}
	}
	return nil
}

// quit takes a waiter out of the queue, and back what it was granted in between.
func (p *pool) quit(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(o *waiter) bool { return o == w })
	select {
	case at := <-w.granted:
		p.leaveLocked(at)
	default:
	}
}

// leave gives up one use of a place. With the last one the place is free.
func (p *pool) leave(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(at)
}

func (p *pool) leaveLocked(at *place) {
	at.users--
	if at.users == 0 {
		delete(p.places, at)
		close(at.freed)
	}
	p.serve()
}

// serve hands free places to those who wait, and has as many idle processes ended as are wanted besides.
// mu is held.
func (p *pool) serve() {
	for len(p.queue) > 0 && p.free(p.queue[0].agent) {
		w := p.queue[0]
		p.queue = p.queue[1:]
		w.granted <- p.take(processID{agent: w.agent})
		for _, other := range p.queue {
			other.wake()
		}
	}
	for p.short() != enough && p.evictOldest() > 0 {
	}
}

// evictOldest ends the process that has been idle for longest and gives what it is known to hold, at least 1;
// 0 if none is idle. mu is held.
func (p *pool) evictOldest() int64 {
	var oldest *place
	var since time.Time
	for at := range p.places {
		if !at.spare() {
			continue
		}
		if used := p.lastUse(at); oldest == nil || used.Before(since) {
			oldest, since = at, used
		}
	}
	if oldest == nil {
		return 0
	}
	p.evict(oldest)
	return max(oldest.memory, 1)
}

// lastUse is when a place's sessions were last used. mu is held.
func (p *pool) lastUse(at *place) (last time.Time) {
	for _, s := range p.idle {
		if s.at == at && s.used.After(last) {
			last = s.used
		}
	}
	return last
}

// evict closes the idle sessions of a place. mu is held.
func (p *pool) evict(at *place) {
	for _, s := range p.idle {
		if s.at == at {
			p.rouse(s)
			p.closeInBackground(s, p.beginClose(s))
		}
	}
}

// placeFor counts the process of a run that was left, whatever the cap.
func (p *pool) placeFor(sandbox cli.Sandbox, run cli.LeftRun) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.take(processID{sandbox, run.Agent, run.PID})
	if !run.Alive { // there is nothing to count
		delete(p.places, at)
	}
	return at
}

// shareLeft adds a user to the place of a run that was left.
func (p *pool) shareLeft(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.users++
}

// giveUp says that a user of a place is being ended; see leaveClosed.
func (p *pool) giveUp(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.closing++
}

// settleIn gives s the place of its process: the one it was opened for, or that of a process it turned out to
// share. mu is held.
func (p *pool) settleIn(s *pooled, pid int) {
	at := p.placeOf(processID{s.sandbox, s.agent, pid})
	switch {
	case at != nil && at != s.at:
		at.users++
		old := s.at
		s.at = at
		p.leaveLocked(old)
	case pid != 0 && s.mode == cli.Live:
		s.at.pid = pid
	}
	p.watchOver(s.at)
	for _, w := range p.queue {
		w.wake()
	}
}

// watchOver drops the idle sessions of a process as soon as it dies. mu is held.
func (p *pool) watchOver(at *place) {
	if at.pid == 0 || at.pid == at.watched {
		return
	}
	process := p.find(at.id())
	if process == nil {
		return
	}
	pid := at.pid
	at.watched = pid
	p.work.more()
	go func() {
		defer p.work.leave()
		select {
		case <-process.Done():
		case <-at.freed:
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		at.ended = pid
		if at.pid == pid { // else the sessions have another process by now
			p.evict(at)
		}
	}()
}
