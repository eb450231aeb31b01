package service

import (
	"cmp"
	"slices"
	"time"

	"ductor/cli"
)

func newPool(c *core, launchers func(cli.Sandbox) []cli.Launcher) *pool {
	p := &pool{
		core: c, launchers: launchers, typical: map[cli.Agent]int64{},
		commands: make(chan command), over: make(chan struct{}), look: make(chan struct{}, 1),
	}
	go p.run()
	return p
}

// run executes the commands of the pool. It returns when the service has no more work.
func (p *pool) run() {
	defer close(p.over)
	for {
		select {
		case c := <-p.commands:
			c.run()
			p.serve()
			close(c.done)
		case <-p.work.idle:
			return
		}
	}
}

// left adds an entry for a run of the previous process. A session will attach to the run. The limits do not apply to
// the run.
func (p *pool) left(left leftTurn) *pooled {
	run := left.run
	e := &pooled{closeKey: left.closeKey(), entry: left.entry(), mode: run.Mode, state: opening}
	id := processID{e.sandbox, run.Agent, run.PID}
	if !run.Alive {
		id.pid = 0
	}
	p.do(func() {
		p.add(e, cmp.Or(p.slotOf(id), &slot{id: id}))
		e.slot.dead = !run.Alive
	})
	return e
}

// lend marks an entry as busy with a turn of the conversation, and sets the entry's session.
func (p *pool) lend(e *pooled, conversation cli.Conversation, session cli.Session) {
	e.session = session
	info, process := p.inspect(e)
	p.do(func() {
		e.conversation, e.state, e.used = conversation, busy, p.opts.Now()
		p.settle(e, info.PID, process)
	})
}

// keep adds a session that was opened before its turn, and marks it as idle. It returns false if the conversation no
// longer needs the session.
func (p *pool) keep(e *pooled, session cli.Session) (kept bool) {
	if e.session == nil { // do not write the field of an idle session, because status may be reading it
		e.session = session
	}
	info, process := p.inspect(e)
	p.do(func() {
		kept = p.phase == keeping && e.wanted() && p.find(e.conversation, idle, busy, expiring) == nil
		if kept {
			p.rest(e, info.PID, process)
		}
	})
	return kept
}

// giveBack marks a session as idle, so that the next turn can use it. It returns false if the pool does not accept the
// session; the caller must then close it. If the pool is detaching, giveBack detaches from a session with background
// work.
func (p *pool) giveBack(e *pooled) (kept bool) {
	info, process := p.inspect(e)
	p.do(func() {
		kept = info.Alive && e.mode == cli.Live && e.state != expiring && e.wanted() &&
			p.find(e.conversation, idle) == nil &&
			(p.phase == keeping || p.phase == detaching && info.Background)
		switch {
		case !kept:
		case p.phase == detaching:
			p.beginClose(e)
			go p.detach(e)
		default:
			p.rest(e, info.PID, process)
		}
	})
	return kept
}

func (p *pool) rest(e *pooled, pid int, process cli.Process) {
	p.settle(e, pid, process)
	e.state, e.used, e.ahead = idle, p.opts.Now(), nil
	clear(e.approvals)
	p.expireLater(e)
	if process != nil && exited(process) {
		p.evict(e.slot)
	}
}

// expireLater closes a session after it has been idle for IdleLimit.
func (p *pool) expireLater(e *pooled) {
	e.stopExpiry()
	var expiry *time.Timer
	expiry = time.AfterFunc(p.opts.IdleLimit, func() {
		p.do(func() {
			if e.state == idle && e.expiry == expiry { // the session was not used meanwhile
				p.closeInBackground(e)
			}
		})
	})
	e.expiry = expiry
}

func exited(process cli.Process) bool {
	select {
	case <-process.Done():
		return true
	default:
		return false
	}
}

// settle updates an entry when the PID of its process becomes known. If the pool already has a slot for this process,
// because sessions share the process, settle moves the entry to that slot. settle also starts a goroutine that closes
// the idle sessions of the process when the process ends.
func (p *pool) settle(e *pooled, pid int, process cli.Process) {
	if at := p.slotOf(processID{e.sandbox, e.agent, pid}); at != nil && at != e.slot {
		p.remove(e)
		p.add(e, at)
	} else if pid != 0 && e.mode == cli.Live {
		e.slot.id.pid, e.slot.dead = pid, false
	}
	at := e.slot
	if process == nil || at.id.pid != pid || at.watched == pid {
		return
	}
	at.watched = pid
	p.work.Go(func() {
		select {
		case <-process.Done():
		case <-at.empty:
			return
		}
		p.do(func() {
			if at.id.pid == pid { // with another PID, a new process is using the slot
				p.evict(at)
			}
		})
	})
}

// suits reports whether e is an entry for this agentEntry, and its session can run req in this mode.
func (e *pooled) suits(entry *agentEntry, mode cli.Mode, req cli.Request) (fits bool) {
	if e.entry != entry || e.conversation != req.Conversation || e.mode != mode || !e.info().Alive {
		return false
	}
	_ = guard(e.agent, func() error { fits = e.session.Fits(req); return nil }) // after a panic, fits is false
	return fits
}

// status lists the sessions. It omits idle sessions whose process has ended.
func (p *pool) status() (living []cli.SessionStatus) {
	var list []cli.SessionStatus
	var entries []*pooled
	p.do(func() {
		for e := range p.entries() {
			if e.state == idle || e.state == busy || e.state == expiring {
				list = append(list, cli.SessionStatus{Conversation: e.conversation, Sandbox: e.sandbox,
					Busy: e.state != idle, Used: e.used})
				entries = append(entries, e)
			}
		}
	})
	for i, e := range entries {
		if list[i].SessionInfo = e.info(); list[i].Busy || list[i].Alive {
			living = append(living, list[i])
		}
	}
	slices.SortFunc(living, func(a, b cli.SessionStatus) int { return cmp.Compare(a.Conversation, b.Conversation) })
	return living
}

// waitsForUser records whether a turn is waiting for its user to answer a request.
func (p *pool) waitsForUser(e *pooled, id cli.ApprovalID, waiting bool) {
	p.do(func() {
		if waiting && (e.state == busy || e.state == expiring) {
			e.approvals[id] = true
		} else {
			delete(e.approvals, id)
		}
	})
}

// release closes the conversation's session. If the session runs a turn, it is closed after the turn.
func (p *pool) release(conversation cli.Conversation) {
	p.do(func() {
		p.cancelAhead(conversation)
		for e := range p.entries() {
			switch {
			case e.conversation != conversation:
			case e.state == busy:
				e.state = expiring
			case e.state == idle:
				p.closeInBackground(e)
			}
		}
	})
}

// retire closes the sessions of agents that SetProviders replaced. It closes idle sessions now; busy ones are closed
// after their turns.
func (p *pool) retire(agents []*agentEntry) {
	p.do(func() {
		for _, entry := range agents {
			entry.replaced = true
		}
		for e := range p.entries() {
			switch {
			case e.wanted():
			case e.state == warming:
				e.ahead.cancel()
			case e.state == idle:
				p.closeInBackground(e)
			}
		}
	})
}

// cancelAhead cancels every warmUp of the conversation, in the pool and in the queue.
func (p *pool) cancelAhead(conversation cli.Conversation) {
	for e := range p.entries() {
		if e.conversation == conversation && e.state == warming {
			e.ahead.cancel()
		}
	}
	for _, r := range p.queue {
		if r.conversation == conversation && r.ahead != nil {
			r.ahead.cancel()
		}
	}
}

// closeAll closes idle sessions now, and makes the pool close busy sessions after their turns. It does not wait.
func (p *pool) closeAll() {
	p.do(func() {
		p.phase = closed
		for e := range p.entries() {
			if e.state == idle {
				p.closeInBackground(e)
			}
		}
	})
}

// detachAll detaches from idle sessions that work in the background, and closes the other idle sessions. The same
// happens to each busy session after its turn.
func (p *pool) detachAll() {
	var all []*pooled
	p.do(func() {
		p.phase = detaching
		for e := range p.entries() {
			if e.state == idle {
				e.state = busy
				all = append(all, e)
			}
		}
	})
	for _, e := range all {
		if !p.giveBack(e) {
			p.discardInBackground(e)
		}
	}
}
