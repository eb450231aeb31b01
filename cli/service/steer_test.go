package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// askingProvider opens sessions that ask and accept messages.
type askingProvider struct {
	fakeProvider
	decide func(ctx context.Context, id cli.ApprovalID, d cli.Decision) error
	steer  func(ctx context.Context, req cli.Request) error
}

type askingSession struct {
	cli.Session
	p *askingProvider
}

func (p *askingProvider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	s, err := p.fakeProvider.Open(ctx, mode, req)
	return askingSession{s, p}, err
}

func (s askingSession) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	return s.p.decide(ctx, id, d)
}

func (s askingSession) Steer(ctx context.Context, req cli.Request) error { return s.p.steer(ctx, req) }

// asking creates a service whose agent asks "1" in each turn and ends the turn at the decision, or after a minute.
func asking(t *testing.T) (*Service, *askingProvider) {
	t.Helper()
	answers := make(chan cli.Decision)
	p := &askingProvider{}
	p.turn = func(ctx context.Context, s *fakeSession, req cli.Request, em *turn.Emitter) {
		em.Session(s.id, "m")
		em.Pass(cli.ApprovalAsked{ID: "1", Tool: "Bash", Title: req.Prompt})
		select {
		case d := <-answers:
			em.Text("a", map[bool]string{true: "allowed", false: "denied"}[d.Allow])
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
		em.Finish(cli.Result{})
	}
	p.decide = func(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
		if id != "1" {
			return cli.ErrNotAsked
		}
		select {
		case answers <- d:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s, err := New(Options{Providers: []cli.Provider{p}})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func TestADecisionReachesTheTurnThatAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := asking(t)
		defer closeService(t, s)
		results := make(chan cli.Result, 1)
		go func() {
			results <- s.Run(t.Context(), "fake", cli.Request{Turn: "t1", Conversation: "a"}, func(cli.Event) {})
		}()
		synctest.Wait()
		if err := s.Decide(t.Context(), "t0", "1", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a turn that does not run took a decision: %v", err)
		}
		if err := s.Decide(t.Context(), "t1", "2", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("what was not asked was decided: %v", err)
		}
		if err := s.Decide(t.Context(), "t1", "1", cli.Decision{Allow: true}); err != nil {
			t.Errorf("decide: %v", err)
		}
		if r := <-results; r.Text != "allowed" {
			t.Errorf("the turn ended with %+v", r)
		}
		if err := s.Decide(t.Context(), "t1", "1", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("an ended turn took a decision: %v", err)
		}
	})
}

// The next turn of the session asks with the same ID, and must not get the answer for the previous one.
func TestALateDecisionDoesNotReachTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := asking(t)
		defer closeService(t, s)
		deliver, slow := p.decide, make(chan struct{})
		p.decide = func(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
			<-slow // like a call that was overtaken by the end of its turn
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return deliver(ctx, id, d)
		}
		late, results := make(chan error, 1), make(chan cli.Result, 1)
		go func() {
			s.Run(t.Context(), "fake", cli.Request{Turn: "t1", Conversation: "a"}, func(cli.Event) {})
			results <- s.Run(t.Context(), "fake", cli.Request{Turn: "t2", Conversation: "a", Resume: "fake-1"}, func(cli.Event) {})
		}()
		synctest.Wait()
		go func() { late <- s.Decide(t.Context(), "t1", "1", cli.Decision{Allow: true}) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		close(slow)
		if err := <-late; err == nil {
			t.Error("a decision of a turn that ended was delivered")
		}
		if r := <-results; r.Text != "" {
			t.Errorf("the next turn was told %q", r.Text)
		}
	})
}

// A provider whose call hangs cannot block the turn, but loses its session.
func TestACallThatHangsEndsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := asking(t)
		hang := make(chan struct{})
		p.decide = func(context.Context, cli.ApprovalID, cli.Decision) error { <-hang; return nil }
		go func() {
			synctest.Wait()
			_ = s.Decide(t.Context(), "t1", "1", cli.Decision{})
		}()
		began := time.Now()
		s.Run(t.Context(), "fake", cli.Request{Turn: "t1", Conversation: "a"}, func(cli.Event) {})
		if took := time.Since(began); took > time.Minute+cli.DefaultGrace+cli.StopSlack {
			t.Errorf("the turn was held for %s", took)
		}
		synctest.Wait()
		if !p.opened()[0].isClosed() {
			t.Error("the session is used again")
		}
		close(hang)
		closeService(t, s)
	})
}

func TestSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := asking(t)
		var steered []string
		p.steer = func(_ context.Context, req cli.Request) error {
			steered = append(steered, req.Prompt+string(req.Task))
			return nil
		}
		if err := s.Steer(t.Context(), "t1", cli.Request{Prompt: "early"}); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("no turn was steered: %v", err)
		}
		go s.Run(t.Context(), "fake", cli.Request{Turn: "t1", Conversation: "a"}, func(cli.Event) {})
		synctest.Wait()
		left := cli.Request{Prompt: "left", Task: cli.TaskCommand}
		if err := s.Steer(t.Context(), "t1", left); err != nil || !slices.Equal(steered, []string{"left"}) {
			t.Errorf("steered %q, %v", steered, err)
		}
		p.steer = func(context.Context, cli.Request) error { panic("defect") }
		if err := s.Steer(t.Context(), "t1", cli.Request{}); err == nil || errors.Is(err, cli.ErrNoTurn) || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a panic gives %v", err)
		}
		closeService(t, s)
	})
}

func TestAnAgentWithoutTheseWaysSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, &fakeProvider{turn: obedient})
		go s.Run(t.Context(), "fake", cli.Request{Turn: "t1", Conversation: "a"}, func(cli.Event) {})
		synctest.Wait()
		if err := s.Steer(t.Context(), "t1", cli.Request{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("steer: %v", err)
		}
		if err := s.Decide(t.Context(), "t1", "1", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("decide: %v", err)
		}
		closeService(t, s)
	})
}

// An agent that broke while it asked may have been allowed to act: its prompt is not repeated automatically.
func TestATurnThatAskedIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := 0
		p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			turns++
			em.Session(s.id, "m")
			em.Pass(cli.ApprovalAsked{ID: "1", Tool: "Bash"})
			em.Finish(cli.Result{Err: cli.Failf(cli.Crashed, "fake", "gone")})
		}}
		s := serve(t, p)
		if r, _ := run(t, s, "fake", cli.Request{Turn: "t1", Conversation: "a"}); r.Err == nil || turns != 1 {
			t.Errorf("%d turns, %+v", turns, r)
		}
		closeService(t, s)
	})
}
