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
	runnerIdle   = "idle=1s" // ends runners soon after their tests
	hostPatience = 20 * time.Second
)

// RunIfAsked turns this test binary into a runner if a Host started it as one, and then does not return. Call it
// first in TestMain.
func RunIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == runnerArg {
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	}
}

// Main is the TestMain of packages whose tests use a Host. It fails if goroutines or processes are left at the end.
func Main(m *testing.M) {
	RunIfAsked()
	testprogram.Guard()
	goleak.VerifyTestMain(m)
}

// Host opens a launcher in a new directory, with this test binary as its runner. At the end of the test it closes the
// launcher, ends all runs, and fails the test if one of their processes is left.
func Host(t testing.TB) *host.Launcher {
	t.Helper()
	return OpenHost(t, host.Options{})
}

// OpenHost returns Host with options, for example the directory of an earlier Host. It fills in empty fields.
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

// ProgramVar names a ductor without the race detector, which a run of all tests builds once. It starts in a fifth of
// a test binary's time, and a suite starts hundreds. Package cli, internal/runner and this package do not use it, so
// that the race detector covers runners and their clients.
const ProgramVar = "DUCTOR_TEST_PROGRAM"

// Program returns the program to use as runner and scripted agent: the one of ProgramVar, or this test binary.
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

// Runner returns options that start Program as a runner. They disable the second that a binary with -race waits at
// its exit.
func Runner(t testing.TB) runner.Options {
	t.Helper()
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	program := Program(t)
	return runner.Options{Command: []string{env, "GORACE=atexit_sleep_ms=0", program, runnerArg, runnerIdle},
		Program: program}
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

// awaitNone waits until no process of the runs is left, since killed processes take a moment to end. It checks all
// runs at once: listing all processes is expensive, and a test may have dozens of runs.
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
				_ = p.Signal(9) // it may have ended
			}
			return
		}
	}
}

// startedRuns is a log handler that records the runs that a Host starts.
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
