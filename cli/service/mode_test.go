package service

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"ductor/cli"
)

// countingModes counts the calls of Modes.
type countingModes struct {
	*fakeProvider
	asked *atomic.Int32
}

func (p countingModes) Modes() []cli.Mode {
	p.asked.Add(1)
	return p.fakeProvider.Modes()
}

// The mode of an agent is queried when it is first needed, because that may take a process: not at the start, and not
// for sessions of the previous process.
func TestModesAreAskedWhenTheyAreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		p := &fakeProvider{}
		s, err := New(Options{
			Providers: []cli.Provider{countingModes{p, &asked}}, Launchers: []cli.Launcher{&fakeLauncher{runs: []cli.LeftRun{working("r")}}},
			RunEnvs: []RunEnv{web(&fakeSandbox{}, countingModes{&fakeProvider{}, &asked})},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Survey(t.Context(), workingIn([]cli.LeftRun{working("r")})); err != nil || living(s) != "a" {
			t.Errorf("%v, %q live", err, living(s))
		}
		if n := asked.Load(); n != 0 {
			t.Errorf("asked %d times at the start", n)
		}
		for range 3 {
			run(t, s, "fake", cli.Request{Conversation: "a", Resume: "s"})
		}
		if n := asked.Load(); n != 1 || len(p.opened()) != 1 {
			t.Errorf("asked %d times by three turns in %d sessions", n, len(p.opened()))
		}
		closeService(t, s)
	})
}

func TestAnAgentWithoutAModeFailsItsTurns(t *testing.T) {
	s := serve(t, &fakeProvider{modes: []cli.Mode{}})
	if r, _ := run(t, s, "fake", cli.Request{}); sentenceOf(r) != "Fake failed: there is no mode it can be run in." {
		t.Errorf("%+v", r.Err)
	}
	closeService(t, s)
}

func TestChooseMode(t *testing.T) {
	for _, tc := range []struct {
		can  []cli.Mode
		want cli.Mode
		runs cli.Mode
	}{
		{[]cli.Mode{cli.Live, cli.OneShot}, "", cli.Live}, {[]cli.Mode{cli.Live, cli.OneShot}, cli.OneShot, cli.OneShot}, {[]cli.Mode{cli.OneShot, cli.Live}, "", cli.OneShot},
		{[]cli.Mode{cli.OneShot}, cli.Live, cli.OneShot}, {nil, cli.Live, ""}, {nil, "", ""},
	} {
		if got := ChooseMode(tc.can, tc.want); got != tc.runs {
			t.Errorf("of %q, wanted %q: %q", tc.can, tc.want, got)
		}
	}
}
