package service

import (
	"slices"
	"testing"
	"testing/synctest"

	"ductor/cli"
)

// The environment of a single conversation is opened once, when a turn names it. Runs in it belong to no other
// conversation and to no turn of another environment.
func TestAPlaceOfOneConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forged, other, own := leftRun("forged", "2"), leftRun("other"), leftRun("own", "1")
		forged.Conversation, other.Conversation, own.Conversation = "b", "b", "a"
		place, inside := &fakeSandbox{fakeLauncher: fakeLauncher{runs: []cli.LeftRun{forged, other, own}}}, &fakeProvider{}
		opened := 0
		open := func(in cli.Sandbox) (RunEnv, bool) {
			opened++
			return RunEnv{Sandbox: in, Launcher: place, Providers: []cli.Provider{inside}}, in.Name() == "web"
		}
		s := newTestService(t, Options{OpenRunEnv: open, Launchers: []cli.Launcher{&fakeLauncher{}}}, canary(t))
		mine := cli.Sandbox("web").For("a")
		remains, err := s.Survey(t.Context(), []cli.OpenTurn{
			{Turn: "1", Agent: "fake", Sandbox: mine, Conversation: "a", Start: cli.Start{Run: "own"}},
			{Turn: "2", Agent: "fake", Conversation: "b", Start: cli.Start{Run: "forged"}},
		})
		if err != nil || remains["1"] != cli.RemainsRun || remains["2"] == cli.RemainsRun {
			t.Errorf("what remains is %v, %v", remains, err)
		}
		synctest.Wait()
		if got := place.gone(); !slices.Contains(got, "forged") || !slices.Contains(got, "other") || slices.Contains(got, "own") {
			t.Errorf("ended were %v", got)
		}
		for _, in := range []cli.Sandbox{"web", "db/a"} {
			if r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Sandbox: in}); r.Err == nil || r.Err.Kind != cli.NoSandbox {
				t.Errorf("a turn in %s: %+v", in, r)
			}
		}
		if r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"}); r.Err != nil {
			t.Errorf("%+v", r)
		}
		if opened != 2 { // db/a was queried too
			t.Errorf("it was opened %d times", opened)
		}
		closeService(t, s)
	})
}
