package cli

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// fakeProvider is an agent without processes: turn and open say what it does.
type fakeProvider struct {
	agent  Agent
	modes  []Mode
	auth   func(context.Context) Auth
	models func(context.Context) ([]Model, error)
	open   func(context.Context, *fakeSession) error
	turn   func(context.Context, *fakeSession, Request, *Emitter)
	adopt  func(context.Context, LeftRun, *fakeSession) error

	mu       sync.Mutex
	sessions []*fakeSession
}

// fakeSession remembers what was done to it.
type fakeSession struct {
	p         *fakeProvider
	mode      Mode
	begin     Request // it was opened with
	closeTime time.Duration
	closeErr  error
	pid       int
	process   *measuredProcess // ends with the session; nil for none

	mu     sync.Mutex
	turns  int
	id     AgentSessionID
	dead   bool
	closed int
	let    int     // how often Detach was called
	left   LeftRun // what it was adopted from
	asked  func()  // called once Info knows what it says, once; may be nil
}

func (p *fakeProvider) Agent() Agent {
	if p.agent == "" {
		return "fake"
	}
	return p.agent
}

func (p *fakeProvider) Modes() []Mode {
	if p.modes == nil {
		return []Mode{Live, OneShot}
	}
	return p.modes
}

func (p *fakeProvider) Auth(ctx context.Context) Auth {
	if p.auth == nil {
		return Auth{State: Authenticated}
	}
	return p.auth(ctx)
}

func (p *fakeProvider) Models(ctx context.Context) ([]Model, error) {
	if p.models == nil {
		return nil, nil
	}
	return p.models(ctx)
}

func (p *fakeProvider) Open(ctx context.Context, mode Mode, req Request) (Session, error) {
	s := &fakeSession{p: p, mode: mode, begin: req, id: req.Resume}
	p.mu.Lock()
	if s.id == "" {
		s.id = AgentSessionID(fmt.Sprintf("%s-%d", p.Agent(), len(p.sessions)+1))
	}
	p.sessions = append(p.sessions, s)
	p.mu.Unlock()
	if p.open != nil {
		if err := p.open(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *fakeProvider) Adopt(ctx context.Context, left LeftRun, req Request) (Session, error) {
	s := &fakeSession{p: p, mode: left.Mode, begin: req, id: AgentSessionID(left.Setting), left: left}
	if p.adopt != nil {
		if err := p.adopt(ctx, left, s); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, s)
	return s, nil
}

// opened lists every session there was.
func (p *fakeProvider) opened() []*fakeSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*fakeSession(nil), p.sessions...)
}

func (s *fakeSession) Turn(ctx context.Context, req Request, emit func(Event)) {
	s.mu.Lock()
	s.turns++
	s.mu.Unlock()
	em := NewEmitter(s.p.Agent(), time.Now, emit)
	if s.p.turn != nil {
		s.p.turn(ctx, s, req, em)
		return
	}
	em.Session(s.id, "m")
	em.Text("a", "answer to "+req.Prompt)
	em.Finish(Result{})
}

func (s *fakeSession) Fits(req Request) bool {
	return req.Dir == s.begin.Dir && req.Home == s.begin.Home && (s.turns == 0 || req.Resume == s.id)
}

func (s *fakeSession) Info() SessionInfo {
	s.mu.Lock()
	info, asked := SessionInfo{Agent: s.p.Agent(), Mode: s.mode, AgentSessionID: s.id, PID: s.pid, Alive: s.closed == 0 && !s.dead}, s.asked
	s.asked = nil
	s.mu.Unlock()
	if asked != nil {
		asked()
	}
	return info
}

// runAs gives the session a process.
func (s *fakeSession) runAs(pid int, process *measuredProcess) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid, s.process = pid, process
}

func (s *fakeSession) Close(context.Context) error {
	time.Sleep(s.closeTime)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	if s.process != nil && s.closeErr == nil {
		s.process.die()
	}
	return s.closeErr
}

func (s *fakeSession) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.let++
}

func (s *fakeSession) isDetached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.let > 0
}

func (s *fakeSession) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed > 0
}

// obedient is a turn that says "half" and waits to be cancelled.
func obedient(ctx context.Context, s *fakeSession, _ Request, em *Emitter) {
	em.Session(s.id, "m")
	em.Text("a", "half")
	<-ctx.Done()
	em.Finish(Cut(ctx, s.p.Agent()))
}

// newTestService makes a Service that is closed with the test.
func newTestService(t *testing.T, opts ServiceOptions, providers ...*fakeProvider) *Service {
	t.Helper()
	for _, p := range providers {
		opts.Providers = append(opts.Providers, p)
	}
	s, err := NewService(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a turn and checks that emit got the Result, once and last.
func run(t *testing.T, s *Service, agent Agent, req Request) (Result, []Event) {
	t.Helper()
	var events []Event
	r := s.Run(t.Context(), agent, req, func(ev Event) { events = append(events, ev) })
	results := 0
	for _, ev := range events {
		if _, ok := ev.(Result); ok {
			results++
		}
	}
	last, ok := events[len(events)-1].(Result)
	if results != 1 || !ok || last.Text != r.Text || last.Err != r.Err || last.Aborted != r.Aborted || last.Fallback != r.Fallback {
		t.Errorf("%d Results among %d events, the last event is %#v, returned was %#v", results, len(events), last, r)
	}
	return r, events
}

func closeService(t *testing.T, s *Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}
