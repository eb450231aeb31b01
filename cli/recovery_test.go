package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// How a live turn that breaks is recovered: never when anything may have happened.
func TestServiceRecovery(t *testing.T) {
	fail := func(kind FailureKind, code int) Result {
		return Result{Err: &Failure{Kind: kind, Code: code, Reason: "first"}}
	}
	for _, tc := range []struct {
		name string
		live func(em *Emitter) // the live turn, after its session was named
		mode Mode              // preferred; Live if empty
		want FailureKind       // empty when it went well
		text string
		runs int // turns that were run
	}{
		{name: "a crash before anything", live: func(em *Emitter) { em.Finish(fail(Crashed, 3)) }, text: "second", runs: 2},
		{name: "a silent exit", live: func(em *Emitter) { em.Finish(fail(Crashed, 0)) }, text: "second", runs: 2},
		{name: "garbage", live: func(em *Emitter) { em.Finish(fail(BadOutput, 1)) }, text: "second", runs: 2},
		{name: "no Result at all", live: func(*Emitter) {}, text: "second", runs: 2},
		{name: "a crash in thought", live: func(em *Emitter) { em.Thinking("hm"); em.Finish(fail(Crashed, 3)) }, text: "second", runs: 2},
		{name: "a crash after text", live: func(em *Emitter) { em.Text("a", "half"); em.Finish(fail(Crashed, 3)) },
			want: Crashed, text: "half", runs: 1},
		{name: "a crash after text that was taken back", live: func(em *Emitter) {
			em.Text("a", "half")
			em.DropText("a")
			em.Finish(fail(Crashed, 3))
		}, want: Crashed, runs: 1},
		{name: "a crash after a tool", live: func(em *Emitter) {
			em.ToolStart(ToolStarted{ID: "1"})
			em.ToolEnd(ToolEnded{ID: "1"})
			em.Finish(fail(Crashed, 3))
		}, want: Crashed, runs: 1},
		{name: "exit 0 with text and no Result", live: func(em *Emitter) { em.Text("a", "answer"); em.Finish(fail(Crashed, 0)) },
			text: "answer", runs: 1},
		{name: "exit 0 with text and an open tool", live: func(em *Emitter) {
			em.Text("a", "half")
			em.ToolStart(ToolStarted{ID: "1"})
			em.Finish(fail(Crashed, 0))
		}, want: Crashed, text: "half", runs: 1},
		{name: "text and no Result from the provider", live: func(em *Emitter) { em.Text("a", "answer") }, text: "answer", runs: 1},
		{name: "not logged in", live: func(em *Emitter) { em.Finish(fail(NotLoggedIn, 0)) }, want: NotLoggedIn, runs: 1},
		{name: "limit reached", live: func(em *Emitter) { em.Finish(fail(LimitReached, 0)) }, want: LimitReached, runs: 1},
		{name: "resume failed", live: func(em *Emitter) { em.Finish(fail(ResumeFailed, 0)) }, want: ResumeFailed, runs: 1},
		{name: "unknown", live: func(em *Emitter) { em.Finish(fail(UnknownFailure, 0)) }, want: UnknownFailure, runs: 1},
		{name: "stalled", live: func(em *Emitter) { em.Finish(Stalled("fake", time.Minute)) }, want: TimedOut, runs: 1},
		{name: "one-shot is not repeated", live: func(em *Emitter) { em.Finish(fail(Crashed, 3)) }, mode: OneShot, want: Crashed, runs: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, req Request, em *Emitter) {
					runs++
					em.Session(s.id, "m")
					if runs == 1 {
						tc.live(em)
						return
					}
					if s.mode != OneShot || req.Resume != "before" || req.Prompt != "ask" {
						t.Errorf("asked again as %q with %+v", s.mode, req)
					}
					em.Text("a", "second")
					em.Finish(Result{})
				}}
				s := newTestService(t, ServiceOptions{Modes: map[Agent]Mode{"fake": tc.mode}}, p)
				r, _ := run(t, s, "fake", Request{Conversation: "a", Prompt: "ask", Resume: "before"})
				var kind FailureKind
				if r.Err != nil {
					kind = r.Err.Kind
				}
				if kind != tc.want || r.Text != tc.text || runs != tc.runs || r.Fallback != (tc.runs == 2) {
					t.Errorf("%d runs, fallback %v, text %q, failure %+v", runs, r.Fallback, r.Text, r.Err)
				}
				closeService(t, s)
			})
		})
	}
}

func TestServiceFallbackThatFailsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ Request, em *Emitter) {
			em.Finish(Result{Err: Failf(Crashed, "", "%s", s.mode)})
		}}
		s := newTestService(t, ServiceOptions{}, p)
		r, _ := run(t, s, "fake", Request{Conversation: "a"})
		if len(p.opened()) != 2 || r.Err == nil || r.Err.Reason != "one-shot" || !r.Fallback {
			t.Errorf("%d sessions, %+v, %+v", len(p.opened()), r, r.Err)
		}
		synctest.Wait()
		for i, session := range p.opened() {
			if !session.isClosed() {
				t.Errorf("session %d was kept", i)
			}
		}
		closeService(t, s)
	})
}

func TestServiceOpenFails(t *testing.T) {
	for _, tc := range []struct {
		kind  FailureKind
		opens int
	}{{NotInstalled, 1}, {NotLoggedIn, 1}, {BadOutput, 2}} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvider{open: func(_ context.Context, s *fakeSession) error {
				if s.mode == Live {
					return Failf(tc.kind, "fake", "no")
				}
				return nil
			}}
			s := newTestService(t, ServiceOptions{}, p)
			r, _ := run(t, s, "fake", Request{})
			if len(p.opened()) != tc.opens || (r.Err == nil) != (tc.opens == 2) || r.Err != nil && r.Err.Kind != tc.kind {
				t.Errorf("%s: %d opened, %+v", tc.kind, len(p.opened()), r.Err)
			}
			closeService(t, s)
		})
	}
}

// A session is kept when only the model failed, and closed when the agent did.
func TestServiceKeepsSessionsThatAreStillGood(t *testing.T) {
	for _, tc := range []struct {
		kind FailureKind
		kept bool
	}{{"", true}, {LimitReached, true}, {Overloaded, true}, {Refused, true}, {DeniedTools, true},
		{ResumeFailed, false}, {NotLoggedIn, false}, {TimedOut, false}, {UnknownFailure, false}} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ Request, em *Emitter) {
				em.Session(s.id, "m")
				r := Result{}
				if tc.kind != "" {
					r.Err = Failf(tc.kind, "", "x")
				}
				em.Finish(r)
			}}
			s := newTestService(t, ServiceOptions{}, p)
			run(t, s, "fake", Request{})
			synctest.Wait()
			if closed := p.opened()[0].isClosed(); closed == tc.kept {
				t.Errorf("after %q the session is closed: %v", tc.kind, closed)
			}
			closeService(t, s)
		})
	}
}

func TestServicePanics(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    *fakeProvider
		text string
	}{
		{"in Open", &fakeProvider{open: func(context.Context, *fakeSession) error { panic("open") }}, ""},
		{"in Turn", &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ Request, em *Emitter) {
			em.Session(s.id, "m")
			em.Text("a", "half")
			em.ToolStart(ToolStarted{ID: "1"})
			panic("turn")
		}}, "half"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestService(t, ServiceOptions{}, tc.p)
				r, events := run(t, s, "fake", Request{Conversation: "a"})
				if r.Err == nil || r.Err.Kind != UnknownFailure || r.Text != tc.text || r.Err.Detail == "" {
					t.Errorf("%+v", r)
				}
				open := 0
				for _, ev := range events {
					switch ev.(type) {
					case ToolStarted:
						open++
					case ToolEnded:
						open--
					}
				}
				if open != 0 {
					t.Errorf("%d tools were left open", open)
				}
				closeService(t, s)
			})
		})
	}
}

// Who aborted wants to hear that, whatever else went wrong because of it.
func TestJudgeOfACutTurn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrAborted)
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	for _, tc := range []struct {
		name    string
		ctx     context.Context
		said    Result
		aborted bool
		kind    FailureKind
	}{
		{"aborted, and it crashed", ctx, Result{Err: Failf(Crashed, "fake", "x")}, true, ""},
		{"aborted, and it was at its limit", ctx, Result{Err: Failf(LimitReached, "fake", "x")}, true, ""},
		{"aborted, and it had just finished", ctx, Result{Text: "all"}, false, ""},
		{"too late, and it crashed", late, Result{Err: Failf(Crashed, "fake", "x")}, false, TimedOut},
		{"too late, and it was at its limit", late, Result{Err: Failf(LimitReached, "fake", "x")}, false, LimitReached},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := judge(tc.ctx, &watch{agent: "fake"}, tc.said, true, nil)
			var kind FailureKind
			if r.Err != nil {
				kind = r.Err.Kind
			}
			if r.Aborted != tc.aborted || kind != tc.kind {
				t.Errorf("aborted %v, %+v", r.Aborted, r.Err)
			}
		})
	}
}
