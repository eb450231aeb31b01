package service

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// fakeProvider is an agent without processes: turn and open script it.
type fakeProvider struct {
	agent  cli.Agent
	modes  []cli.Mode
	auth   func(context.Context) cli.Auth
	models func(context.Context) ([]cli.Model, error)
	open   func(context.Context, *fakeSession) error
	turn   func(context.Context, *fakeSession, cli.Request, *turn.Emitter)
	adopt  func(context.Context, cli.LeftRun, *fakeSession) error

	mu       sync.Mutex
	sessions []*fakeSession
}

// fakeSession records its calls.
type fakeSession struct {
	p         *fakeProvider
	mode      cli.Mode
	begin     cli.Request // the request it was opened with
	closeTime time.Duration
	closeErr  error
	pid       int
	process   *measuredProcess // ends with the session; nil for none

	mu     sync.Mutex
	turns  int
	id     cli.AgentSessionID
	dead   bool
	works  bool // has background work
	closed int
	let    int         // number of calls of Detach
	left   cli.LeftRun // the run it was adopted from
	asked  func()      // called once, when Info has its result; may be nil
}

func (p *fakeProvider) Agent() cli.Agent {
	if p.agent == "" {
		return "fake"
	}
	return p.agent
}

func (p *fakeProvider) Modes() []cli.Mode {
	if p.modes == nil {
		return []cli.Mode{cli.Live, cli.OneShot}
	}
	return p.modes
}

func (p *fakeProvider) Auth(ctx context.Context) cli.Auth {
	if p.auth == nil {
		return cli.Auth{State: cli.Authenticated}
	}
	return p.auth(ctx)
}

func (p *fakeProvider) Models(ctx context.Context) ([]cli.Model, error) {
	if p.models == nil {
		return nil, nil
	}
	return p.models(ctx)
}

func (p *fakeProvider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	s := &fakeSession{p: p, mode: mode, begin: req, id: req.Resume}
	p.mu.Lock()
	if s.id == "" {
		s.id = cli.AgentSessionID(fmt.Sprintf("%s-%d", p.Agent(), len(p.sessions)+1))
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

func (p *fakeProvider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	s := &fakeSession{p: p, mode: left.Mode, begin: req, id: cli.AgentSessionID(left.Setting), left: left}
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

// opened lists every session so far.
func (p *fakeProvider) opened() []*fakeSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*fakeSession(nil), p.sessions...)
}

func (s *fakeSession) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	s.mu.Lock()
	s.turns++
	s.mu.Unlock()
	em := turn.NewEmitter(s.p.Agent(), time.Now, emit)
	if s.p.turn != nil {
		s.p.turn(ctx, s, req, em)
		return
	}
	em.Session(s.id, "m")
	em.Text("a", "answer to "+req.Prompt)
	em.Finish(cli.Result{})
}

func (s *fakeSession) Fits(req cli.Request) bool {
	return req.Dir == s.begin.Dir && req.Home == s.begin.Home && (s.turns == 0 || req.Resume == s.id)
}

func (s *fakeSession) Info() cli.SessionInfo {
	s.mu.Lock()
	info, asked := cli.SessionInfo{Agent: s.p.Agent(), Mode: s.mode, AgentSessionID: s.id, PID: s.pid, Alive: s.closed == 0 && !s.dead, Background: s.works}, s.asked
	s.asked = nil
	s.mu.Unlock()
	if asked != nil {
		asked()
	}
	return info
}

// runAs sets the process of the session.
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

// obedient is a turn that answers "half" and waits to be cancelled.
func obedient(ctx context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
	em.Session(s.id, "m")
	em.Text("a", "half")
	<-ctx.Done()
	em.Finish(cli.Cut(ctx, s.p.Agent()))
}

// newTestService creates a Service that is closed with the test.
func newTestService(t *testing.T, opts Options, providers ...*fakeProvider) *Service {
	t.Helper()
	for _, p := range providers {
		opts.Providers = append(opts.Providers, p)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve returns a service with the default options.
func serve(t *testing.T, providers ...*fakeProvider) *Service {
	t.Helper()
	return newTestService(t, Options{}, providers...)
}

// run runs a turn and checks that emit got the Result, once and last.
func run(t *testing.T, s *Service, agent cli.Agent, req cli.Request) (cli.Result, []cli.Event) {
	t.Helper()
	var events []cli.Event
	r := s.Run(t.Context(), agent, req, func(ev cli.Event) { events = append(events, ev) })
	results := 0
	for _, ev := range events {
		if _, ok := ev.(cli.Result); ok {
			results++
		}
	}
	last, ok := events[len(events)-1].(cli.Result)
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
