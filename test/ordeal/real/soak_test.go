package real

import (
	"errors"
	"flag"
	"testing"
	"time"
)

var soaks = flag.Duration("soak", 0, "how long the soak lasts; 0 for none")

// ductor's resources do not grow after the first tenth of an hour of work at real speed.
func TestSoak(t *testing.T) {
	if *soaks == 0 {
		t.Skip("-soak says how long")
	}
	report, err := Execute(Job{Seed: *from, Dir: t.TempDir(), Builds: builds(t),
		Conditions: conditions{Disk: diskOfMachine, Line: fair}, Soak: *soaks})
	if errors.Is(err, ErrNoBox) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d prompts in %s", report.Run.Messages, report.Took.Round(time.Second))
	t.Logf("%8s %6s %8s %4s %4s %8s %4s %5s %9s %9s %8s %8s", "at", "turns", "RSS kB", "fds", "thr", "runner", "fds",
		"procs", "database", "log", "spool", "journals")
	for _, s := range report.Samples {
		t.Logf("%8s %6d %8d %4d %4d %8d %4d %5d %9d %9d %8d %8d", s.At.Round(time.Second), s.Turns, s.Ductor.RSS>>10,
			s.Ductor.Descriptors, s.Ductor.Threads,
			s.Runner.RSS>>10, s.Runner.Descriptors, s.Processes, s.Database, s.WAL, s.Spool, s.Journals)
	}
	for _, v := range report.Run.Violations {
		t.Error(v.Detail)
	}
}
