package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// Recovery of a live turn that breaks: never if anything may have happened.
func TestServiceRecovery(t *testing.T) {
	fail := func(kind cli.FailureKind, code int) cli.Result {
		return cli.Result{Err: &cli.Failure{Kind: kind, Code: code, Reason: "first"}}
	}
	for _, tc := range []struct {
		name string
		live func(em *turn.Emitter) // the live turn, after its session was named
		mode cli.Mode               // preferred; Live if empty
		want cli.FailureKind        // empty on success
		text string
		runs int // number of turns
	}{
		{name: "a crash before anything", live: func(em *turn.Emitter) { em.Finish(fail(cli.Crashed, 3)) }, text: "second", runs: 2},
		{name: "a silent exit", live: func(em *turn.Emitter) { em.Finish(fail(cli.Crashed, 0)) }, text: "second", runs: 2},
		{name: "garbage", live: func(em *turn.Emitter) { em.Finish(fail(cli.BadOutput, 1)) }, text: "second", runs: 2},
		{name: "no Result at all", live: func(*turn.Emitter) {}, text: "second", runs: 2},
		{name: "a crash in thought", live: func(em *turn.Emitter) { em.Thinking("hm"); em.Finish(fail(cli.Crashed, 3)) }, text: "second", runs: 2},
		{name: "a crash after text", live: func(em *turn.Emitter) { em.Text("a", "half"); em.Finish(fail(cli.Crashed, 3)) },
			want: cli.Crashed, text: "half", runs: 1},
		{name: "a crash after text that was taken back", live: func(em *turn.Emitter) {
			em.Text("a", "half")
			em.GiveUp("a")
			em.Finish(fail(cli.Crashed, 3))
		}, want: cli.Crashed, text: "half", runs: 1},
		{name: "a crash after a tool", live: func(em *turn.Emitter) {
			em.ToolStart(cli.ToolStarted{ID: "1"})
			em.ToolEnd(cli.ToolEnded{ID: "1"})
			em.Finish(fail(cli.Crashed, 3))
		}, want: cli.Crashed, runs: 1},
		{name: "exit 0 with text and no Result", live: func(em *turn.Emitter) { em.Text("a", "half"); em.Finish(fail(cli.Crashed, 0)) },
			want: cli.Crashed, text: "half", runs: 1},
		{name: "exit 0 with text and an open tool", live: func(em *turn.Emitter) {
			em.Text("a", "half")
			em.ToolStart(cli.ToolStarted{ID: "1"})
			em.Finish(fail(cli.Crashed, 0))
		}, want: cli.Crashed, text: "half", runs: 1},
		{name: "text and no Result from the provider", live: func(em *turn.Emitter) { em.Text("a", "answer") }, text: "answer", runs: 1},
		{name: "not logged in", live: func(em *turn.Emitter) { em.Finish(fail(cli.NotLoggedIn, 0)) }, want: cli.NotLoggedIn, runs: 1},
		{name: "limit reached", live: func(em *turn.Emitter) { em.Finish(fail(cli.LimitReached, 0)) }, want: cli.LimitReached, runs: 1},
		{name: "resume failed", live: func(em *turn.Emitter) { em.Finish(fail(cli.ResumeFailed, 0)) }, want: cli.ResumeFailed, runs: 1},
		{name: "unknown", live: func(em *turn.Emitter) { em.Finish(fail(cli.UnknownFailure, 0)) }, want: cli.UnknownFailure, runs: 1},
		{name: "stalled", live: func(em *turn.Emitter) { em.Finish(cli.Stalled("fake", time.Minute)) }, want: cli.TimedOut, runs: 1},
		{name: "one-shot is not repeated", live: func(em *turn.Emitter) { em.Finish(fail(cli.Crashed, 3)) }, mode: cli.OneShot, want: cli.Crashed, runs: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, req cli.Request, em *turn.Emitter) {
					runs++
					em.Session(s.id, "m")
					if runs == 1 {
						tc.live(em)
						return
					}
					if s.mode != cli.OneShot || req.Resume != "before" || req.Prompt != "ask" {
						t.Errorf("asked again as %q with %+v", s.mode, req)
					}
					em.Text("a", "second")
					em.Finish(cli.Result{})
				}}
				s := newTestService(t, Options{Modes: map[cli.Agent]cli.Mode{"fake": tc.mode}}, p)
				r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Prompt: "ask", Resume: "before"})
				var kind cli.FailureKind
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
		p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			em.Finish(cli.Result{Err: cli.Failf(cli.Crashed, "", "%s", s.mode)})
		}}
		s := serve(t, p)
		r, _ := run(t, s, "fake", cli.Request{Conversation: "a"})
		if len(p.opened()) != 2 || r.Err == nil || r.Err.Why().String() != "one-shot" || !r.Fallback {
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
		kind  cli.FailureKind
		opens int
	}{{cli.NotInstalled, 1}, {cli.NotLoggedIn, 1}, {cli.BadOutput, 2}} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvider{open: func(_ context.Context, s *fakeSession) error {
				if s.mode == cli.Live {
					return cli.Failf(tc.kind, "fake", "no")
				}
				return nil
			}}
			s := serve(t, p)
			r, _ := run(t, s, "fake", cli.Request{})
			if len(p.opened()) != tc.opens || (r.Err == nil) != (tc.opens == 2) || r.Err != nil && r.Err.Kind != tc.kind {
				t.Errorf("%s: %d opened, %+v", tc.kind, len(p.opened()), r.Err)
			}
			closeService(t, s)
		})
	}
}

// A session is kept if only the model failed, and closed if the agent did.
func TestServiceKeepsSessionsThatAreStillGood(t *testing.T) {
	for _, tc := range []struct {
		kind cli.FailureKind
		kept bool
	}{{"", true}, {cli.LimitReached, true}, {cli.Overloaded, true}, {cli.APIFailed, true}, {cli.Refused, true}, {cli.DeniedTools, true},
		{cli.ResumeFailed, false}, {cli.NotLoggedIn, false}, {cli.TimedOut, false}, {cli.UnknownFailure, false}} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
				em.Session(s.id, "m")
				r := cli.Result{}
				if tc.kind != "" {
					r.Err = cli.Failf(tc.kind, "", "x")
				}
				em.Finish(r)
			}}
			s := serve(t, p)
			run(t, s, "fake", cli.Request{})
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
		{"in Turn", &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			em.Session(s.id, "m")
			em.Text("a", "half")
			em.ToolStart(cli.ToolStarted{ID: "1"})
			panic("turn")
		}}, "half"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, tc.p)
				r, events := run(t, s, "fake", cli.Request{Conversation: "a"})
				if r.Err == nil || r.Err.Kind != cli.UnknownFailure || r.Text != tc.text || r.Err.Detail == "" {
					t.Errorf("%+v", r)
				}
				open := 0
				for _, ev := range events {
					switch ev.(type) {
					case cli.ToolStarted:
						open++
					case cli.ToolEnded:
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

// A user who aborted sees that, whatever else failed because of it.
func TestJudgeOfACutTurn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cli.ErrAborted)
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	for _, tc := range []struct {
		name    string
		ctx     context.Context
		said    cli.Result
		aborted bool
		kind    cli.FailureKind
	}{
		{"aborted, and it crashed", ctx, cli.Result{Err: cli.Failf(cli.Crashed, "fake", "x")}, true, ""},
		{"aborted, and it was at its limit", ctx, cli.Result{Err: cli.Failf(cli.LimitReached, "fake", "x")}, true, ""},
		{"aborted, and it had just finished", ctx, cli.Result{Text: "all"}, false, ""},
		{"too late, and it crashed", late, cli.Result{Err: cli.Failf(cli.Crashed, "fake", "x")}, false, cli.TimedOut},
		{"too late, and it was at its limit", late, cli.Result{Err: cli.Failf(cli.LimitReached, "fake", "x")}, false, cli.LimitReached},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := judge(tc.ctx, &resultGuard{agent: "fake"}, tc.said, true, nil)
			var kind cli.FailureKind
			if r.Err != nil {
				kind = r.Err.Kind
			}
			if r.Aborted != tc.aborted || kind != tc.kind {
				t.Errorf("aborted %v, %+v", r.Aborted, r.Err)
			}
		})
	}
}

// A turn in accept-edits or auto is not repeated one-shot, because its agent could not ask ductor.
func TestATurnThatNeedsToAskIsNotRepeated(t *testing.T) {
	for _, mode := range cli.PermissionModes() {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			p := &fakeProvider{turn: func(_ context.Context, _ *fakeSession, _ cli.Request, em *turn.Emitter) {
				runs++
				em.Finish(cli.Result{Err: cli.Failf(cli.Crashed, "", "it broke")})
			}}
			s := serve(t, p)
			run(t, s, "fake", cli.Request{Conversation: "a", Permission: mode})
			want := 2
			if mode == cli.AcceptEdits || mode == cli.Auto {
				want = 1
			}
			if runs != want {
				t.Errorf("in %s it runs %d times", mode, runs)
			}
			closeService(t, s)
		})
	}
}
