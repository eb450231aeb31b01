package supervisor

import (
	"ductor/internal/proctree"
	"io"
	"strings"
	"testing"
	"time"
)

func TestResultWaitsForItsCollector(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`echo all of it; echo hm >&2; exit 5`)
	spec.Limits.KeepResult = 1 // nanosecond
	run := start(t, root, spec)
	await(t, "done", run.Done())
	run.Detach()
	eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })

	infos, err := root.List(t.Context())
	if err != nil || len(infos) != 1 || infos[0].Supervised || infos[0].Alive || infos[0].Status == nil || infos[0].Status.Code != 5 {
		t.Fatalf("%+v, %v", infos, err)
	}
	again := attach(t, root, run.ID(), 4)
	if got := readAll(t, again.Stdout()); got != "of it\n" {
		t.Errorf("%q", got)
	}
	await(t, "done", again.Done())
	if got := again.Exit(); got != (Exit{Known: true, Code: 5}) || again.StderrTail() != "hm\n" {
		t.Errorf("%+v, %q", got, again.StderrTail())
	}
	if err := again.Stop(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	if err := again.Collect(t.Context()); err != nil || exists(t, root.path(run.ID())) {
		t.Error("not collected", err)
	}
}

// Who finds that a supervisor was killed says that memory was short, if the kernel killed for that during the run.
func TestMemoryMayBeWhatASupervisorDiedOf(t *testing.T) {
	t.Parallel()
	if proctree.NewOOMCounter().Mark() == nil {
		leaveOut(t, "the kernel does not count here whom it kills for want of memory")
	}
	for name, killed := range map[string]int64{"some were": 1, "none was": 0} {
		t.Run(name, func(t *testing.T) {
			root := openRoot(t, Options{})
			run := start(t, root, sh(`echo ready; sleep 600`))
			readLine(t, run.Stdout())
			eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
			rec, err := root.record(run.ID())
			if err != nil || rec.OOMKills == nil {
				t.Fatalf("%+v, %v", rec, err)
			}
			kill9(t, run.Info().Supervisor)
			*rec.OOMKills -= killed // as if they had been killed since
			if err := writeJSON(root.path(run.ID()), specFile, rec); err != nil {
				t.Fatal(err)
			}
			again := attach(t, root, run.ID(), 0)
			await(t, "done", again.Done())
			if got := again.Exit(); got != (Exit{OOM: killed > 0}) {
				t.Errorf("%+v", got)
			}
			mustStop(t, again, 0)
		})
	}
}

// gone waits for a supervisor's last word, and gives what is on disk to a client that was never there before.
func gone(t *testing.T, root *Root, id string) *Run {
	t.Helper()
	eventually(t, "the supervisor leaves", func() bool { return !root.look(t.Context(), id).Supervised })
	return attach(t, reopen(t, root.dir, Options{}), id, 0)
}

// Agent and supervisor are gone: all that was printed, and how it ended and by whom, is on disk.
func TestDiskKnowsTheWholeEnd(t *testing.T) {
	t.Parallel()
	const lines = 3 * memorySize / lineLength
	for name, tc := range map[string]struct {
		end  func(t *testing.T, run *Run)
		want Exit
	}{
		"by itself": {func(t *testing.T, run *Run) { await(t, "done", run.Done()) }, Exit{Known: true, Code: 9}},
		"stopped":   {func(t *testing.T, run *Run) { mustStop(t, run, time.Minute) }, Exit{Known: true, Code: -15, Signal: true, By: ByStop}},
		"too old": {func(t *testing.T, run *Run) {
			if err := run.Update(t.Context(), nil, &Limits{MaxAge: time.Millisecond, KeepResult: 1}); err != nil {
				t.Error(err)
			}
		}, Exit{Known: true, Code: -15, Signal: true, By: ByMaxAge}},
		"no client came": {func(*testing.T, *Run) {}, Exit{Known: true, Code: -15, Signal: true, By: ByOrphaned}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := openRoot(t, Options{})
			last := `exec sleep 600`
			if tc.want.Code == 9 {
				last = `exit 9`
			}
			spec := sh(`"$0"; echo hm >&2; ` + last)
			spec.Args = append(spec.Args, self(t))
			spec.Env = append(withoutHelper(spec.Env), helperVar+"=lines", "LINES="+itoa(lines))
			spec.Limits = Limits{OrphanAfter: time.Millisecond, KeepResult: 1}
			run := start(t, root, spec)
			eventually(t, "all is printed", func() bool { return run.StderrTail() != "" })
			tc.end(t, run)
			run.Detach()
			again := gone(t, root, run.ID())
			checkLines(t, again.Stdout(), 0, lines)
			await(t, "done", again.Done())
			status := again.Status()
			if status.Exit != tc.want || !status.Ended || status.OutputEnd != lines*lineLength || status.Missing != 0 || again.StderrTail() != "hm\n" {
				t.Errorf("%+v, %q", status, again.StderrTail())
			}
		})
	}
}

// A supervisor that was killed told no client how its agent ended, and what it had stored is all there is.
func TestDiskDoesNotInventAnEnd(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	if _, err := io.WriteString(run.Stdin(), "all of it\n"); err != nil {
		t.Fatal(err)
	}
	readLine(t, run.Stdout())
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	kill9(t, run.Info().Supervisor)
	await(t, "done", run.Done())
	if got := run.Exit(); got != (Exit{}) {
		t.Errorf("who saw it happen believes %+v", got)
	}
	run.Detach()
	again := gone(t, root, run.ID())
	await(t, "done", again.Done())
	if got := again.Exit(); got != (Exit{}) {
		t.Errorf("%+v", got)
	}
	if got := readAll(t, again.Stdout()); !strings.HasPrefix(got, "all of it") {
		t.Errorf("%q", got)
	}
}
