package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// canary is an agent of this host that no request for a sandbox may ever reach.
func canary(t *testing.T) *fakeProvider {
	return &fakeProvider{
		open: func(context.Context, *fakeSession) error {
			t.Error("this host's agent was opened")
			return nil
		},
		adopt: func(context.Context, cli.LeftRun, *fakeSession) error {
			t.Error("this host's agent adopted a run")
			return nil
		},
	}
}

// fakeSandbox is a launcher of an environment that must be created and that does not see this host's files.
type fakeSandbox struct {
	fakeLauncher
	prepareErr, bringErr error
	slow                 time.Duration // duration of Prepare and Bring
	building             time.Duration // the part of it for building an image

	mu       sync.Mutex
	prepared int
	brought  []string
	asked    time.Time // the first time of Doing
}

func (l *fakeSandbox) Doing() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked.IsZero() {
		l.asked = time.Now()
	}
	if time.Since(l.asked) < l.building {
		return "its image is built"
	}
	return ""
}

func (l *fakeSandbox) Prepare(context.Context) error {
	time.Sleep(l.slow)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prepared++
	return l.prepareErr
}

func (l *fakeSandbox) Bring(_ context.Context, paths []string) error {
	time.Sleep(l.slow)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.brought = append(l.brought, paths...)
	return l.bringErr
}

// fakeHomes gives each session a home below a root.
type fakeHomes struct {
	root string
	err  error
}

func (h fakeHomes) Home(_ context.Context, session string) (string, error) {
	return h.root + "/" + session, h.err
}

// web returns a sandbox with this name.
func web(l cli.Launcher, providers ...cli.Provider) RunEnv {
	return RunEnv{Sandbox: "web", Launcher: l, Providers: providers}
}

// A turn runs in the environment that its request names, or nowhere.
func TestATurnRunsInThePlaceItNames(t *testing.T) {
	for _, tc := range []struct {
		name  string
		agent cli.Agent
		in    cli.Sandbox
		want  string // of the failure; empty for none
	}{
		{"this host", "own", "", ""},
		{"a sandbox", "fake", "web", ""},
		{"a sandbox that is not configured", "fake", "db", "The sandbox db of Fake is missing: it is not configured. I run nothing outside of it: `ductor doctor` shows how to fix it."},
		{"an agent that is not in the sandbox", "own", "web", "Own is missing from the image of the sandbox web: ductor knows no agent of this name. Add its CLI to the image, then check with `ductor doctor`."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inside := &fakeProvider{}
			s := newTestService(t, Options{RunEnvs: []RunEnv{web(&fakeSandbox{}, inside)}}, canary(t), &fakeProvider{agent: "own"})
			r, _ := run(t, s, tc.agent, cli.Request{Conversation: "a", Sandbox: tc.in})
			if got := sentenceOf(r); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if ran := len(inside.opened()) == 1; ran != (tc.in == "web" && tc.want == "") {
				t.Errorf("it ran in the sandbox: %v", ran)
			}
			closeService(t, s)
		})
	}
}

func sentenceOf(r cli.Result) string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// If an environment fails, the turn ends with the reason; nothing is tried on this host or repeated.
func TestAPlaceThatCannotBeHad(t *testing.T) {
	gone := errors.New("Docker at unix:///x cannot be reached; start it")
	req := cli.Request{Conversation: "a", Sandbox: "web", Session: "s", Files: []string{"/uploads/x"}}
	for _, tc := range []struct {
		name   string
		place  *fakeSandbox
		homes  Homes
		inside *fakeProvider
		req    func(*cli.Request)
		opens  int
		want   string
	}{
		{name: "its files", place: &fakeSandbox{bringErr: gone}},
		{name: "the session's home", homes: fakeHomes{err: gone}},
		{name: "a process", opens: 1, inside: &fakeProvider{open: func(context.Context, *fakeSession) error {
			return &cli.Failure{Kind: cli.NoSandbox, Reason: gone.Error()}
		}}},
		{name: "the process any more", opens: 1, inside: &fakeProvider{turn: func(_ context.Context, _ *fakeSession, _ cli.Request, em *turn.Emitter) {
			em.Finish(cli.Result{Err: &cli.Failure{Kind: cli.NoSandbox, Agent: "fake", Reason: gone.Error()}})
		}}},
		{name: "a home without a session", homes: fakeHomes{}, req: func(r *cli.Request) { r.Session = "" },
			want: "The sandbox web of Fake is missing: it belongs to no session, so it has no home. I run nothing outside of it: `ductor doctor` shows how to fix it."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.place == nil {
					tc.place = &fakeSandbox{}
				}
				if tc.inside == nil {
					tc.inside = &fakeProvider{}
				}
				runEnv := web(tc.place, tc.inside)
				runEnv.Homes = tc.homes
				s := newTestService(t, Options{RunEnvs: []RunEnv{runEnv}}, canary(t))
				req := req
				if tc.req != nil {
					tc.req(&req)
				}
				if tc.want == "" {
					tc.want = "The sandbox web of Fake is missing: Docker at unix:///x cannot be reached; start it. I run nothing outside of it: `ductor doctor` shows how to fix it."
				}
				r, _ := run(t, s, "fake", req)
				if got := sentenceOf(r); got != tc.want || r.Fallback {
					t.Errorf("%q, want %q; %+v", got, tc.want, r)
				}
				if n := len(tc.inside.opened()); n != tc.opens {
					t.Errorf("%d sessions were opened, want %d", n, tc.opens)
				}
				closeService(t, s)
			})
		})
	}
}

// A live agent that broke before it showed anything is tried again in its environment.
func TestALiveAgentIsAskedAgainInItsOwnPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := &fakeProvider{}
		inside.turn = func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			if s.mode == cli.Live {
				em.Finish(cli.Result{Err: cli.Failf(cli.Crashed, "fake", "gone")})
				return
			}
			em.Text("a", "again")
			em.Finish(cli.Result{})
		}
		s := newTestService(t, Options{RunEnvs: []RunEnv{web(&fakeSandbox{}, inside)}}, canary(t))
		r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Sandbox: "web"})
		if r.Text != "again" || !r.Fallback || len(inside.opened()) != 2 {
			t.Errorf("%+v in %d sessions", r, len(inside.opened()))
		}
		closeService(t, s)
	})
}

// A conversation whose environment changes has one session at a time, and never uses one of the other environment. It
// does not wait for the slow end of the old session, which has a separate history.
func TestASessionOfAnotherPlaceIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, inside := &fakeProvider{}, &fakeProvider{}
		inside.open = func(_ context.Context, s *fakeSession) error { s.closeTime = 5 * time.Second; return nil }
		s := newTestService(t, Options{RunEnvs: []RunEnv{web(&fakeSandbox{}, inside)}}, here)
		began := time.Now()
		for i, in := range []cli.Sandbox{"", "web", "", "web"} {
			run(t, s, "fake", cli.Request{Conversation: "a", Sandbox: in})
			st := s.pool.status()
			if len(st) != 1 || st[0].Sandbox != in {
				t.Errorf("after turn %d live %+v", i, st)
			}
		}
		if len(here.opened()) != 2 || len(inside.opened()) != 2 {
			t.Errorf("%d sessions here, %d inside", len(here.opened()), len(inside.opened()))
		}
		if took := time.Since(began); took != 5*time.Second { // the second one inside waits for the first
			t.Errorf("it took %s", took)
		}
		closeService(t, s)
	})
}

// Two environments may use the same number for a process; each is counted, measured and watched separately.
func TestProcessesOfTwoPlacesMayHaveOneNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := newFakePlace(), newFakePlace()
		p, inside := &fakeProvider{open: here.open}, &fakeProvider{open: there.open}
		s, err := New(Options{
			Launchers: []cli.Launcher{here}, Providers: []cli.Provider{sharing{p}}, RunEnvs: []RunEnv{web(there, sharing{inside})},
		})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, "fake", cli.Request{Conversation: "a"})
		run(t, s, "fake", cli.Request{Conversation: "b", Sandbox: "web"})
		here.processes[100].memory.Store(3)
		there.processes[100].memory.Store(4)
		if l := s.Live(t.Context()); l.Processes != 2 || l.Memory != 7 || l.Sessions[0].Memory != 3 || l.Sessions[1].Memory != 4 {
			t.Errorf("%+v", l)
		}
		there.processes[100].die()
		synctest.Wait()
		if got := living(s); got != "a" {
			t.Errorf("%q live after the process in the sandbox died", got)
		}
		closeService(t, s)
	})
}

// Each session has its own home if there are Homes, separate for each environment.
func TestSessionsHaveHomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, inside := &fakeProvider{}, &fakeProvider{}
		runEnv := web(&fakeSandbox{}, inside)
		runEnv.Homes = fakeHomes{root: "/in"}
		s := newTestService(t, Options{Homes: fakeHomes{root: "/here"}, RunEnvs: []RunEnv{runEnv}}, here)
		s.Warm("fake", cli.Request{Conversation: "a"}) // without a session yet
		synctest.Wait()
		s.Warm("fake", cli.Request{Conversation: "a", Session: "one"})
		synctest.Wait()
		run(t, s, "fake", cli.Request{Conversation: "a", Session: "one"})
		run(t, s, "fake", cli.Request{Conversation: "a", Session: "two"})
		run(t, s, "fake", cli.Request{Conversation: "a", Session: "two", Sandbox: "web"})
		var homes []string
		for _, f := range slices.Concat(here.opened(), inside.opened()) {
			homes = append(homes, f.begin.Home)
		}
		if got := strings.Join(homes, " "); got != "/here/one /here/two /in/two" {
			t.Errorf("sessions were opened at home in %s", got)
		}
		closeService(t, s)
	})
}

// Files of a prompt, and additional directories, are copied before the prompt is sent, also for a prompt that is
// steered into a running turn, and for the files of a decision. This host has them.
func TestFilesAreBroughtToASandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := &fakeSandbox{}
		inside := &fakeProvider{turn: lasting}
		s, err := New(Options{Providers: []cli.Provider{&fakeProvider{}}, RunEnvs: []RunEnv{web(place, steering{inside})}})
		if err != nil {
			t.Fatal(err)
		}
		over := begin(t, s, cli.Request{Turn: "1", Conversation: "a", Sandbox: "web", AddDirs: []string{"/uploads"}, Files: []string{"/x"}}, quietly)
		if err := s.Steer(t.Context(), "1", cli.Request{Files: []string{"/y"}}); err != nil {
			t.Error(err)
		}
		for in, fails := range map[cli.Sandbox]bool{"web": false, "": false, "db": true} {
			if err := s.Bring(t.Context(), in, []string{"/d"}); (err != nil) != fails {
				t.Errorf("a file is brought to %q: %v", in, err)
			}
		}
		place.bringErr = errors.New("no room")
		if err := s.Steer(t.Context(), "1", cli.Request{Files: []string{"/z"}}); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("a message whose file cannot be brought: %v", err)
		}
		if got := strings.Join(place.brought, ""); got != "/uploads/x/y/d/z" || steered(inside) != 1 {
			t.Errorf("brought %q, %d messages arrived", got, steered(inside))
		}
		<-over
		closeService(t, s)
	})
}

// steering is a fakeProvider whose sessions accept messages, which count as turns.
type steering struct{ *fakeProvider }

type steeringSession struct{ *fakeSession }

func (p steering) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	s, err := p.fakeProvider.Open(ctx, mode, req)
	if err != nil {
		return nil, err
	}
	return steeringSession{s.(*fakeSession)}, nil
}

func (s steeringSession) Steer(context.Context, cli.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	return nil
}

// steered returns the number of messages that arrived in the provider's only session, apart from its one turn.
func steered(p *fakeProvider) int {
	s := p.opened()[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns - 1
}

// A user who waits for a sandbox sees that and what for, and can abort it.
func TestASlowSandboxIsToldOf(t *testing.T) {
	for _, abort := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestService(t, Options{RunEnvs: []RunEnv{web(&fakeSandbox{slow: time.Minute, building: 5 * time.Second}, &fakeProvider{})}}, canary(t))
			if abort {
				time.AfterFunc(10*time.Second, func() { s.Abort("a") })
			}
			began := time.Now()
			r, events := run(t, s, "fake", cli.Request{Conversation: "a", Sandbox: "web", Files: []string{"/x"}})
			for i, want := range []string{"the sandbox web is being prepared: its image is built", "the sandbox web is being prepared"} {
				if events[i] != (cli.Status{Kind: cli.StatusWaiting, Detail: want}) {
					t.Errorf("event %d is %#v, want one that says %s", i, events[i], want)
				}
			}
			if took := time.Since(began); r.Aborted != abort || abort && took != 10*time.Second || !abort && (r.Err != nil || took != time.Minute) {
				t.Errorf("%+v after %s", r, took)
			}
			closeService(t, s)
		})
	}
}

// Of all callers that need the default agent of a slow sandbox only one waits, and not for long. Once it is ready they
// get the answer.
func TestOneWaitsForASlowSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := inState("one", cli.Installed), inState("two", cli.Authenticated, "m")
		s := newTestService(t, Options{
			Settings: Settings{Fallback: []cli.Agent{"two"}}, RunEnvs: []RunEnv{web(&fakeSandbox{slow: 10 * time.Second}, one, two)},
		}, inState("one", cli.Authenticated))
		for i, step := range []struct {
			took, then time.Duration
			want       cli.Agent
		}{{sandboxWait, 0, "one"}, {0, 11 * time.Second, "one"}, {0, 0, "two"}} {
			began := time.Now()
			got, _, err := s.Default(t.Context(), "web", nil)
			if took := time.Since(began); got != step.want || err != nil || took != step.took {
				t.Errorf("time %d: %q, %v, after %s; want %+v", i, got, err, took, step)
			}
			time.Sleep(step.then)
		}
		closeService(t, s)
	})
}

// The default agent of a sandbox, and its menu.
func TestMenuOfASandbox(t *testing.T) {
	gone := errors.New("Docker cannot be reached")
	for _, tc := range []struct {
		name    string
		place   *fakeSandbox
		in      cli.Sandbox
		want    cli.Agent
		asked   bool // whether the agents were queried
		trouble string
	}{
		{name: "as on this host", place: &fakeSandbox{}, in: "web", want: "two", asked: true},
		{name: "that is not there", place: &fakeSandbox{prepareErr: gone}, in: "web", want: "one", trouble: "The sandbox web of One is missing: Docker cannot be reached. I run nothing outside of it: `ductor doctor` shows how to fix it."},
		{name: "that takes its time", place: &fakeSandbox{slow: 10 * time.Second}, in: "web", want: "one", asked: true},
		{name: "that is not configured", place: &fakeSandbox{}, in: "db", want: "one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				one, two := inState("one", cli.Installed), inState("two", cli.Authenticated, "m")
				auth := one.auth
				one.auth = func(ctx context.Context) cli.Auth { asked.Add(1); return auth(ctx) }
				host := inState("one", cli.Authenticated)
				s := newTestService(t, Options{
					Settings: Settings{Fallback: []cli.Agent{"two"}}, RunEnvs: []RunEnv{web(tc.place, one, two)},
				}, host)
				if got, _, err := s.Default(t.Context(), tc.in, nil); got != tc.want || err != nil {
					t.Errorf("asks %q, %v", got, err)
				}
				menu := s.Menu(t.Context(), tc.in, nil)
				if tc.in == "db" != (len(menu) == 0) || (asked.Load() > 0) != tc.asked {
					t.Errorf("the menu is %+v; the agent was asked %d times", menu, asked.Load())
				}
				if tc.trouble != "" && (menu[0].Err == nil || menu[0].Err.Error() != tc.trouble) {
					t.Errorf("the menu says %v", menu[0].Err)
				}
				closeService(t, s)
			})
		})
	}
}

func TestNewServiceRefusesSites(t *testing.T) {
	ok := web(&fakeSandbox{}, &fakeProvider{})
	for _, tc := range []struct {
		name    string
		runEnvs []RunEnv
		want    string
	}{
		{"no name", []RunEnv{{Launcher: ok.Launcher, Providers: ok.Providers}}, "no name"},
		{"two of a name", []RunEnv{ok, ok}, `called "web"`},
		{"no launcher", []RunEnv{{Sandbox: "web", Providers: ok.Providers}}, "needs a launcher"},
		{"no provider", []RunEnv{{Sandbox: "web", Launcher: ok.Launcher}}, "and a provider"},
		{"two agents of a name", []RunEnv{web(ok.Launcher, &fakeProvider{}, &fakeProvider{})}, `called "fake"`},
	} {
		if _, err := New(Options{Providers: []cli.Provider{&fakeProvider{}}, RunEnvs: tc.runEnvs}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestWhatEndsWithItsSandboxIsNoCrash(t *testing.T) {
	ended := &cli.Failure{Kind: cli.Crashed, Agent: "fake", Code: -15, Cause: errors.Join(nil, cli.ErrFromOutside)}
	for _, c := range []struct {
		f    *cli.Failure
		at   cli.Sandbox
		kind cli.FailureKind
		says string
	}{
		{ended, "web", cli.NoSandbox, "the sandbox web of fake is missing: the sandbox's container was stopped"},
		{ended, "", cli.Crashed, "fake ended unexpectedly"},
		{&cli.Failure{Kind: cli.Crashed, Agent: "fake", Code: 1}, "web", cli.Crashed, "fake ended unexpectedly"},
		{&cli.Failure{Kind: cli.TimedOut, Agent: "fake", Cause: cli.ErrFromOutside}, "web", cli.TimedOut, "took too long"},
	} {
		got := (&runEnv{sandbox: c.at}).named(c.f)
		if got.Kind != c.kind || got.Sandbox != c.at || !strings.Contains(strings.ToLower(got.Error()), c.says) {
			t.Errorf("%+v in %q is %s: %q", *c.f, c.at, got.Kind, got.Error())
		}
	}
}

func TestWhatCouldNotBeEndedIsNotSaidToBe(t *testing.T) {
	at := &runEnv{sandbox: "web"}
	lost := fmt.Errorf("stop: %w", &cli.Failure{Kind: cli.NoSandbox, Reason: "Docker cannot be reached"})
	r := at.unended("fake", cli.Result{Text: "so far", Aborted: true}, lost)
	if r.Aborted || r.Err == nil || r.Text != "so far" || !strings.Contains(r.Err.Error(), "goes on there until it can be reached: Docker cannot be reached") {
		t.Errorf("%+v: %v", r, r.Err)
	}
	for _, err := range []error{nil, errors.New("it is slow")} {
		if r := at.unended("fake", cli.Result{Aborted: true}, err); !r.Aborted || r.Err != nil {
			t.Errorf("after %v: %+v", err, r)
		}
	}
}

// A sandbox that disappears while an agent is searched in it is lost; the agent does not count as missing.
func TestASandboxThatGoesWhileAnAgentIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := &fakeSandbox{}
		one := inState("one", cli.NotFound)
		auth := one.auth
		one.auth = func(ctx context.Context) cli.Auth {
			place.mu.Lock()
			defer place.mu.Unlock()
			place.prepareErr = errors.New("its image is gone")
			return auth(ctx)
		}
		s := newTestService(t, Options{RunEnvs: []RunEnv{web(place, one)}}, inState("one", cli.Authenticated))
		menu := s.Menu(t.Context(), "web", nil)
		if got := menu[0].Err; got == nil || got.Error() != "The sandbox web of One is missing: its image is gone. I run nothing outside of it: `ductor doctor` shows how to fix it." {
			t.Errorf("the menu says %v", got)
		}
		closeService(t, s)
	})
}
