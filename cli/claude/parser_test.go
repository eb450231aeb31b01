package claude

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every folder of testdata is a recording of the real CLI and what its turns look like to a person.
func TestParserRecordings(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/in.*json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, input := range inputs {
		dir := filepath.Dir(input)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			got := transcript(raw, filepath.Ext(input) == ".json")
			golden := filepath.Join(dir, "events.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
		})
	}
}

// transcript runs a recording through one parser per turn and writes down what comes out.
func transcript(raw []byte, whole bool) string {
	rec := &recorder{}
	mem := newMemory()
	p := rec.turn(mem)
	if whole {
		if parseJSON(p, raw) {
			p.em.Finish(p.outcome)
		}
		return rec.done(p)
	}
	for _, l := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		reply, end := p.line(l)
		if reply != nil {
			rec.add("reply %s", bytes.TrimSpace(reply))
		}
		if end {
			p.em.Finish(p.outcome)
			if p.doomed {
				rec.add("(the process is stopped)")
				return rec.done(p)
			}
			p = rec.turn(mem)
		}
	}
	return rec.done(p)
}

// recorder writes events down for people: neighbouring deltas are joined.
type recorder struct {
	out    strings.Builder
	kind   string
	run    strings.Builder
	pieces int
	turns  int
	used   bool

	garbage int
}

func (r *recorder) turn(mem *memory) *parser {
	r.flush()
	r.turns++
	r.used = false
	clock := time.Unix(0, 0).UTC()
	p := newParser(cli.NewEmitter(agent, func() time.Time { return clock }, r.event), mem, "/srv/proj")
	p.garbage = func([]byte) { r.garbage++ }
	p.unasked = func(res cli.Result) { r.add("unasked: %s", shown(res.Text)) }
	return p
}

func (r *recorder) event(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.TextDelta:
		r.delta("text", ev.Text)
	case cli.ThinkingDelta:
		r.delta("thinking", ev.Text)
	case cli.SessionStarted:
		r.add("session %s model %s", ev.AgentSessionID, ev.Model)
	case cli.TextRetracted:
		r.add("retracted %d bytes", ev.Bytes)
	case cli.ToolStarted:
		r.add("tool %s starts: %s %q input %s%s", ev.ID, ev.Name, ev.Title, ev.Input, under(ev.Parent))
	case cli.ToolEnded:
		r.add("tool %s ends:%s %s%s", ev.ID, code(ev.ExitCode), shown(ev.Output), prefixed(" error ", ev.Err))
	case cli.Result:
		r.result(ev)
	default:
		b, _ := json.Marshal(ev)
		r.add("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", ev), "cli."), b)
	}
}

func (r *recorder) result(res cli.Result) {
	r.add("result: %s", shown(res.Text))
	r.add("  session %q model %q cost %.6f turns %d usage %+v", res.AgentSessionID, res.Model, res.CostUSD, res.Turns, res.Usage)
	models := make([]string, 0, len(res.ByModel))
	for id, u := range res.ByModel {
		models = append(models, fmt.Sprintf("  by model %s %+v", id, u))
	}
	sort.Strings(models)
	for _, m := range models {
		r.add("%s", m)
	}
	for _, d := range res.Denials {
		r.add("  denied %s %q: %s", d.Tool, d.Title, d.Reason)
	}
	if res.Err != nil {
		r.add("  failed (%s, then %s): %s", res.Err.Kind, res.Err.Action(), res.Err.Sentence())
	}
}

func (r *recorder) delta(kind, text string) {
	if kind != r.kind {
		r.flush()
	}
	r.kind = kind
	r.run.WriteString(text)
	r.pieces++
}

func (r *recorder) flush() {
	if r.pieces > 0 {
		fmt.Fprintf(&r.out, "%s in %d: %s\n", r.kind, r.pieces, shown(r.run.String()))
	}
	r.run.Reset()
	r.kind, r.pieces = "", 0
}

func (r *recorder) add(format string, args ...any) {
	r.flush()
	if !r.used {
		r.used = true
		fmt.Fprintf(&r.out, "-- turn %d\n", r.turns)
	}
	fmt.Fprintf(&r.out, format+"\n", args...)
}

func (r *recorder) done(p *parser) string {
	r.flush()
	if r.garbage > 0 {
		r.add("%d lines of garbage", r.garbage)
	}
	if r.used && !p.em.Finished() {
		r.add("(the recording ends here)")
	}
	return r.out.String()
}

func shown(s string) string {
	if len(s) > 600 {
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

func under(parent cli.ToolID) string { return prefixed(" under ", string(parent)) }
