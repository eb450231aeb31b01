package cli

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"
)

func TestProviderOptionsFillInWhatIsMissing(t *testing.T) {
	o := ProviderOptions{}.OrDefault("claude")
	if o.Path != "claude" || o.Env == nil || o.Now == nil || o.Logger == nil {
		t.Errorf("filled in: %+v", o)
	}
	if o.Grace != DefaultGrace || o.Stall != DefaultStall || o.ToolStall != DefaultToolStall {
		t.Errorf("limits: %+v", o)
	}
	o = ProviderOptions{Path: "/opt/claude", Timing: Timing{Grace: time.Minute}}.OrDefault("claude")
	if o.Path != "/opt/claude" || o.Grace != time.Minute {
		t.Errorf("what was said is %q, %v", o.Path, o.Grace)
	}
}

// If several sources set the same variable, the chat has the highest priority, then the request, the dialect, and the
// owner.
func TestProviderOptionsMakeAnEnvironment(t *testing.T) {
	o := ProviderOptions{
		Env: func() []string {
			return []string{"PATH=/bin", "MINE=owner", "THEIRS=owner", "KEY_A=owner", "SECRET=x", "DUCTOR_TOKEN=x"}
		},
		AllowEnv: []string{"MINE"},
	}.Allowing("THEIRS")
	req := Request{ChatID: 7, Env: map[string]string{"THEIRS": "request", "OWN": "request", ChatIDVar: "8"}}
	got := o.ChildEnv(req, []string{"KEY_*"}, map[string]string{"OWN": "dialect", "MINE": "dialect"})
	want := []string{ChatIDVar + "=7", "KEY_A=owner", "MINE=dialect", "OWN=request", "PATH=/bin", "THEIRS=request"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStartFailure(t *testing.T) {
	if f := StartFailure("a", fmt.Errorf("start: %w", fs.ErrNotExist)); f.Kind != NotInstalled || f.Agent != "a" {
		t.Errorf("a program that is not there: %+v", f)
	}
	if f := StartFailure("a", Failf(Refused, "a", "no")); f.Kind != Refused {
		t.Errorf("what is known already: %+v", f)
	}
}
