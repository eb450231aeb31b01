package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// measureWait limits how long measuring the processes may take.
const measureWait = 2 * time.Second

// Live describes the live sessions and their memory. When ctx is done, it stops measuring and returns the sizes so far.
func (s *Service) Live(ctx context.Context) cli.Living { return s.pool.live(ctx) }

func (p *pool) live(ctx context.Context) cli.Living {
	l := cli.Living{Sessions: p.status(), MaxMemory: p.opts.maxMemory(), MaxProcesses: p.opts.MaxLive}
	held := p.memory(ctx, l.Sessions)
	for i, s := range l.Sessions {
		l.Sessions[i].Memory = held[idOf(s)]
	}
	for _, bytes := range held {
		l.Memory += bytes
	}
	p.do(func() {
		l.Processes = len(p.living())
		for _, r := range p.queue {
			if r.ahead == nil && !p.barred(r) {
				l.Waiting++
			}
		}
	})
	return l
}

func idOf(s cli.SessionStatus) processID { return processID{s.Sandbox, s.Agent, s.PID} }

// memory measures the processes of the sessions. It omits a process that it cannot measure.
func (p *pool) memory(ctx context.Context, sessions []cli.SessionStatus) map[processID]int64 {
	ctx, cancel := context.WithTimeout(ctx, measureWait)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	held, seen := map[processID]int64{}, map[processID]bool{}
	for _, s := range sessions {
		id := idOf(s)
		measured, ok := p.process(id).(cli.Measured)
		if seen[id] || !ok {
			continue
		}
		seen[id] = true
		all.Go(func() {
			bytes, err := measured.Memory(ctx)
			if err != nil { // usually because the process has just ended
				return
			}
			mu.Lock()
			defer mu.Unlock()
			held[id] = bytes
		})
	}
	all.Wait()
	return held
}

// Outliving returns a function that lists the processes of a running turn. Callers use it after an abort to find the
// processes that are still running. The returned function lists none while other sessions share the turn's process,
// because the processes may belong to those sessions.
func (s *Service) Outliving(turn cli.TurnID) func(ctx context.Context) []cli.ProcessName {
	session := s.present.session(turn)
	if session == nil {
		return func(context.Context) []cli.ProcessName { return nil }
	}
	var id processID // the PID is 0 if the pool does not know it yet
	s.pool.do(func() { id = session.slot.id })
	return func(ctx context.Context) []cli.ProcessName { return s.pool.outliving(ctx, session, id) }
}

// session returns the session that runs a turn, or nil if the turn is not running.
func (p *present) session(turn cli.TurnID) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.turns[turn]; e != nil {
		return e.session
	}
	return nil
}

// listWait limits how long listing a process's descendants may take.
const listWait = 2 * time.Second

func (p *pool) outliving(ctx context.Context, session *pooled, id processID) []cli.ProcessName {
	alone := false
	p.do(func() { alone = slices.Equal(session.slot.entries, []*pooled{session}) && session.state != idle })
	if !alone {
		return nil
	}
	if id.pid == 0 {
		id.pid = session.info().PID
	}
	process := p.process(id)
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
