package codex

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

var update = clitest.UpdateFlag()

// Every folder of testdata is a recording of the real CLI and what its turn looks like to a person.
// resume.txt, where it is there, names the thread that was asked for.
func TestParserRecordings(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/in.ndjson")
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
			resume, _ := os.ReadFile(filepath.Join(dir, "resume.txt"))
			stderr, _ := os.ReadFile(filepath.Join(dir, "stderr.txt"))
			clitest.Golden(t, update, filepath.Join(dir, "events.txt"), transcript(raw, strings.TrimSpace(string(resume)), string(stderr)))
		})
	}
}

// transcript runs a recording through a parser as a turn of session.Turn would.
func transcript(raw []byte, resume, stderr string) string {
	rec := &clitest.Recorder{}
	rec.Turn()
	clock := time.Unix(0, 0).UTC()
	p := New(Options{ProviderOptions: cli.ProviderOptions{Now: func() time.Time { clock = clock.Add(time.Second); return clock }}, Patience: 3 * time.Second})
	req := cli.Request{Dir: "/srv/proj", Resume: cli.AgentSessionID(resume), Model: "gpt-test", Permission: cli.Ask}
	parser := p.parser(cli.NewEmitter(Agent, func() time.Time { return time.Unix(0, 0) }, rec.Event), req)
	garbage := 0
	parser.garbage = func([]byte) { garbage++ }
	end := cli.EndExit
	for line := range bytes.Lines(raw) {
		if parser.line(bytes.TrimSuffix(line, []byte("\n"))) {
			end = cli.EndTurn
			break
		}
	}
	if garbage > 0 {
		rec.Add("%d lines of garbage", garbage)
	}
	result := parser.result(context.Background(), end, fakeExit{stderr})
	if parser.done {
		result.Usage = parser.usage
	}
	parser.out.Finish(result)
	return rec.String()
}

// fakeExit is a process that ended with code 1.
type fakeExit struct{ stderr string }

func (f fakeExit) Stderr() string { return f.stderr }
func (f fakeExit) Outcome(context.Context, cli.End) cli.Result {
	return cli.Result{Err: &cli.Failure{Kind: cli.Crashed, Code: 1, Detail: f.stderr}}
}

func TestUsageOfAResumedThreadIsTheTurnsOwn(t *testing.T) {
	p := New(Options{})
	steps := []struct {
		name    string
		thread  cli.AgentSessionID
		resumed cli.AgentSessionID
		total   int64
		want    int64
	}{
		{"a new thread", "a", "", 100, 100},
		{"its second turn", "a", "a", 250, 150},
		{"another thread", "b", "", 40, 40},
		{"a thread of an earlier ductor: what came before is not known", "c", "c", 900, 0},
		{"and from then on it is", "c", "c", 950, 50},
		{"a total that was started anew", "a", "a", 30, 30},
	}
	for _, s := range steps {
		before := p.before(cli.Request{Resume: s.resumed}, nil)
		if got := p.used(s.thread, before, cli.Usage{Input: s.total}); got.Input != s.want {
			t.Errorf("%s: %d, want %d", s.name, got.Input, s.want)
		}
	}
}

// FuzzParser feeds any bytes as the output of one process: no panic, one Result and last, every tool
// ended, and the deltas fold to the answer.
func FuzzParser(f *testing.F) {
	inputs, _ := filepath.Glob("testdata/*/in.ndjson")
	for _, input := range inputs {
		if raw, err := os.ReadFile(input); err == nil && len(raw) < 16<<10 {
			f.Add(raw)
		}
	}
	f.Add([]byte("{\"type\":\"item.completed\"}\n{\"type\":\"item.started\",\"item\":{}}\n\xff[]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var answer cli.Answer
		open := map[cli.ToolID]bool{}
		results := 0
		emit := func(ev cli.Event) {
			if results > 0 {
				t.Fatalf("%T after the Result", ev)
			}
			answer.Add(ev)
			switch ev := ev.(type) {
			case cli.ToolStarted:
				open[ev.ID] = true
			case cli.ToolEnded:
				delete(open, ev.ID)
			case cli.Result:
				results++
				if ev.Text != answer.String() || len(open) != 0 {
					t.Fatalf("result %q, deltas %q, open tools %v", ev.Text, answer.String(), open)
				}
			}
		}
		parser := New(Options{}).parser(cli.NewEmitter(Agent, time.Now, emit), cli.Request{Dir: "/"})
		for line := range bytes.Lines(raw) {
			if parser.line(line) {
				break
			}
		}
		parser.out.Finish(parser.result(context.Background(), cli.EndExit, fakeExit{}))
		if results != 1 {
			t.Fatalf("%d results", results)
		}
	})
}
