package codex

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
	"ductor/internal/sim/hostile"
)

var update = clitest.UpdateFlag()

// Every folder of testdata has a recording of the real CLI, and its turn in the form that a user sees. resume.txt, if
// it exists, contains the requested thread.
func TestParserRecordings(t *testing.T) {
	clitest.Recordings(t, update, "testdata/*/in.ndjson", func(_ *testing.T, file string, raw []byte) string {
		resume, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "resume.txt"))
		stderr, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stderr.txt"))
		return transcript(raw, strings.TrimSpace(string(resume)), string(stderr))
	})
}

// transcript passes a recording through a parser, like a turn of session.Turn.
func transcript(raw []byte, resume, stderr string) string {
	rec := &clitest.Recorder{}
	rec.Turn()
	clock := time.Unix(0, 0).UTC()
	p := New(Options{Patience: 3 * time.Second})
	req := cli.Request{Dir: "/srv/proj", Resume: cli.AgentSessionID(resume), Model: "gpt-test", Permission: cli.Ask}
	parser := p.parser(turn.NewEmitter(Agent, func() time.Time { return time.Unix(0, 0) }, rec.Event), req)
	parser.network.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	garbage := 0
	parser.garbage = func([]byte) { garbage++ }
	end := turn.EndExit
	for line := range bytes.Lines(raw) {
		if parser.line(bytes.TrimSuffix(line, []byte("\n"))) {
			end = turn.EndTurn
			break
		}
	}
	if garbage > 0 {
		rec.Add("%d lines of garbage", garbage)
	}
	result := parser.result(end, fakeExit{stderr})
	if parser.done {
		result.Consumed.Usage = parser.usage
	}
	parser.out.Finish(result)
	return rec.String()
}

// fakeExit is a process that ended with code 1.
type fakeExit struct{ stderr string }

func (f fakeExit) Stderr() string  { return f.stderr }
func (f fakeExit) IsAdopted() bool { return false }
func (f fakeExit) Outcome(turn.End) cli.Result {
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
		{"a thread of the previous ductor process: what came before is not known", "c", "c", 900, 0},
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

// FuzzParser parses any bytes as the output of one process: it does not panic, one Result comes last, every tool ends,
// and the deltas add up to the answer.
func FuzzParser(f *testing.F) {
	for _, raw := range clitest.Seeds(f, "testdata/*/in.ndjson") {
		f.Add(raw)
	}
	f.Add([]byte("{\"type\":\"item.completed\"}\n{\"type\":\"item.started\",\"item\":{}}\n\xff[]"))
	f.Fuzz(func(t *testing.T, raw []byte) { clitest.Keeps(t, readOutput(raw)) })
}

// readOutput returns the events of the output of one process.
func readOutput(raw []byte) (events []cli.Event) {
	emit := func(ev cli.Event) { events = append(events, ev) }
	parser := New(Options{}).parser(turn.NewEmitter(Agent, time.Now, emit), cli.Request{Dir: "/"})
	for line := range bytes.Lines(raw) {
		if parser.line(line) {
			break
		}
	}
	parser.out.Finish(parser.result(turn.EndExit, fakeExit{}))
	return events
}

// The work for events is proportional to their number, even if all are about different objects.
func TestTheWorkOverEventsIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Lines(clitest.Seeds(t, "testdata/*/in.ndjson")), func(text string) { readOutput([]byte(text)) })
}
