package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

func TestServiceKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{}
		s := serve(t, p)
		req := cli.Request{Conversation: "a", Prompt: "one", Dir: "/x"}
		one, events := run(t, s, "fake", req)
		if one.Text != "answer to one" || len(events) != 4 || events[0] != (cli.Status{Kind: cli.StatusStarting}) {
			t.Errorf("first %+v, events %v", one, events)
		}
		req.Prompt, req.Resume = "two", one.AgentSessionID
		run(t, s, "fake", req)
		if got := p.opened(); len(got) != 1 || got[0].turns != 2 {
			t.Fatalf("%d sessions were opened", len(got))
		}
		if st := s.pool.status(); len(st) != 1 || st[0].Conversation != "a" || st[0].Busy || !st[0].Alive || st[0].AgentSessionID != "fake-1" {
			t.Errorf("status %+v", st)
		}
		req.Dir = "/y" // another directory needs another process, in the same session
		run(t, s, "fake", req)
		got := p.opened()
		if len(got) != 2 || !got[0].isClosed() || got[1].begin.Resume != one.AgentSessionID {
			t.Fatalf("%d sessions; the first closed %v", len(got), got[0].isClosed())
		}
		got[1].dead = true
		run(t, s, "fake", req)
		if got := p.opened(); len(got) != 3 || !got[1].isClosed() {
			t.Errorf("%d sessions after the process died", len(got))
		}
		closeService(t, s)
		if !p.opened()[2].isClosed() {
			t.Error("Close left a session open")
		}
	})
}

// Two processes of one session would corrupt its history: the next opens when the previous one is closed.
func TestServiceOpensAfterTheFormerClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{}
		p.open = func(_ context.Context, s *fakeSession) error {
			s.closeTime = time.Second
			for _, other := range p.opened() {
				if other != s && !other.isClosed() {
					t.Error("the former session is still open")
				}
			}
			return nil
		}
		s := serve(t, p)
		for _, dir := range []string{"/x", "/y"} {
			run(t, s, "fake", cli.Request{Conversation: "a", Dir: dir})
		}
		s.Release("a")
		run(t, s, "fake", cli.Request{Conversation: "a", Dir: "/z"})
		closeService(t, s)
	})
}

func TestServiceOtherAgentClosesTheFormer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &fakeProvider{agent: "one"}, &fakeProvider{agent: "two"}
		one.open = func(_ context.Context, s *fakeSession) error { s.closeTime = time.Minute; return nil }
		s := serve(t, one, two)
		run(t, s, "one", cli.Request{Conversation: "a"})
		began := time.Now()
		run(t, s, "two", cli.Request{Conversation: "a"})
		if took := time.Since(began); took != 0 {
			t.Errorf("the second agent waited %s for the first to close", took)
		}
		time.Sleep(time.Minute + time.Second)
		if !one.opened()[0].isClosed() || two.opened()[0].isClosed() {
			t.Error("the wrong session is closed")
		}
		closeService(t, s)
	})
}

func TestServiceAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: obedient}
		p.open = func(_ context.Context, s *fakeSession) error { s.closeTime = 20 * time.Millisecond; return nil }
		s := serve(t, p)
		if s.Abort("a") {
			t.Error("aborted what does not run")
		}
		time.AfterFunc(time.Second, func() {
			if st := s.pool.status(); len(st) != 1 || !st[0].Busy {
				t.Errorf("status %+v", st)
			}
			if !s.Abort("a") || s.Abort("b") || s.AbortTurn("2") {
				t.Error("Abort says the wrong thing")
			}
		})
		var told time.Duration
		began := time.Now()
		r := s.Run(t.Context(), "fake", cli.Request{Conversation: "a", Turn: "1"}, func(ev cli.Event) {
			if _, ok := ev.(cli.Result); ok {
				told = time.Since(began)
			}
		})
		if !r.Aborted || r.Err != nil || r.Text != "half" {
			t.Errorf("result %+v", r)
		}
		if took := time.Since(began); told != time.Second || took != time.Second+20*time.Millisecond {
			t.Errorf("told after %s, returned after %s", told, took)
		}
		if !p.opened()[0].isClosed() {
			t.Error("Run returned before the session was closed")
		}
		p.turn = nil
		if r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Turn: "2"}); r.Aborted || r.Err != nil {
			t.Errorf("the next turn ended as %+v", r)
		}
		closeService(t, s)
	})
}

// The session of a turn that the next message replaces stays, unless the agent had to be killed.
func TestServiceKeepsTheSessionOfAReplacedTurn(t *testing.T) {
	for name, alive := range map[string]bool{"the agent ended the turn": true, "the agent had to be ended": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvider{}
				p.turn = func(ctx context.Context, s *fakeSession, req cli.Request, em *turn.Emitter) {
					obedient(ctx, s, req, em)
					s.mu.Lock()
					s.dead = !alive
					s.mu.Unlock()
				}
				s := serve(t, p)
				ctx, replace := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { replace(cli.ErrReplaced) })
				if r := s.Run(ctx, "fake", cli.Request{Conversation: "a", Turn: "1"}, func(cli.Event) {}); !r.Aborted || r.Err != nil {
					t.Errorf("result %+v", r)
				}
				p.turn = nil
				if r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Turn: "2", Resume: p.opened()[0].id}); r.Err != nil {
					t.Errorf("the next turn ended as %+v", r)
				}
				if n := len(p.opened()); (n == 1) != alive {
					t.Errorf("%d sessions were opened", n)
				}
				closeService(t, s)
			})
		})
	}
}

func TestServiceAbortWhileOpening(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvider{open: func(ctx context.Context, _ *fakeSession) error {
				if !obeys {
					time.Sleep(time.Hour)
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			s := newTestService(t, Options{Grace: time.Second}, p)
			time.AfterFunc(time.Minute, func() { s.AbortTurn("1") })
			began := time.Now()
			r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Turn: "1"})
			if took := time.Since(began); !r.Aborted || took > time.Minute+time.Second {
				t.Errorf("%+v after %s", r, took)
			}
			if !obeys {
				time.Sleep(time.Hour)
				synctest.Wait()
				if !p.opened()[0].isClosed() {
					t.Error("the session that came late was not closed")
				}
			}
			closeService(t, s)
		})
	}
}

// A provider that ignores the cancellation, against its contract, blocks nobody forever.
func TestServiceGivesUpADeafProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			em.Session(s.id, "m")
			em.Text("a", "half")
			em.ToolStart(cli.ToolStarted{ID: "1", Name: "Bash"})
			time.Sleep(time.Hour)
			em.Text("a", "late")
			em.Finish(cli.Result{})
		}}
		s := newTestService(t, Options{Grace: time.Second}, p)
		time.AfterFunc(time.Minute, func() { s.Abort("a") })
		r, events := run(t, s, "fake", cli.Request{Conversation: "a"})
		ended, ok := events[len(events)-2].(cli.ToolEnded)
		if !r.Aborted || r.Text != "half" || !ok || ended.ID != "1" {
			t.Errorf("result %+v, events %v", r, events)
		}
		if !p.opened()[0].isClosed() {
			t.Error("its session is not closed")
		}
		n := len(events)
		time.Sleep(2 * time.Hour)
		if len(events) != n {
			t.Error("an event came after the Result")
		}
		closeService(t, s)
	})
}

func TestServiceTimeout(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request time.Duration
		want    time.Duration
	}{{"the service's", 0, time.Hour}, {"the request's", time.Minute, time.Minute}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestService(t, timingOut(time.Hour), &fakeProvider{turn: obedient})
				began := time.Now()
				r, _ := run(t, s, "fake", cli.Request{Timeout: tc.request})
				if r.Err == nil || r.Err.Kind != cli.TimedOut || r.Text != "half" || r.Aborted || time.Since(began) != tc.want {
					t.Errorf("%+v, failure %+v, after %s", r, r.Err, time.Since(began))
				}
				if !errors.Is(r.Err, context.DeadlineExceeded) {
					t.Errorf("cause %v", r.Err.Cause)
				}
				closeService(t, s)
			})
		})
	}
}

func TestServiceStaleTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, timingOut(10*time.Hour), &fakeProvider{turn: obedient})
		time.AfterFunc(2*time.Hour, func() { s.Registry().EndStale("1") })
		r, _ := run(t, s, "fake", cli.Request{Turn: "1"})
		if r.Err == nil || r.Err.Kind != cli.TimedOut || !errors.Is(r.Err, cli.ErrStale) || r.Text != "half" {
			t.Errorf("%+v", r.Err)
		}
		closeService(t, s)
	})
}

// A slow start in one conversation does not affect others.
func TestServiceConversationsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{open: func(_ context.Context, s *fakeSession) error {
			if s.begin.Conversation == "slow" {
				time.Sleep(time.Hour)
			}
			return nil
		}}
		s := newTestService(t, timingOut(2*time.Hour), p)
		done := make(chan cli.Result)
		go func() { done <- s.Run(t.Context(), "fake", cli.Request{Conversation: "slow"}, func(cli.Event) {}) }()
		synctest.Wait()
		began := time.Now()
		run(t, s, "fake", cli.Request{Conversation: "quick"})
		s.Release("quick")
		s.Release("slow")
		s.Abort("quick")
		s.pool.status()
		s.Menu(t.Context(), "", nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("the other conversation took %s", took)
		}
		if r := <-done; r.Err != nil {
			t.Errorf("the slow one failed: %v", r.Err)
		}
		closeService(t, s)
	})
}

func TestServiceEvictsIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{}
		s := newTestService(t, Options{Settings: Settings{IdleLimit: time.Hour, MaxLive: 2}}, p)
		living := func() (names string) {
			synctest.Wait()
			for _, st := range s.pool.status() {
				names += string(st.Conversation)
			}
			return names
		}
		for _, c := range []cli.Conversation{"a", "b", "c"} { // the limit evicts the oldest
			run(t, s, "fake", cli.Request{Conversation: c})
			time.Sleep(time.Minute)
		}
		if got := living(); got != "bc" {
			t.Errorf("%q live, want the last two", got)
		}
		time.Sleep(30 * time.Minute)
		run(t, s, "fake", cli.Request{Conversation: "b", Resume: p.opened()[1].id}) // used again
		time.Sleep(29 * time.Minute)
		if got := living(); got != "b" {
			t.Errorf("%q live, want only what was used within the hour", got)
		}
		for _, session := range p.opened() {
			if open := session.begin.Conversation == "b"; session.isClosed() == open {
				t.Errorf("session of %s is closed: %v", session.begin.Conversation, !open)
			}
		}
		time.Sleep(time.Hour)
		if got := living(); got != "" {
			t.Errorf("%q still live", got)
		}
		closeService(t, s)
	})
}

// The limit rejects nobody: busy sessions are kept beyond it.
func TestServiceBusySessionsAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			time.Sleep(time.Minute)
			em.Session(s.id, "m")
			em.Finish(cli.Result{})
		}}
		s := newTestService(t, atMost(1), p)
		done := make(chan cli.Result)
		for _, c := range []cli.Conversation{"a", "b", "c"} {
			go func() { done <- s.Run(t.Context(), "fake", cli.Request{Conversation: c}, func(cli.Event) {}) }()
		}
		for range 3 {
			if r := <-done; r.Err != nil {
				t.Error(r.Err)
			}
		}
		synctest.Wait()
		if st := s.pool.status(); len(st) != 1 {
			t.Errorf("%d sessions live after the turns, want one", len(st))
		}
		closeService(t, s)
	})
}

func TestServiceRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{}
		p.open = func(_ context.Context, s *fakeSession) error { s.closeTime = time.Minute; return nil }
		s := serve(t, p)
		run(t, s, "fake", cli.Request{Conversation: "a"})
		began := time.Now()
		s.Release("a")
		s.Release("unknown")
		if time.Since(began) != 0 {
			t.Error("Release waited")
		}
		time.Sleep(2 * time.Minute)
		if !p.opened()[0].isClosed() || len(s.pool.status()) != 0 {
			t.Error("the session is still there")
		}
		p.turn = func(_ context.Context, fs *fakeSession, _ cli.Request, em *turn.Emitter) {
			s.Release("a")
			em.Session(fs.id, "m")
			em.Finish(cli.Result{})
		}
		run(t, s, "fake", cli.Request{Conversation: "a"})
		time.Sleep(2 * time.Minute)
		if !p.opened()[1].isClosed() {
			t.Error("a session released in mid turn was kept")
		}
		closeService(t, s)
	})
}

// SetProviders ends no turn. The idle sessions of a replaced provider are closed, and its busy ones after their turns.
func TestSetProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, old, next := &fakeProvider{agent: "kept"}, &fakeProvider{agent: "other"}, &fakeProvider{agent: "other"}
		s := serve(t, kept, old)
		replace := func(providers ...cli.Provider) {
			s.SetProviders(func(cli.Sandbox, []cli.Provider) []cli.Provider { return providers }, nil)
			synctest.Wait()
		}
		run(t, s, "kept", cli.Request{Conversation: "a"})
		run(t, s, "other", cli.Request{Conversation: "b"})
		old.turn = func(_ context.Context, fs *fakeSession, _ cli.Request, em *turn.Emitter) {
			replace(kept, next)
			em.Session(fs.id, "m")
			em.Text("a", "the answer")
			em.Finish(cli.Result{})
		}
		if r, _ := run(t, s, "other", cli.Request{Conversation: "c"}); r.Err != nil || r.Text != "the answer" {
			t.Errorf("the turn of a replaced agent ends as %+v", r)
		}
		synctest.Wait()
		for i, fs := range old.opened() {
			if !fs.isClosed() {
				t.Errorf("session %d of the replaced agent is open", i)
			}
		}
		run(t, s, "kept", cli.Request{Conversation: "a", Resume: "kept-1"})
		if n := len(kept.opened()); n != 1 || kept.opened()[0].isClosed() {
			t.Errorf("the agent that stayed has %d sessions", n)
		}
		run(t, s, "other", cli.Request{Conversation: "c"})
		if len(next.opened()) != 1 || len(old.opened()) != 2 {
			t.Error("the turn after that has another agent")
		}
		replace(kept)
		r, _ := run(t, s, "other", cli.Request{Conversation: "c"})
		if cli.AsFailure("", r.Err).Kind != cli.NotInstalled {
			t.Errorf("a removed agent: %v", r.Err)
		}
		closeService(t, s)
	})
}

// heir records the providers that it replaces.
type heir struct {
	*fakeProvider
	of []cli.Provider
}

func (h *heir) Succeed(former cli.Provider) { h.of = append(h.of, former) }

// A provider that replaces another one of the same agent and account takes over its log-in.
func TestAProviderSucceedsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := func(name cli.Account, p cli.Provider) AccountProvider {
			vars := cli.AccountVars{Home: "H"}
			return AccountProvider{cli.AccountHome{Account: name, Dir: "/" + string(name), AccountVars: vars}, p}
		}
		kept := &heir{fakeProvider: &fakeProvider{agent: "kept"}}
		first, work := &fakeProvider{agent: "a"}, &fakeProvider{agent: "a"}
		s := newTestService(t, Options{
			Providers: []cli.Provider{kept}, Accounts: []AccountProvider{account("work", work)},
		}, first)
		nextFirst, nextWork, added := &heir{fakeProvider: &fakeProvider{agent: "a"}},
			&heir{fakeProvider: &fakeProvider{agent: "a"}}, &heir{fakeProvider: &fakeProvider{agent: "a"}}
		s.SetProviders(func(cli.Sandbox, []cli.Provider) []cli.Provider { return []cli.Provider{kept, nextFirst} },
			[]AccountProvider{account("work", nextWork), account("new", added)})
		for i, c := range []struct {
			heir *heir
			want []cli.Provider
		}{{kept, nil}, {nextFirst, []cli.Provider{first}}, {nextWork, []cli.Provider{work}}, {added, nil}} {
			if !slices.Equal(c.heir.of, c.want) {
				t.Errorf("provider %d succeeds %v", i, c.heir.of)
			}
		}
		closeService(t, s)
	})
}

func TestServiceClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: obedient}
		s := serve(t, p)
		done := make(chan cli.Result)
		go func() { done <- s.Run(t.Context(), "fake", cli.Request{Conversation: "a"}, func(cli.Event) {}) }()
		synctest.Wait()
		go func() {
			for range 2 {
				closeService(t, s)
			}
		}()
		if r := <-done; r.Err == nil || !errors.Is(r.Err, cli.ErrClosing) || r.Text != "half" {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if !p.opened()[0].isClosed() {
			t.Error("a session was left open")
		}
		if r, _ := run(t, s, "fake", cli.Request{}); !errors.Is(r.Err, cli.ErrClosing) {
			t.Errorf("a turn after Close gives %+v", r.Err)
		}
	})
}

func TestServiceCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: func(_ context.Context, _ *fakeSession, _ cli.Request, em *turn.Emitter) {
			time.Sleep(time.Hour)
			em.Finish(cli.Result{})
		}}
		s := newTestService(t, Options{Grace: time.Second}, p)
		go s.Run(t.Context(), "fake", cli.Request{}, func(cli.Event) {})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close gives %v", err)
		}
		time.Sleep(2 * time.Hour)
		closeService(t, s)
	})
}

func TestServiceUnknownAgent(t *testing.T) {
	s := serve(t, &fakeProvider{})
	if r, _ := run(t, s, "nobody", cli.Request{}); r.Err == nil || r.Err.Kind != cli.NotInstalled {
		t.Errorf("%+v", r.Err)
	}
	closeService(t, s)
}

func TestAnAgentThatCannotBeRunInTheConfiguredModeIsRunInItsOwn(t *testing.T) {
	s := newTestService(t, Options{Modes: map[cli.Agent]cli.Mode{"fake": cli.Live}}, &fakeProvider{modes: []cli.Mode{cli.OneShot}})
	if a := s.Agents(t.Context(), ""); len(a) != 1 || a[0].Mode != cli.OneShot {
		t.Errorf("it is run %+v", a)
	}
	closeService(t, s)
}

func TestNewServiceRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts Options
		want string
	}{
		{"no providers", Options{}, "at least one"},
		{"two of a name", Options{Providers: []cli.Provider{&fakeProvider{}, &fakeProvider{}}}, `called "fake"`},
		{"a default that is not there", Options{Settings: Settings{Default: "gone"}, Providers: []cli.Provider{&fakeProvider{}}}, `"gone"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := New(tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// atMost returns options with a limit of processes.
func atMost(processes int) (o Options) {
	o.MaxLive = processes
	return o
}

// on returns options with a launcher.
func on(place cli.Launcher) Options { return Options{Launchers: []cli.Launcher{place}} }

// timingOut returns options with a limit of turns.
func timingOut(after time.Duration) (o Options) {
	o.TurnTimeout = after
	return o
}
