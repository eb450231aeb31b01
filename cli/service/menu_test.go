package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// inState returns an agent in the given state.
func inState(agent cli.Agent, state cli.AuthState, models ...cli.ModelID) *fakeProvider {
	return &fakeProvider{
		agent: agent,
		auth:  func(context.Context) cli.Auth { return cli.Auth{State: state, Fix: "do this"} },
		models: func(context.Context) (list []cli.Model, err error) {
			for _, id := range models {
				list = append(list, cli.Model{Agent: agent, ID: id, Name: "The " + string(id)})
			}
			return list, nil
		},
	}
}

func TestMenu(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := inState("slow", cli.Authenticated)
		slow.models = func(ctx context.Context) ([]cli.Model, error) { <-ctx.Done(); return nil, ctx.Err() }
		panics := inState("panics", cli.Authenticated)
		panics.models = func(context.Context) ([]cli.Model, error) { panic("models") }
		s := newTestService(t, Options{MenuWait: 3 * time.Second},
			inState("good", cli.Authenticated, "m1", "m2"), inState("out", cli.Installed, "m"), inState("gone", cli.NotFound), slow, panics)
		began := time.Now()
		menu := s.Menu(t.Context(), "", nil)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s: the agents were not asked at the same time, or without a deadline", took)
		}
		want := []struct {
			agent  cli.Agent
			models int
			kind   cli.FailureKind
		}{{"good", 2, ""}, {"out", 0, cli.NotLoggedIn}, {"gone", 0, cli.NotInstalled}, {"slow", 0, cli.TimedOut}, {"panics", 0, cli.UnknownFailure}}
		for i, w := range want {
			var kind cli.FailureKind
			if f := cli.AsFailure(menu[i].Agent, menu[i].Err); f != nil {
				kind = f.Kind
			}
			if menu[i].Agent != w.agent || len(menu[i].Models) != w.models || kind != w.kind {
				t.Errorf("entry %d is %+v", i, menu[i])
			}
		}
		if !errors.Is(menu[3].Err, context.DeadlineExceeded) {
			t.Errorf("the slow one's error is %v", menu[3].Err)
		}
		closeService(t, s)
	})
}

// A caller that does not want to wait gets the known answers, and the rest is loaded in the background.
func TestWhatIsKnownIsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := inState("slow", cli.Authenticated, "m")
		auth := slow.auth
		slow.auth = func(ctx context.Context) cli.Auth { time.Sleep(time.Second); return auth(ctx) }
		s := serve(t, slow)
		began := time.Now()
		if e := s.Menu(cli.AtOnce(t.Context()), "", nil)[0]; !errors.Is(e.Err, cli.ErrLoading) || e.Agent != "slow" {
			t.Errorf("the cold menu has %+v", e)
		}
		if got, _, err := s.Default(cli.AtOnce(t.Context()), "", nil); got != "slow" || err != nil {
			t.Errorf("the default of which nothing is known is %q, %v", got, err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
		time.Sleep(2 * time.Second)
		s.Menu(cli.AtOnce(t.Context()), "", nil) // its models are loaded once it is known to be usable
		synctest.Wait()
		if e := s.Menu(cli.AtOnce(t.Context()), "", nil)[0]; e.Err != nil || len(e.Models) != 1 {
			t.Errorf("the menu that was looked up has %+v", e)
		}
		closeService(t, s)
	})
}

// An old answer is returned at once and renewed in the background. Waiting for one agent does not wait for the others.
func TestAnOldListIsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p, slow := inState("fake", cli.Authenticated), inState("slow", cli.Authenticated, "m")
		p.models = func(context.Context) ([]cli.Model, error) {
			asked++
			time.Sleep(time.Second)
			return []cli.Model{{ID: cli.ModelID(fmt.Sprint(asked))}}, nil
		}
		slow.auth = func(ctx context.Context) cli.Auth { <-ctx.Done(); return cli.Auth{State: cli.Authenticated} }
		s := newTestService(t, Options{MenuTTL: time.Minute}, p, slow)
		began := time.Now()
		menu := s.Menu(t.Context(), "", nil, "fake")
		if took := time.Since(began); took != time.Second || len(menu[0].Models) != 1 || !errors.Is(menu[1].Err, cli.ErrLoading) {
			t.Errorf("after %s the menu is %+v", took, menu)
		}
		time.Sleep(time.Hour)
		for _, want := range []cli.ModelID{"1", "2"} {
			if e := s.Menu(cli.AtOnce(t.Context()), "", nil)[0]; e.Err != nil || e.Models[0].ID != want {
				t.Errorf("at once it is %+v, want %s", e, want)
			}
			time.Sleep(2 * time.Second)
		}
		closeService(t, s)
	})
}

// An agent that did not answer whether it is logged in does not count as logged out. It gets the prompt unless a
// fallback can answer.
func TestAnAgentThatDoesNotSayWhetherItIsLoggedIn(t *testing.T) {
	p := inState("fake", cli.Installed)
	p.auth = func(context.Context) cli.Auth {
		return cli.Auth{State: cli.Installed, Problem: cli.Failf(cli.TimedOut, "fake", "so slow")}
	}
	s := serve(t, p)
	if agent, instead, err := s.Default(t.Context(), "", nil); agent != "fake" || instead != nil || err != nil {
		t.Errorf("if no other can answer, the prompt goes to %q instead of %v, %v", agent, instead, err)
	}
	err := s.Menu(t.Context(), "", nil)[0].Err
	if f := cli.AsFailure("", err); f.Kind != cli.TimedOut || f.Error() != "Fake took too long and was stopped: so slow." {
		t.Errorf("it is told as %v", err)
	}
	if said := s.Agents(t.Context(), "")[0].String(); !strings.Contains(said, "does not say whether it is logged in") {
		t.Errorf("the log says %q", said)
	}
	closeService(t, s)
	s = newTestService(t, Options{Settings: Settings{Fallback: []cli.Agent{"other"}}}, p,
		inState("other", cli.Authenticated))
	if agent, instead, err := s.Default(t.Context(), "", nil); agent != "other" || instead == nil || instead.Kind != cli.TimedOut || err != nil {
		t.Errorf("if a fallback can answer, the prompt goes to %q instead of %v, %v", agent, instead, err)
	}
	closeService(t, s)
}

// A user logs in while an agent is still being asked whether it is logged in. The answer is outdated when it comes.
func TestRefreshDropsTheAnswerToAnEarlierQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inState("fake", cli.Installed)
		var loggedIn atomic.Bool
		p.auth = func(context.Context) cli.Auth {
			state := cli.Installed
			if loggedIn.Load() {
				state = cli.Authenticated
			}
			time.Sleep(time.Second)
			return cli.Auth{State: state, Fix: "log in"}
		}
		s := newTestService(t, Options{MenuTTL: 10 * time.Minute}, p)
		waits := make(chan cli.MenuEntry)
		go func() { waits <- s.Menu(t.Context(), "", nil)[0] }()
		time.Sleep(500 * time.Millisecond)
		loggedIn.Store(true)
		s.Refresh()
		for _, got := range []cli.MenuEntry{s.Menu(t.Context(), "", nil)[0], <-waits} {
			if got.Err != nil || got.Auth.State != cli.Authenticated {
				t.Errorf("after the log-in, the menu shows %v, %v", got.Auth.State, got.Err)
			}
		}
		time.Sleep(time.Minute)
		if got := s.Menu(t.Context(), "", nil)[0]; got.Auth.State != cli.Authenticated {
			t.Errorf("a minute later, the menu shows %v", got.Auth.State)
		}
		closeService(t, s)
	})
}

// A list is loaded periodically, renewed in the background, and never returned after a failure.
func TestMenuIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, broken := 0, false
		p := inState("fake", cli.Authenticated)
		p.models = func(context.Context) ([]cli.Model, error) {
			asked++
			time.Sleep(time.Second)
			if broken {
				return []cli.Model{{ID: "stale"}}, errors.New("no answer")
			}
			return []cli.Model{{ID: cli.ModelID(fmt.Sprint(asked))}}, nil
		}
		s := newTestService(t, Options{MenuTTL: 10 * time.Minute}, p)
		show := func() (id string, took time.Duration) {
			began := time.Now()
			e := s.Menu(t.Context(), "", nil)[0]
			if e.Err != nil {
				if e.Models != nil {
					t.Error("models are shown beside an error")
				}
				return "error", time.Since(began)
			}
			return string(e.Models[0].ID), time.Since(began)
		}
		for _, step := range []struct {
			after time.Duration
			want  string
			took  time.Duration
		}{
			{0, "1", time.Second},                // first
			{time.Minute, "1", 0},                // cached
			{5 * time.Minute, "1", 0},            // cached, and renewed in the background
			{2 * time.Second, "2", 0},            // renewed
			{20 * time.Minute, "3", time.Second}, // too old
		} {
			time.Sleep(step.after)
			if id, took := show(); id != step.want || took != step.took {
				t.Errorf("after %s: %q in %s, want %q in %s", step.after, id, took, step.want, step.took)
			}
		}
		broken = true
		time.Sleep(6 * time.Minute)
		show() // still good, renewed in the background
		time.Sleep(2 * time.Second)
		if id, _ := show(); id != "error" {
			t.Errorf("%q is shown after a failure", id)
		}
		broken = false
		time.Sleep(troubleTTL)
		if id, _ := show(); id == "error" {
			t.Error("bad news is kept for too long")
		}
		s.Refresh()
		if _, took := show(); took != time.Second {
			t.Error("Refresh did not make it ask anew")
		}
		time.Sleep(time.Minute)
		closeService(t, s)
	})
}

func TestMenuOfACallerWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inState("fake", cli.Authenticated)
		p.auth = func(context.Context) cli.Auth { time.Sleep(time.Minute); return cli.Auth{State: cli.Authenticated} }
		s := serve(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if e := s.Menu(ctx, "", nil)[0]; !errors.Is(e.Err, context.DeadlineExceeded) {
			t.Errorf("%+v", e)
		}
		closeService(t, s)
		if e := s.Menu(t.Context(), "", nil)[0]; e.Err != nil && !errors.Is(e.Err, cli.ErrClosing) {
			t.Errorf("after Close: %+v", e)
		}
	})
}

func TestDefault(t *testing.T) {
	for _, tc := range []struct {
		name      string
		a, b, c   cli.AuthState
		fallbacks []cli.Agent
		want      cli.Agent
		kind      cli.FailureKind
	}{
		{"the configured one", cli.Authenticated, cli.Authenticated, cli.Authenticated, nil, "a", ""},
		{"the next that can be used", cli.Installed, cli.NotFound, cli.Authenticated, []cli.Agent{"b", "c"}, "c", ""},
		{"without fallbacks, no other one", cli.Installed, cli.Authenticated, cli.Authenticated, nil, "", cli.NotLoggedIn},
		{"none that is no fallback", cli.Installed, cli.NotFound, cli.Authenticated, []cli.Agent{"b"}, "", cli.NotLoggedIn},
		{"the fallbacks come first", cli.Installed, cli.Authenticated, cli.Authenticated, []cli.Agent{"c", "unknown"}, "c", ""},
		{"none: what to do about the configured one", cli.Installed, cli.NotFound, cli.NotFound, nil, "", cli.NotLoggedIn},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newTestService(t, Options{Settings: Settings{Fallback: tc.fallbacks}},
				inState("a", tc.a), inState("b", tc.b), inState("c", tc.c))
			got, _, err := s.Default(t.Context(), "", nil)
			var kind cli.FailureKind
			if f := cli.AsFailure("", err); f != nil {
				kind = f.Kind
			}
			if got != tc.want || kind != tc.kind {
				t.Errorf("%q, %v", got, err)
			}
			closeService(t, s)
		})
	}
}
