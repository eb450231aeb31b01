package claude

import (
	"reflect"
	"testing"

	"ductor/cli"
)

// A newer version of ductor continues the turns of an older one, so the JSON of a note does not change.
func TestTheJSONOfANote(t *testing.T) {
	n := note{
		start: snapshot{
			Session: "S", Model: "opus", CostUSD: 0.5, Models: map[cli.ModelID]cli.Usage{"opus": {Input: 1}},
			Denied: []string{"d"}, Warned: []string{"w"}, Tasks: []string{"t"},
			Before: turnSettings{Model: "opus"}, During: turnSettings{Effort: "high"},
		},
		sent: messages{Prompt: "p", Steers: []string{"x", "y"}, Sending: "y", Answered: []cli.ApprovalID{"a"}},
	}
	const stored = `{"s":"S","m":"opus","usd":0.5,` +
		`"u":{"opus":{"Input":1,"Output":0,"CacheRead":0,"CacheWrite":0,"Reasoning":0}},` +
		`"d":["d"],"w":["w"],"t":["t"],"b":{"m":"opus"},"n":{"e":"high"},` +
		`"p":"p","steer":["x","y"],"sending":"y","ans":["a"]}`
	if got := n.String(); got != stored {
		t.Errorf("stored as %s, want %s", got, stored)
	}
	if got := readNote(stored); !reflect.DeepEqual(got, n) {
		t.Errorf("read as %+v, want %+v", got, n)
	}
	if got := readNote("{"); !reflect.DeepEqual(got, note{}) {
		t.Errorf("an unreadable note is %+v", got)
	}
}
