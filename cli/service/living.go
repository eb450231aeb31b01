package service

import (
	"context"
	"sync"
	"time"

	"ductor/cli"
)

// measureWait is how long a process may take to be measured.
const measureWait = 2 * time.Second

// Live says what lives now, and measures it. ctx bounds that.
func (s *Service) Live(ctx context.Context) cli.Living { return s.pool.live(ctx) }

func (p *pool) live(ctx context.Context) cli.Living {
	l := cli.Living{Sessions: p.status(), MaxMemory: p.maxMemory}
	memory := p.measure(ctx, processes(l.Sessions))
	for i, s := range l.Sessions {
		l.Sessions[i].Memory = memory[processID{s.Sandbox, s.Agent, s.PID}]
	}
	for _, bytes := range memory {
		l.Memory += bytes
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.Processes, l.MaxProcesses, l.Waiting = len(p.places), p.max, len(p.queue)
	return l
}

// processID names an agent's process: two places may use a number at the same time, and so may two agents' machines.
type processID struct {
	sandbox cli.Sandbox
	agent   cli.Agent
	pid     int
}

// processes are those of sessions.
func processes(sessions []cli.SessionStatus) (ids []processID) {
	for _, s := range sessions {
		ids = append(ids, processID{s.Sandbox, s.Agent, s.PID})
	}
	return ids
}

// measure gives the memory of each process that can be measured.
func (p *pool) measure(ctx context.Context, ids []processID) map[processID]int64 {
	ctx, cancel := context.WithTimeout(ctx, measureWait)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	memory, seen := map[processID]int64{}, map[processID]bool{}
	for _, id := range ids {
		measured, ok := p.find(id).(cli.Measured)
		if seen[id] || !ok {
			continue
		}
		seen[id] = true
		all.Go(func() {
			bytes, err := measured.Memory(ctx)
			if err != nil { // it ended just now
				return
			}
			mu.Lock()
			defer mu.Unlock()
			memory[id] = bytes
		})
	}
	all.Wait()
	return memory
}

// find gives an agent's process that this Service has; nil if it has none of this number.
func (p *pool) find(id processID) cli.Process {
	if id.pid == 0 {
		return nil
	}
	for _, l := range p.launchers(id.sandbox) {
		if f, ok := l.(cli.Finder); ok {
			if process := f.Find(id.agent, id.pid); process != nil {
				return process
			}
		}
	}
	return nil
}

// watchMemory keeps the agents below the limit of memory until the service ends.
func (s *Service) watchMemory() {
	tick := time.NewTicker(s.opts.MemoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
		case <-s.pool.measureSoon:
		}
		s.pool.relieve(s.base)
	}
}

// turned asks for a look at the memory, which a turn may have changed.
func (p *pool) turned() {
	select {
	case p.measureSoon <- struct{}{}:
	default:
	}
}

// relieve ends idle processes, the longest idle one first, until what is left is within the limit of memory or
// none is idle.
func (p *pool) relieve(ctx context.Context) {
	memory := p.measure(ctx, processes(p.status()))
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum int64
	for id, bytes := range memory {
		at := p.placeOf(id)
		if at != nil && at.going() {
			continue
		}
		if at != nil {
			at.memory = bytes
			p.typical[at.agent] = max(p.typical[at.agent], bytes)
		}
		sum += bytes
	}
	defer p.serve()
	if p.available != nil && p.available() < 0 && p.evictOldest() > 0 {
		p.log.Info("an idle agent is ended because memory is short", "held", sum)
	}
	for p.maxMemory > 0 && sum > p.maxMemory {
		freed := p.evictOldest()
		if freed == 0 {
			return
		}
		p.log.Info("an idle agent is ended for its memory", "held", sum, "limit", p.maxMemory)
		sum -= freed
	}
}

// Outliving gives what names the processes of a turn that runs, and those that outlive it: it may be called before the
// turn is told to end and after. It names none while a process has other sessions, which may go on in it.
func (s *Service) Outliving(turn cli.TurnID) func(ctx context.Context) []cli.ProcessName {
	session := s.present.session(turn)
	if session == nil { // none was opened yet
		return func(context.Context) []cli.ProcessName { return nil }
	}
	id := s.pool.idOf(session)
	return func(ctx context.Context) []cli.ProcessName { return s.pool.outliving(ctx, session, id) }
}

// session is the one that a turn runs in; nil if it runs in none.
func (p *present) session(turn cli.TurnID) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.turns[turn]; e != nil {
		return e.session
	}
	return nil
}

// idOf names the process of a session, as far as it is known without asking the session.
func (p *pool) idOf(session *pooled) processID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return processID{session.sandbox, session.agent, session.at.pid}
}

// listWait is how long a process may take to name what runs of it.
const listWait = 2 * time.Second

func (p *pool) outliving(ctx context.Context, session *pooled, id processID) []cli.ProcessName {
	if !p.owns(session) {
		return nil
	}
	if id.pid == 0 {
		id.pid = session.info().PID
	}
	process := p.find(id)
	if process == nil {
		return nil
	}
	names := []cli.ProcessName{{Name: string(id.agent), PID: id.pid}}
	if lister, ok := process.(cli.Lister); ok {
		ctx, cancel := context.WithTimeout(ctx, listWait)
		defer cancel()
		if listed, err := lister.Processes(ctx); err == nil {
			names = listed
		}
	}
	return names
}

// owns says whether the session is there, lent or being closed, and the only one of its process.
func (p *pool) owns(session *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.places[session.at] && session.at.users == 1 && session.at.idle == 0
}
