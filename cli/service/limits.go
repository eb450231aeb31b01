package service

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ductor/cli"
)

// This file limits the number of agent processes and their memory.

// unmeasured is the size in bytes that the pool assumes for processes of an agent before it has measured one.
const unmeasured = 250 << 20

// lookAgain is how often the pool checks whether the memory suffices for a waiting turn.
const lookAgain = time.Second

// counts reports whether a process counts towards MaxLive. A process does not count while it runs turns and all of them
// wait for users.
func (at *slot) counts() bool {
	waiting := false
	for _, e := range at.entries {
		switch {
		case e.state == idle || e.state >= closing:
		case len(e.approvals) == 0:
			return true
		default:
			waiting = true
		}
	}
	return !waiting
}

// ending reports whether the process is about to end, so that no session may join it.
func (at *slot) ending() bool {
	return !slices.ContainsFunc(at.entries, func(e *pooled) bool { return e.state < closing })
}

// evictable reports whether all sessions of the process are idle, so that the pool may end the process.
func (at *slot) evictable() bool {
	return !at.ending() && !slices.ContainsFunc(at.entries,
		func(e *pooled) bool { return e.state < closing && e.state != idle })
}

func (p *pool) living() []*slot {
	return slices.DeleteFunc(slices.Clone(p.slots), func(at *slot) bool { return at.dead })
}

// expected returns the size in bytes that a new process of the agent will probably have.
func (p *pool) expected(agent cli.Agent) int64 { return cmp.Or(p.typical[agent], unmeasured) }

// lacks returns the limit that would be exceeded if the processes in remaining continued to run, and each request got a
// new process. freedBytes is the memory of other processes that are about to end.
func (p *pool) lacks(remaining []*slot, freedBytes int64, requests ...*request) lack {
	counted := len(requests)
	for _, at := range remaining {
		if at.counts() {
			counted++
		}
	}
	if limit := p.opts.MaxLive; limit > 0 && counted > limit {
		return number
	}
	if p.opts.Available == nil || len(requests) == 0 || len(remaining) == 0 { // the first process may always start
		return enough
	}
	left := p.opts.Available() + freedBytes
	for _, r := range requests {
		left -= p.expected(r.agent)
	}
	for _, at := range p.living() {
		if at.memory == 0 { // the process is starting and has not allocated its memory yet
			left -= p.expected(at.id.agent)
		}
	}
	if left < 0 {
		return memory
	}
	return enough
}

// shortFor returns the limit that prevents all waiting requests from getting a new process, or enough if there is none.
// Processes that are about to end count as ended.
func (p *pool) shortFor(waiting []*request) lack {
	var freed int64
	there := slices.DeleteFunc(p.living(), func(at *slot) bool {
		if at.ending() {
			freed += at.memory
		}
		return at.ending()
	})
	return p.lacks(there, freed, waiting...)
}

// evictOldest ends the least recently used idle process. It returns the size of that process in bytes, at least 1. It
// returns 0 if no process is idle.
func (p *pool) evictOldest() int64 {
	var oldest *slot
	var since time.Time
	for _, at := range p.slots {
		if used := at.lastUse(); at.evictable() && (oldest == nil || used.Before(since)) {
			oldest, since = at, used
		}
	}
	if oldest == nil {
		return 0
	}
	p.evict(oldest)
	return max(oldest.memory, 1)
}

// lastUse returns the time at which an idle session of the process was last used.
func (at *slot) lastUse() (last time.Time) {
	for _, e := range at.entries {
		if e.state == idle && e.used.After(last) {
			last = e.used
		}
	}
	return last
}

func (p *pool) evict(at *slot) {
	for _, e := range at.entries {
		if e.state == idle {
			p.closeInBackground(e)
		}
	}
}

// turnsEnd is the delay of the memory measurement after a turn. Because of the delay, the measurement does not slow
// down the end of the turn for the user, and turns that end at nearly the same time share one measurement.
const turnsEnd = 250 * time.Millisecond

// watchMemory measures the agents, and ends idle ones while they exceed a memory limit. It returns when the service
// ends.
func (s *Service) watchMemory() {
	tick := time.NewTicker(s.opts.MemoryEvery)
	defer tick.Stop()
	var last, since time.Time
	for {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
			since = time.Time{}
		case <-s.pool.look:
			select {
			case <-time.After(turnsEnd):
			case <-s.base.Done():
				return
			}
			since = last
		}
		last = time.Now()
		sessions := s.pool.status()
		held := s.pool.unchangedSizes(sessions, since)
		maps.Copy(held, s.pool.memory(s.base, slices.DeleteFunc(sessions,
			func(l cli.SessionStatus) bool { return held[idOf(l)] > 0 })))
		s.pool.do(func() { s.pool.relieve(held) })
	}
}

// unchangedSizes returns the last measured sizes of those processes that have run no turn since the given time. If the
// given time is zero, it returns none.
func (p *pool) unchangedSizes(sessions []cli.SessionStatus, since time.Time) map[processID]int64 {
	held := map[processID]int64{}
	if since.IsZero() {
		return held
	}
	p.do(func() {
		for _, l := range sessions {
			if at := p.slotOf(idOf(l)); at != nil && !l.Busy {
				held[at.id] = at.memory
			}
		}
	})
	for _, l := range sessions {
		if l.Busy || !l.Used.Before(since) {
			delete(held, idOf(l))
		}
	}
	return held
}

// relieve stores the measured sizes. It then ends idle processes, the least recently used first, until the remaining
// ones are below the memory limit.
func (p *pool) relieve(held map[processID]int64) {
	var sum int64
	for id, bytes := range held {
		at := p.slotOf(id)
		if at != nil && at.ending() {
			continue
		}
		if at != nil {
			at.memory = bytes
			p.typical[id.agent] = max(p.typical[id.agent], bytes)
		}
		sum += bytes
	}
	if p.opts.Available != nil && p.opts.Available() < 0 && p.evictOldest() > 0 {
		p.opts.Logger.Info("an idle agent is ended because memory is short", "held", sum)
	}
	for p.opts.maxMemory() > 0 && sum > p.opts.maxMemory() {
		freed := p.evictOldest()
		if freed == 0 {
			return
		}
		p.opts.Logger.Info("an idle agent is ended for its memory", "held", sum, "limit", p.opts.maxMemory())
		sum -= freed
	}
}

// requestMeasurement makes watchMemory measure the memory soon, but does not wait for the measurement.
func (p *pool) requestMeasurement() {
	select {
	case p.look <- struct{}{}:
	default:
	}
}
