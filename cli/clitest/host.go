package clitest

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/internal/proctree"
	"ductor/internal/runner"
	"ductor/internal/testprogram"
)

const (
	runnerArg    = "runner"
	runnerIdle   = "idle=1s" // no runner outlives its test for long
	hostPatience = 20 * time.Second
)

// RunIfAsked makes this test binary a runner when a Host of this package started it as one. It then
// does not return. Call it first in TestMain.
func RunIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == runnerArg {
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	}
}

// Main is the TestMain of a package whose tests use a Host. It fails when goroutines or processes are left at the end.
func Main(m *testing.M) {
	RunIfAsked()
	testprogram.Guard()
	goleak.VerifyTestMain(m)
}

// Host opens a launcher in a new directory whose runner is this test binary. At the end of the test it
// is closed, what still runs is ended, and the test fails if a process of one of its runs is left.
func Host(t testing.TB) *host.Launcher {
	t.Helper()
	return OpenHost(t, host.Options{})
}

// OpenHost is Host with options: a directory that another Host had before, limits. What is empty is filled in.
func OpenHost(t testing.TB, o host.Options) *host.Launcher {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if len(o.Runner.Command) == 0 {
		o.Runner = Runner(t)
	}
	started := &startedRuns{}
	if o.Logger == nil {
		o.Logger = slog.New(started)
	}
	h, err := host.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	h.RecordBy(startsIn(o.Dir).record)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		o.Logger = nil
		endLeft(t, o)
		awaitNone(t, started.all())
	})
	return h
}

// ProgramVar names a ductor built without the race detector, which a run of all tests makes once: its start takes a
// fifth of a test binary's, and a suite starts hundreds. Package cli, internal/runner and this one do without
// it, so that runners and what talks to them are watched for races too.
const ProgramVar = "DUCTOR_TEST_PROGRAM"

// Program is the program that is runner and scripted agent of a test: ProgramVar's, or this test binary.
func Program(t testing.TB) string {
	t.Helper()
	if program := os.Getenv(ProgramVar); program != "" {
		return program
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// Runner starts a runner of Program, without the second that a binary made with -race lingers at its end.
func Runner(t testing.TB) runner.Options {
	t.Helper()
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	program := Program(t)
	return runner.Options{Command: []string{env, "GORACE=atexit_sleep_ms=0", program, runnerArg, runnerIdle}, Program: program}
}

// endLeft ends every run of a directory.
func endLeft(t testing.TB, o host.Options) {
	t.Helper()
	h, err := host.Open(o)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hostPatience)
	defer cancel()
	left, err := h.Left(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, run := range left {
		if err := h.Discard(ctx, run.Run); err != nil {
			t.Errorf("end what the test left: %v", err)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// awaitNone waits until no process of any of the runs is left: one that was killed takes a moment to be gone. It looks for all of
// them at once, as a look at every process is dear and a test may have had dozens of runs.
func awaitNone(t testing.TB, runs []cli.RunID) {
	t.Helper()
	if len(runs) == 0 {
		return
	}
	marks := make([]string, len(runs))
	for i, run := range runs {
		marks[i] = runner.Mark(string(run))
	}
	for deadline := time.Now().Add(hostPatience / 4); ; time.Sleep(look) {
		left, err := proctree.Marked(marks...)
		if err != nil {
			t.Error(err)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("of the runs %v these processes are left: %v", runs, left)
			for _, p := range left {
				_ = p.Signal(9) // it may be gone by now
			}
			return
		}
	}
}

// startedRuns is a log handler that remembers the runs a Host says it started.
type startedRuns struct {
	mu  sync.Mutex
	ids []cli.RunID
}

func (*startedRuns) Enabled(context.Context, slog.Level) bool { return true }
func (s *startedRuns) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s *startedRuns) WithGroup(string) slog.Handler          { return s }

func (s *startedRuns) Handle(_ context.Context, r slog.Record) error {
	if r.Message != host.StartedRun {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "run" {
			s.mu.Lock()
			s.ids = append(s.ids, cli.RunID(a.Value.String()))
			s.mu.Unlock()
		}
		return true
	})
	return nil
}

func (s *startedRuns) all() []cli.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]cli.RunID(nil), s.ids...)
}
