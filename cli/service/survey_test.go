package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// awayLauncher is a sandbox whose engine is unavailable for a while, in one of two ways.
type awayLauncher struct {
	fakeSandbox
	until time.Time
	deaf  bool // it never answers and ignores ctx, instead of returning an error
}

func (l *awayLauncher) Left(ctx context.Context) ([]cli.LeftRun, error) {
	away := time.Until(l.until)
	switch {
	case away <= 0:
		return l.fakeSandbox.Left(ctx)
	case l.deaf:
		time.Sleep(away)
	}
	return nil, errors.New("Docker cannot be reached")
}

// Runs of the previous process are continued by the agents of their environment, and only a turn's own environment
// decides whether nothing is left of it.
func TestSurveyOfSeveralPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle, busy := working("idle"), leftRun("busy", "1")
		idle.Conversation = "b"
		useless := leftRun("useless")
		useless.Alive = false
		given := leftRun("given", "6")
		given.Conversation = "g"
		place := &fakeSandbox{fakeLauncher: fakeLauncher{runs: []cli.LeftRun{idle, busy, useless, given}}}
		forgetful := &fakeSandbox{}
		host := &fakeLauncher{}
		inside := &fakeProvider{}
		s := newTestService(t, Options{Launchers: []cli.Launcher{host}, RunEnvs: []RunEnv{
			web(place, inside), {Sandbox: "db", Launcher: forgetful, Providers: []cli.Provider{&fakeProvider{}}},
		}}, canary(t))
		time.Sleep(time.Second)
		remains, err := s.Survey(t.Context(), []cli.OpenTurn{
			{Turn: "1", Agent: "fake", Sandbox: "web", Conversation: "a", Start: cli.Start{Run: "busy"}},
			{Turn: "2", Agent: "fake", Conversation: "c"},
			{Turn: "3", Agent: "fake", Sandbox: "web", Conversation: "d"},
			{Turn: "4", Agent: "fake", Sandbox: "db", Conversation: "e", Start: cli.Start{Run: "other"}},
			{Turn: "5", Agent: "fake", Sandbox: "gone", Conversation: "f", Start: cli.Start{Run: "gone"}},
			{Turn: "6", Agent: "fake", Sandbox: "web", Conversation: "g", GivenUp: true, Start: cli.Start{Run: "given"}},
			{Turn: "7", Agent: "fake", Sandbox: "web", Conversation: "b", Background: true, Start: cli.Start{Run: "idle"}},
		})
		if err != nil {
			t.Error(err)
		}
		for turn, want := range map[cli.TurnID]cli.Remains{
			"1": cli.RemainsRun, "2": cli.RemainsUnknown, "3": cli.RemainsUnknown, "4": cli.RemainsUnknown, "5": cli.RemainsUnknown, "6": "",
		} {
			if remains[turn] != want {
				t.Errorf("of turn %s remains %q, want %q", turn, remains[turn], want)
			}
		}
		if st := s.pool.status(); len(st) != 1 || st[0].Conversation != "b" || st[0].Sandbox != "web" {
			t.Errorf("live %+v", st)
		}
		r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"})
		if r.Err != nil || !slices.ContainsFunc(inside.opened(), func(f *fakeSession) bool { return f.left.Run == "busy" }) {
			t.Errorf("%+v", r)
		}
		synctest.Wait() // runs are ended in the background
		if got := slices.Sorted(slices.Values(place.gone())); !slices.Equal(got, []cli.RunID{"given", "useless"}) || len(host.gone()) > 0 {
			t.Errorf("ended %v there, %v here", got, host.gone())
		}
		s.Settled("1")
		synctest.Wait()
		if len(place.settled) != 1 || len(host.settled) != 1 {
			t.Errorf("settled %v there, %v here", place.settled, host.settled)
		}
		closeService(t, s)
	})
}

// A sandbox that does not answer delays neither the start nor the turns of this host.
func TestSurveyDoesNotWaitForASandbox(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			place := &awayLauncher{until: time.Now().Add(40 * time.Second), deaf: deaf}
			here := &fakeProvider{}
			s := newTestService(t, Options{Launchers: []cli.Launcher{&fakeLauncher{runs: []cli.LeftRun{working("r")}}}, RunEnvs: []RunEnv{web(place, &fakeProvider{})}}, here)
			time.Sleep(time.Second)
			began := time.Now()
			remains, err := s.Survey(t.Context(), []cli.OpenTurn{
				{Turn: "1", Agent: "fake", Conversation: "x"}, {Turn: "2", Agent: "fake", Sandbox: "web", Conversation: "y", Start: cli.Start{Run: "there"}},
				{Turn: "3", Agent: "fake", Conversation: "a", Background: true, Start: cli.Start{Run: "r"}},
			})
			if err != nil || remains["1"] != cli.RemainsUnknown || remains["2"] != cli.RemainsUnknown || time.Since(began) > surveyWait {
				t.Errorf("%v, %v after %s", remains, err, time.Since(began))
			}
			if r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Resume: "s"}); r.Err != nil || len(here.opened()) != 1 {
				t.Errorf("%+v in %d sessions", r, len(here.opened()))
			}
			closeService(t, s)
		})
	}
}

// Runs in a sandbox that did not answer are ended as soon as it does, and before any turn starts there.
func TestWhatWasMissedIsEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		away time.Duration
		ask  time.Duration // when a turn comes; 0 for none
		want string        // its failure
		gone time.Duration // when the old run is ended
	}{
		{name: "in time", away: 10 * time.Minute, gone: 10 * time.Minute},
		{name: "before a turn that comes first", away: 10 * time.Minute, ask: 10*time.Minute + time.Second, gone: 10*time.Minute + time.Second},
		{name: "not before it is there", away: 10 * time.Minute, ask: 9 * time.Minute, gone: 10 * time.Minute,
			want: "The sandbox web of Fake is missing: Docker cannot be reached. I run nothing outside of it: " +
				"`ductor doctor` shows how to fix it."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				place := &awayLauncher{until: began.Add(tc.away + time.Millisecond)}
				place.runs, place.fakeLauncher.slow = []cli.LeftRun{leftRun("r", "1")}, 2*time.Second
				inside := &fakeProvider{}
				s := newTestService(t, Options{RunEnvs: []RunEnv{web(place, inside)}}, canary(t))
				remains, _ := s.Survey(t.Context(), []cli.OpenTurn{{Turn: "1", Agent: "fake", Sandbox: "web", Conversation: "a", Start: cli.Start{Run: "busy"}}})
				if remains["1"] != cli.RemainsUnknown {
					t.Errorf("remains %q", remains["1"])
				}
				if tc.ask > 0 {
					time.Sleep(tc.ask)
					asked := time.Now()
					r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Sandbox: "web"})
					if got := sentenceOf(r); got != tc.want {
						t.Errorf("%q, want %q", got, tc.want)
					}
					if tc.want == "" && (time.Since(asked) != 2*time.Second || len(place.gone()) != 1) {
						t.Errorf("the turn took %s, ended are %v", time.Since(asked), place.gone())
					}
				}
				time.Sleep(time.Until(began.Add(tc.gone + surveyAgain + 3*time.Second)))
				if got := place.gone(); !slices.Equal(got, []cli.RunID{"r"}) {
					t.Errorf("ended %v", got)
				}
				if tc.want == "" && tc.ask > 0 && len(inside.opened()) != 1 {
					t.Errorf("%d sessions", len(inside.opened()))
				}
				closeService(t, s)
			})
		})
	}
}

// A service that ends stops querying.
func TestNobodyLooksAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, Options{RunEnvs: []RunEnv{web(&awayLauncher{until: time.Now().Add(time.Hour)}, &fakeProvider{})}}, canary(t))
		if _, err := s.Survey(t.Context(), nil); err != nil {
			t.Error(err)
		}
		began := time.Now()
		closeService(t, s)
		if took := time.Since(began); took != 0 {
			t.Errorf("the end took %s", took)
		}
	})
}

// A run that cannot be ended at the start is ended later.
func TestWhatCannotBeEndedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := leftRun("r")
		dead.Alive = false
		place := &fakeSandbox{fakeLauncher: fakeLauncher{runs: []cli.LeftRun{dead}, hold: errors.New("Docker cannot be reached")}}
		s := newTestService(t, Options{RunEnvs: []RunEnv{web(place, &fakeProvider{})}}, canary(t))
		if _, err := s.Survey(t.Context(), nil); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		place.fakeLauncher.mu.Lock()
		place.hold = nil
		place.fakeLauncher.mu.Unlock()
		time.Sleep(surveyAgain + time.Second)
		if got := place.gone(); !slices.Equal(got, []cli.RunID{"r"}) {
			t.Errorf("ended %v", got)
		}
		time.Sleep(5 * time.Minute)
		if got := place.gone(); len(got) != 1 {
			t.Errorf("ended %v, more than once", got)
		}
		closeService(t, s)
	})
}

// A run in a sandbox that could not be ended is ended before a turn starts there, but not a run that is about to be
// continued.
func TestWhatIsAboutToBeGoneOnWithIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := &fakeSandbox{fakeLauncher: fakeLauncher{runs: []cli.LeftRun{leftRun("busy", "1"), leftRun("useless")}, hold: errors.New("busy")}}
		inside := &fakeProvider{}
		s := newTestService(t, Options{RunEnvs: []RunEnv{{Sandbox: "web", Launcher: place, Providers: []cli.Provider{inside}}}}, &fakeProvider{})
		if _, err := s.Survey(t.Context(), []cli.OpenTurn{{Turn: "1", Agent: "fake", Sandbox: "web", Conversation: "a", Start: cli.Start{Run: "busy"}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		place.mu.Lock()
		place.hold = nil
		place.mu.Unlock()
		if r, _ := run(t, s, "fake", cli.Request{Sandbox: "web", Conversation: "b"}); r.Err != nil {
			t.Error(r.Err)
		}
		if r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"}); r.Err != nil {
			t.Error(r.Err)
		}
		synctest.Wait()
		if got := place.gone(); !slices.Equal(got, []cli.RunID{"useless"}) {
			t.Errorf("ended %v", got)
		}
		if len(s.attaching) > 0 {
			t.Errorf("callers seem to attach to %v for ever", s.attaching)
		}
		closeService(t, s)
	})
}
