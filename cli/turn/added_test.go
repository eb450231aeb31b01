package turn

import (
	"slices"
	"testing"

	"ductor/cli"
)

// A turn does not end before each message was read, given back or known not to have arrived.
func TestATurnWaitsForWhatWasAddedToIt(t *testing.T) {
	var a Added
	add := func(id string, turn cli.TurnID, wantNew bool) {
		if isNew, over := a.Add(id, turn); isNew != wantNew || over {
			t.Errorf("%s: new %v, over %v", id, isNew, over)
		}
	}
	add("1", "one", true)
	add("2", "two", true)
	add("3", "", true)
	add("4", "four", true)
	add("2", "two", false)
	a.Sent("4", "")
	a.Sent("1", "the first")
	if got := a.Waiting(); !slices.Equal(got, []string{"the first", "2", "3"}) || a.End() {
		t.Errorf("%q wait", got)
	}
	a.Taken("the first")
	a.Taken("nobody's")
	a.GiveBack("2")
	a.GiveBack("3")
	a.GiveBack("the first") // too late
	if got := a.Unread(); !slices.Equal(got, []cli.TurnID{"two"}) {
		t.Errorf("%q were given back", got)
	}
	if got := a.All(); !slices.Equal(got, []string{"the first", "2", "3"}) || !a.End() {
		t.Errorf("of %q some wait", got)
	}
	if isNew, over := a.Add("5", ""); isNew || !over || a.Close() {
		t.Error("it takes more")
	}
}

// An agent that ended did not read the messages that wait. It may have read a message whose arrival is unknown.
func TestAnAgentThatEndedReadsNothing(t *testing.T) {
	var a Added
	for _, id := range []string{"1", "2", "3"} {
		a.Add(id, cli.TurnID(id))
	}
	a.Sent("1", "1")
	a.Sent("2", "2")
	a.Taken("1")
	a.ProcessEnded()
	if got := a.Unread(); !slices.Equal(got, []cli.TurnID{"2"}) {
		t.Errorf("%q were not read", got)
	}
}

func TestATurnThatIsCutLeavesWhatWaits(t *testing.T) {
	var a Added
	a.Add("1", "one")
	if !a.Close() {
		t.Error("nothing waits")
	}
	if _, over := a.Add("2", "two"); !over {
		t.Error("it takes more")
	}
}
