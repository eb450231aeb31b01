package gemini

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

var update = clitest.UpdateFlag()

func still() time.Time { return time.Unix(0, 0) }

// Runs of the real CLI, and the events they are.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*/in.ndjson")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rec clitest.Recorder
			var events []cli.Event
			rec.Turn()
			out := cli.NewEmitter(Agent, still, func(ev cli.Event) { rec.Event(ev); events = append(events, ev) })
			p := newParser(out, cli.Request{Dir: "/srv/proj"})
			p.garbage = func(line []byte) { rec.Add("garbage %q", line) }
			for line := range bytes.Lines(raw) {
				if p.line(line) {
					break
				}
			}
			r := p.result
			r.Denials = p.denials
			out.Finish(r)
			for _, wrong := range clitest.Violations(events) {
				t.Errorf("contract: %s", wrong)
			}
			clitest.Golden(t, update, filepath.Join(filepath.Dir(file), "events.txt"), rec.String())
		})
	}
}

// No line makes the parser break the contract.
func FuzzParser(f *testing.F) {
	files, err := filepath.Glob("testdata/*/in.ndjson")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var events []cli.Event
		out := cli.NewEmitter(Agent, still, func(ev cli.Event) { events = append(events, ev) })
		p := newParser(out, cli.Request{Dir: "/srv/proj"})
		out.Session("s", "m")
		for line := range bytes.Lines(raw) {
			p.line(line)
		}
		out.Finish(cli.Result{})
		for _, wrong := range clitest.Violations(events) {
			t.Errorf("contract: %s", wrong)
		}
	})
}
