package cli

import (
	"context"
	"time"
)

// Outliving gives what names the processes of a turn that runs, and those that outlive it: it may be called before the
// turn is told to end and after. It names none while a process has other sessions, which may go on in it.
func (s *Service) Outliving(turn TurnID) func(ctx context.Context) []ProcessName {
	session := s.present.session(turn)
	if session == nil { // none was opened yet
		return func(context.Context) []ProcessName { return nil }
	}
	id := s.pool.idOf(session)
	return func(ctx context.Context) []ProcessName { return s.pool.outliving(ctx, session, id) }
}

// session is the one that a turn runs in; nil if it runs in none.
func (p *present) session(turn TurnID) *pooled {
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

func (p *pool) outliving(ctx context.Context, session *pooled, id processID) []ProcessName {
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
	names := []ProcessName{{Name: string(id.agent), PID: id.pid}}
	if lister, ok := process.(Lister); ok {
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
