package clitest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

// Update reports whether the test was run with -update, which rewrites golden files; see UpdateFlag.
type Update func() bool

// UpdateFlag defines the flag -update. A test package calls it once.
func UpdateFlag() Update {
	update := flag.Bool("update", false, "rewrite the golden files")
	return func() bool { return *update }
}

// Golden compares got with the golden file at path. If update returns true, Golden first writes got to the file.
func Golden(t *testing.T, update Update, path, got string) {
	t.Helper()
	if update() {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// Recorder formats the events of turns as text, one line for each. It joins adjacent deltas. The zero value is ready to
// use.
type Recorder struct {
	out    strings.Builder
	kind   string
	run    strings.Builder
	pieces int
	turns  int
	used   bool
}

// Turn ends the current turn and starts another. A turn without events does not appear in the text.
func (r *Recorder) Turn() {
	r.flush()
	r.turns++
	r.used = false
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Event adds an event. Tests pass this method to Session.Turn.
func (r *Recorder) Event(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.TextDelta:
		r.delta("text", ev.Text)
	case cli.ThinkingDelta:
		r.delta("thinking", ev.Text)
	case cli.SessionStarted:
		r.Add("session %s model %s", ev.AgentSessionID, ev.Model)
	case cli.TextRetracted:
		r.Add("retracted %d bytes", ev.Bytes)
	case cli.ToolStarted:
		r.Add("tool %s starts: %s %q input %s%s", ev.ID, ev.Name, ev.Title, ev.Input,
			prefixed(" under ", string(ev.Parent)))
	case cli.ToolChanged:
		r.Add("tool %s becomes: %s %q input %s", ev.ID, ev.Name, ev.Title, ev.Input)
	case cli.ToolEnded:
		r.Add("tool %s ends:%s %s%s", ev.ID, code(ev.ExitCode), shown(ev.Output), prefixed(" error ", ev.Err))
	case cli.Result:
		r.result(ev)
	default:
		b, _ := json.Marshal(ev)
		r.Add("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", ev), "cli."), b)
	}
}

func (r *Recorder) Add(format string, args ...any) {
	r.flush()
	if !r.used {
		r.used = true
		fmt.Fprintf(&r.out, "-- turn %d\n", r.turns)
	}
	fmt.Fprintf(&r.out, format+"\n", args...)
}

// Used reports whether the current turn has added a line.
func (r *Recorder) Used() bool {
	r.flush()
	return r.used
}

// String returns the text.
func (r *Recorder) String() string {
	r.flush()
	return r.out.String()
}

func (r *Recorder) result(res cli.Result) {
	r.Add("result: %s", shown(res.Text))
	used := res.Consumed
	r.Add("  session %q model %q cost %.6f turns %d usage %+v", res.AgentSessionID, res.Model, used.CostUSD, used.Turns,
		used.Usage)
	models := make([]string, 0, len(used.ByModel))
	for id, u := range used.ByModel {
		models = append(models, fmt.Sprintf("  by model %s %+v", id, u))
	}
	sort.Strings(models)
	for _, m := range models {
		r.Add("%s", m)
	}
	if res.Aborted {
		r.Add("  aborted")
	}
	for _, d := range res.Denials {
		r.Add("  denied %s %q: %s", d.Tool, d.Title, d.Reason)
	}
	if res.Err != nil {
		r.Add("  failed (%s): %s", res.Err.Kind, res.Err.Error())
	}
}

func (r *Recorder) delta(kind, text string) {
	if kind != r.kind {
		r.flush()
	}
	r.kind = kind
	r.run.WriteString(text)
	r.pieces++
}

func (r *Recorder) flush() {
	if r.pieces == 0 {
		return
	}
	kind, run, pieces := r.kind, r.run.String(), r.pieces
	r.run.Reset()
	r.kind, r.pieces = "", 0
	r.Add("%s in %d: %s", kind, pieces, shown(run))
}

const maxShown = 600

func shown(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%d bytes %q…%q", len(s), s[:100], s[len(s)-50:])
	}
	return fmt.Sprintf("%q", s)
}

func code(c *int) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" exit %d", *c)
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + fmt.Sprintf("%q", s)
}
