package steps

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ductor/cli"
)

// A Recorder stores whole commands and the ends of outputs. If there are too many, it keeps the newest.
func TestARecorderKeepsWhatThereIsRoomFor(t *testing.T) {
	r := &Recorder{}
	use := func(id string, command, output string) {
		input, _ := json.Marshal(map[string]string{"command": command})
		r.Observe(cli.ToolStarted{ID: cli.ToolID(id), Name: "Bash", Title: "short", Input: input})
		r.Observe(cli.ToolEnded{ID: cli.ToolID(id), Output: output})
		r.Observe(cli.ToolEnded{ID: cli.ToolID(id), Output: "once more"})
	}
	long := "go test ./...\n" + strings.Repeat("x", 1000)
	use("first", long, "out")
	r.Observe(cli.FileChanged{Path: "a.go", Kind: cli.FileAdded, Diff: "@@ -0,0 +1 @@\n+a\n"})
	if s := r.Steps(); len(s) != 2 || s[0].Title != long || s[0].Output != "out" || s[1].Title != "a.go" || s[1].Number != 2 || s[1].Tool != "" {
		t.Errorf("recorded %+v", s)
	}
	use("wide", "c", strings.Repeat("é", mostOutput))
	if s := r.Steps()[2]; s.Size > mostOutput || s.Lost == 0 || !utf8.ValidString(s.Output) {
		t.Errorf("%d bytes are kept, %d lost", s.Size, s.Lost)
	}
	for i := range 2 * mostSteps {
		use(fmt.Sprint("many", i), "c", strings.Repeat("o", 100<<10))
	}
	sum := 0
	for _, s := range r.Steps() {
		if sum += len(s.Output); len(s.Output) != s.Size {
			t.Fatalf("step %d has %d bytes and says %d", s.Number, len(s.Output), s.Size)
		}
	}
	if last := r.Steps()[mostSteps-1]; len(r.Steps()) != mostSteps || sum > mostOfTurn || last.Size == 0 || r.Steps()[0].Size != 0 {
		t.Errorf("%d steps with %d bytes; the last has %d", len(r.Steps()), sum, last.Size)
	}
}

// The duration of a step excludes the wait for a user; a denied step took no time.
func TestAStepDoesNotCountTheWaitForItsUser(t *testing.T) {
	now := time.Unix(0, 0)
	r := &Recorder{Now: func() time.Time { return now }}
	for i, decided := range []bool{true, false} {
		id := cli.ToolID(fmt.Sprint(i))
		r.Observe(cli.ToolStarted{ID: id, Name: "Bash"})
		r.Observe(cli.ApprovalAsked{ID: cli.ApprovalID(id), Started: id})
		now = now.Add(time.Hour)
		if decided {
			r.Observe(cli.ApprovalWithdrawn{ID: cli.ApprovalID(id)})
		}
		now = now.Add(2 * time.Second)
		r.Observe(cli.ToolEnded{ID: id, Duration: time.Hour + 2*time.Second})
	}
	if s := r.Steps(); s[0].Duration != 2*time.Second || s[1].Duration != 0 {
		t.Errorf("the steps took %v and %v", s[0].Duration, s[1].Duration)
	}
}

// A step has the length of the answer before it. What the agent took back does not count.
func TestAStepHasItsPlaceInTheAnswer(t *testing.T) {
	r := &Recorder{}
	r.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	r.Observe(cli.TextDelta{Text: "one two"})
	r.Observe(cli.TextRetracted{Bytes: 3})
	r.Observe(cli.ToolStarted{ID: "2", Name: "Bash"})
	r.Observe(cli.TextDelta{Text: "six"})
	r.Observe(cli.FileChanged{Path: "a.go", Kind: cli.FileAdded})
	if s := r.Steps(); s[0].Offset != 0 || s[1].Offset != 4 || s[2].Offset != 7 {
		t.Errorf("recorded %+v", s)
	}
}

// A Recorder stores the arguments of a tool unchanged. It cuts the texts in long arguments and names the cut. Of too many
// arguments it stores the newest.
func TestARecorderStoresArguments(t *testing.T) {
	r := &Recorder{}
	start := func(id, input string) string {
		r.Observe(cli.ToolStarted{ID: cli.ToolID(id), Name: "Write", Title: "short", Input: json.RawMessage(input)})
		r.Observe(cli.ToolEnded{ID: cli.ToolID(id), Output: "o"})
		return r.Steps()[len(r.Steps())-1].Input
	}
	exact := `{"b": 1.50, "a":"<x>", "a": null}`
	if got := start("exact", exact); got != exact {
		t.Errorf("stored %s", got)
	}
	long := strings.Repeat("é", mostInput)
	got := start("long", `{"path":"a.go","content":"`+long+`","list":["`+long+`",7]}`)
	leaves := map[string]string{}
	for _, l := range cli.Leaves(json.RawMessage(got)) {
		leaves[l.Name] = l.Value
	}
	cut := fmt.Sprintf("… [+%d bytes]", 2*mostInput-2044)
	if len(got) > mostInput || leaves["path"] != "a.go" || leaves["list[1]"] != "7" ||
		!strings.HasSuffix(leaves["content"], cut) || !strings.HasSuffix(leaves["list[0]"], cut) {
		t.Errorf("of long arguments %d bytes are stored: %.100s", len(got), got)
	}
	for _, input := range []string{long, `[` + strings.Repeat(`"x",`, mostInput) + `1]`} {
		got := start("odd"+input[:2], input)
		if len(got) > mostInput+len(cut)+5 || !strings.HasSuffix(got, " bytes]") {
			t.Errorf("%.20s: %d bytes are stored, ending in %q", input, len(got), got[len(got)-20:])
		}
	}
	for i := range mostSteps {
		start(fmt.Sprint("many", i), `["`+strings.Repeat("y", mostInput-10)+`"]`)
	}
	sum := 0
	for _, s := range r.Steps() {
		sum += len(s.Input)
	}
	steps := r.Steps()
	if last := steps[len(steps)-1].Input; sum > mostOfTurn+mostSteps*len(cut) || len(last) < mostInput-10 ||
		steps[0].Input != "… [+33 bytes]" {
		t.Errorf("%d bytes of arguments, the last has %d", sum, len(last))
	}
}

// A tool that changes while it runs is one step, with its last name, title and arguments.
func TestAStepHasTheLastStateOfItsTool(t *testing.T) {
	r := &Recorder{}
	r.Observe(cli.ToolStarted{ID: "a", Name: "execute", Title: "bash", Input: json.RawMessage(`{}`)})
	last := cli.ToolStarted{ID: "a", Name: "run", Title: "short", Input: json.RawMessage(`{"command":"make all"}`)}
	r.Observe(cli.ToolChanged{ToolStarted: last})
	r.Observe(cli.ToolEnded{ID: "a", Output: "made"})
	last.Title = "too late"
	r.Observe(cli.ToolChanged{ToolStarted: last})
	s := r.Steps()
	if len(s) != 1 || s[0].Tool != "run" || s[0].Title != "make all" || s[0].Input != string(last.Input) {
		t.Errorf("recorded %+v", s)
	}
	if r.size != len(s[0].Input)+len("made") {
		t.Errorf("it counts %d bytes", r.size)
	}
}
