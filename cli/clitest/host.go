package clitest

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/internal/proctree"
	"ductor/internal/runner"
	"ductor/internal/testprogram"
)

const (
	runnerArg    = "runner"
	runnerIdle   = "idle=1s" // makes runners exit soon after their tests
	hostPatience = time.Minute
)

// RunIfAsked runs a runner if a launcher started the test binary for this purpose. In this case, it does not return.
// Call it first in TestMain.
func RunIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == runnerArg {
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	}
}

// Main is the TestMain of packages whose tests use Host. It fails if goroutines or processes are left at the end.
func Main(m *testing.M) {
	RunIfAsked()
	testprogram.Guard()
	testprogram.Main(m)
}

// Host opens a launcher in a new directory. Its runners are this test binary, or the program in ProgramVar. At the end
// of the test, Host ends all runs, and the test fails if one of their processes is left.
func Host(t testing.TB) *host.Launcher {
	t.Helper()
	return OpenHost(t, host.Options{})
}

// OpenHost is Host with options, such as the directory of an earlier launcher. It sets options that are missing.
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

// ProgramVar is an environment variable with the path of a ductor program that scripts/test builds without the race
// detector. That program starts five times as fast as a test binary, and a suite starts it hundreds of times. The tests
// of packages cli, internal/runner and clitest do not use the program, so that the race detector covers runners and
// their clients.
const ProgramVar = "DUCTOR_TEST_PROGRAM"

// Program returns the path of the program to use as runner and scripted agent: the value of ProgramVar, or this test
// binary.
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

// Runner returns options that start Program as a runner. They also prevent a program with the race detector from
// sleeping for a second when it exits.
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

// endLeft ends every run in the directory of o.
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

// awaitNone waits until no process of the runs is left, because killed processes take a moment to end. It checks all
// runs at once, because listing all processes is slow.
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
				_ = p.Signal(9) // the process may have ended
			}
			return
		}
	}
}

// startedRuns is a log handler that collects the IDs of the runs that a launcher starts.
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
