package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Runs continue after an upgrade to a later build, with the same parent process.
func TestUpgradeWithTwentyRuns(t *testing.T) {
	dir := t.TempDir()
	c := reopen(t, dir, Options{})
	const many = 20
	runs := make([]*Run, many)
	for i := range runs {
		runs[i] = start(t, c,
			sh(`i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo $i; sleep 0.02; done
			while read line; do echo "got $line"; done; exit 7`))
		readLine(t, runs[i])
	}
	before, _ := runnerOf(c)
	later := filepath.Join(t.TempDir(), "later")
	if out, err := exec.Command("cp", runnerCommand(t)[0], later).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	next := reopen(t, dir, Options{Command: []string{later, "runner"}, Upgrade: true})
	if err := next.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, ok := runnerOf(next)
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", after.PID))
	if after != before || !ok || err != nil || program != later {
		t.Errorf("%v became %v, %s, %v", before, after, program, err)
	}
	for i, r := range runs {
		write(t, r, fmt.Sprintf("%d\n", i))
		if err := r.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(readRest(t, r))
		if len(lines) != 101 || lines[100] != fmt.Sprint(i) {
			t.Errorf("run %d says %d lines", i, len(lines))
		}
		await(t, "done", r.Done())
		if got := r.Exit(); got != (Exit{Known: true, Code: 7}) {
			t.Errorf("run %d: %+v", i, got)
		}
	}
}

// An upgrade after a SIGTERM would lose the signal, also while the runner has not handled it yet.
func TestNoUpgradeAfterASignal(t *testing.T) {
	for _, terminated := range []bool{false, true} {
		s := newServer(arguments{root: t.TempDir()})
		s.runs.terminated = make(chan os.Signal, 1)
		if ok, err := s.dir.acquire(0, 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		defer s.dir.lock.Close()
		defer s.dir.listener.Close()
		if terminated {
			s.runs.terminated <- syscall.SIGTERM
		}
		err := s.upgrade("/no/program", nil, nil)
		if exec := errors.Is(err, os.ErrNotExist); err == nil || exec == terminated {
			t.Errorf("terminated %v: %v", terminated, err)
		}
	}
}
