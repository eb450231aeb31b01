package cli

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// countingModes counts how often an agent was asked how it can be run.
type countingModes struct {
	*fakeProvider
	asked *atomic.Int32
}

func (p countingModes) Modes() []Mode {
	p.asked.Add(1)
	return p.fakeProvider.Modes()
}

// How an agent is run is asked when that is needed first, for it may take a process: not at the start, and not for
// sessions that were left.
func TestModesAreAskedWhenTheyAreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		p := &fakeProvider{}
		s, err := NewService(ServiceOptions{
			Providers: []Provider{countingModes{p, &asked}}, Launchers: []Launcher{&fakeLauncher{runs: []LeftRun{leftRun("r")}}},
			RunEnvs: []RunEnv{web(&fakeSandbox{}, countingModes{&fakeProvider{}, &asked})},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Survey(t.Context(), nil); err != nil || living(s) != "a" {
			t.Errorf("%v, %q live", err, living(s))
		}
		if n := asked.Load(); n != 0 {
			t.Errorf("asked %d times at the start", n)
		}
		for range 3 {
			run(t, s, "fake", Request{Conversation: "a", Resume: "s"})
		}
		if n := asked.Load(); n != 1 || len(p.opened()) != 1 {
			t.Errorf("asked %d times by three turns in %d sessions", n, len(p.opened()))
		}
		closeService(t, s)
	})
}

func TestAnAgentWithoutAModeFailsItsTurns(t *testing.T) {
	s := newTestService(t, ServiceOptions{}, &fakeProvider{modes: []Mode{}})
	if r, _ := run(t, s, "fake", Request{}); sentenceOf(r) != "Fake failed: there is no mode it can be run in." {
		t.Errorf("%+v", r.Err)
	}
	closeService(t, s)
}

func TestChooseMode(t *testing.T) {
	for _, tc := range []struct {
		can  []Mode
		want Mode
		runs Mode
	}{
		{[]Mode{Live, OneShot}, "", Live}, {[]Mode{Live, OneShot}, OneShot, OneShot}, {[]Mode{OneShot, Live}, "", OneShot},
		{[]Mode{OneShot}, Live, OneShot}, {nil, Live, ""}, {nil, "", ""},
	} {
		if got := ChooseMode(tc.can, tc.want); got != tc.runs {
			t.Errorf("of %q, wanted %q: %q", tc.can, tc.want, got)
		}
	}
}
