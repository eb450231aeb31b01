package host_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
)

// next opens the host of the next ductor process.
func next(t *testing.T, h *host.Launcher, o host.Options) *host.Launcher {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return clitest.OpenHost(t, o)
}

// left lists the runs that a host finds.
func left(t testing.TB, h *host.Launcher) []cli.LeftRun {
	t.Helper()
	runs, err := h.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func onlyLeft(t testing.TB, h *host.Launcher) cli.LeftRun {
	t.Helper()
	runs := left(t, h)
	if len(runs) != 1 {
		t.Fatalf("%d runs are left, want one: %+v", len(runs), runs)
	}
	return runs[0]
}

func attach(t testing.TB, h *host.Launcher, run cli.RunID, offset int64, marks ...cli.Mark) cli.Process {
	t.Helper()
	p, err := h.Attach(t.Context(), cli.LeftRun{Run: run, Marks: marks}, offset)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t testing.TB, p cli.Process, text string) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin(), text); err != nil {
		t.Fatal(err)
	}
}

// runsOnDisk counts the directories of runs, without the spare one for the next run.
func runsOnDisk(t testing.TB, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "[^.]*", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// A run continues when its ductor is gone, and the next ductor attaches at any offset.
func TestRunIsLeftAndTakenUp(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"detached", "host closed"} {
		t.Run(how, func(t *testing.T) {
			o := host.Options{Dir: t.TempDir()}
			h := clitest.OpenHost(t, o)
			p := start(t, h, agent(t, `while read line; do echo "got $line"; done; echo bye`))
			write(t, p, "one\n")
			readLine(t, p)
			if runs := left(t, h); len(runs) > 0 {
				t.Errorf("its own runs are left: %+v", runs)
			}
			if err := p.Begin(t.Context(), cli.Mark{Turn: "t1", Output: 8, Note: "n"}); err != nil {
				t.Fatal(err)
			}
			write(t, p, "two\n")
			if how == "detached" {
				p.Detach()
			}
			h = next(t, h, o)
			eventually(t, "the second line", func() bool { return onlyLeft(t, h).OutputEnd == 16 })
			want := cli.LeftRun{
				Run: p.Run(), PID: p.PID(), OutputEnd: 16, Input: cli.LeftInput{End: 8}, Alive: true,
				Purpose: cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a", Setting: "s1"},
			}
			found := onlyLeft(t, h)
			// The runner may delete output before the mark, so the output may begin at any byte from 0 to 8.
			if want.OutputBegin = found.OutputBegin; want.OutputBegin > 8 {
				t.Errorf("its output begins at %d", found.OutputBegin)
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
			q := attach(t, h, want.Run, 8)
			if got := readLine(t, q); got != "got two" {
				t.Errorf("from the mark on it said %q", got)
			}
			if at := q.When(12); time.Since(at) < 0 || time.Since(at) > time.Minute || q.PID() != p.PID() {
				t.Errorf("pid %d, it was said at %s", q.PID(), at)
			}
			if len(left(t, h)) > 0 {
				t.Error("what was taken up is still left")
			}
			write(t, q, "three\n")
			if err := q.Stdin().Close(); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(q.Stdout())
			if err != nil || string(rest) != "got three\nbye\n" {
				t.Errorf("then it said %q, %v", rest, err)
			}
			stop(t, q, 0)
		})
	}
}

// The output of a program that ended while no ductor was running is stored, with its exit status.
func TestEndedRunIsLeft(t *testing.T) {
	t.Parallel()
	o := host.Options{Dir: t.TempDir()}
	h := clitest.OpenHost(t, o)
	cmd := agent(t, `read go; echo last words; echo why >&2; exit 5`)
	cmd.Turn = "t1"
	p := start(t, h, cmd)
	write(t, p, "go\n")
	p.Detach()
	h = next(t, h, o)
	eventually(t, "its end", func() bool { return !onlyLeft(t, h).Alive })
	run := onlyLeft(t, h)
	if run.OutputEnd != 11 {
		t.Errorf("%+v", run)
	}
	q := attach(t, h, run.Run, 0)
	out, err := io.ReadAll(q.Stdout())
	<-q.Done()
	if err != nil || string(out) != "last words\n" || q.Exit().Code != 5 || q.StderrTail() != "why\n" {
		t.Errorf("%q, %v, %+v, %q", out, err, q.Exit(), q.StderrTail())
	}
	stop(t, q, 0)
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	o := host.Options{Dir: t.TempDir()}
	h := clitest.OpenHost(t, o)
	p := start(t, h, agent(t, `setsid sleep 60 & echo ready; wait`))
	readLine(t, p)
	h = next(t, h, o)
	for range 2 { // the second time there is nothing to kill
		if err := h.Discard(t.Context(), p.Run()); err != nil {
			if len(left(t, h)) > 0 || !strings.Contains(err.Error(), "no such file") {
				t.Fatal(err)
			}
		}
	}
	if alive := survivors(t, p.Run()); len(alive) > 0 || len(left(t, h)) > 0 || runsOnDisk(t, o.Dir) > 0 {
		t.Errorf("%v are alive, %+v is left, %d on disk", alive, left(t, h), runsOnDisk(t, o.Dir))
	}
}

// Close deletes a stopped run that no turn needs, although its output was not read.
func TestCloseDeletesAStoppedRun(t *testing.T) {
	t.Parallel()
	o := host.Options{Dir: t.TempDir()}
	h := clitest.OpenHost(t, o)
	p := start(t, h, agent(t, `echo unread; exec sleep 60`))
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if n := runsOnDisk(t, o.Dir); n > 0 {
		t.Errorf("%d runs are on the disk", n)
	}
}

// A stopped run is stored until all turns that may need its output are settled.
func TestStoppedRunIsKeptUntilItsTurnsAreSettled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		marks  []cli.TurnID
		before []cli.TurnID // settled before the stop
		after  []cli.TurnID // settled after the stop
		gone   bool
	}{
		{"no turn", nil, nil, nil, true},
		{"nothing settled", []cli.TurnID{"1"}, nil, nil, false},
		{"settled before", []cli.TurnID{"1"}, []cli.TurnID{"1"}, nil, true},
		{"settled after", []cli.TurnID{"1"}, nil, []cli.TurnID{"1"}, true},
		{"another one settled", []cli.TurnID{"1"}, []cli.TurnID{"2"}, []cli.TurnID{"3"}, false},
		{"one of two", []cli.TurnID{"1", "2"}, []cli.TurnID{"1"}, nil, false},
		{"both", []cli.TurnID{"1", "2"}, []cli.TurnID{"1"}, []cli.TurnID{"2"}, true},
		{"both, the other way round", []cli.TurnID{"1", "2"}, []cli.TurnID{"2"}, []cli.TurnID{"1"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := host.Options{Dir: t.TempDir()}
			h := clitest.OpenHost(t, o)
			p := start(t, h, agent(t, `exec sleep 60`))
			for _, turn := range tc.marks {
				if err := p.Begin(t.Context(), cli.Mark{Turn: turn}); err != nil {
					t.Fatal(err)
				}
			}
			for _, turn := range tc.before {
				h.Settled(turn)
			}
			var read sync.WaitGroup // unread output delays a run for a while
			read.Go(func() { _, _ = io.Copy(io.Discard, p.Stdout()) })
			stop(t, p, 0)
			read.Wait()
			for _, turn := range tc.after {
				h.Settled(turn)
			}
			if tc.gone {
				eventually(t, "gone from the disk", func() bool { return runsOnDisk(t, o.Dir) == 0 })
				return
			}
			h = next(t, h, o)
			if run := onlyLeft(t, h); run.Alive {
				t.Errorf("left is %+v", run)
			}
		})
	}
}

func TestProbesAreNobodysToTakeUp(t *testing.T) {
	t.Parallel()
	o := host.Options{Dir: t.TempDir()}
	h := clitest.OpenHost(t, o)
	p := start(t, h, sh(t, `echo ready; exec sleep 60`))
	readLine(t, p)
	h = next(t, h, o)
	if runs := left(t, h); len(runs) > 0 {
		t.Errorf("a probe is left: %+v", runs)
	}
	if alive := survivors(t, p.Run()); len(alive) > 0 {
		t.Errorf("%v are still there", alive)
	}
}

// If a runner is killed, only the exit code is lost: the program continues, and nobody sees its end.
func TestRunnerKilled(t *testing.T) {
	t.Parallel()
	h := clitest.Host(t)
	p := start(t, h, agent(t, `setsid sleep 60 & echo ready; read line; echo "got $line"`))
	readLine(t, p)
	kill(t, runnerOf(t, p))
	write(t, p, "on\n")
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "got on\n" {
		t.Errorf("%q, %v", out, err)
	}
	<-p.Done()
	if got := p.Exit(); got.By != cli.EndedUnseen {
		t.Errorf("exit %+v", got)
	}
	eventually(t, "what outlives the program", func() bool { return len(survivors(t, p.Run())) > 0 })
	stop(t, p, 50*time.Millisecond)
	if alive := survivors(t, p.Run()); len(alive) > 0 {
		t.Errorf("%v are still there", alive)
	}
}

// runnerOf returns the parent process of p's program.
func runnerOf(t *testing.T, p cli.Process) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", itoa(p.PID()), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if ppid, ok := strings.CutPrefix(line, "PPid:"); ok {
			return atoi(t, strings.TrimSpace(ppid))
		}
	}
	t.Fatal("it has no parent")
	return 0
}

// The age of a run counts from its last turn.
func TestAgeCountsFromTheLastTurn(t *testing.T) {
	t.Parallel()
	for age := 3 * time.Second; ; age *= 2 {
		h := clitest.OpenHost(t, host.Options{
			Timing: cli.Timing{StaleAfter: age, Grace: 50 * time.Millisecond},
		})
		p := start(t, h, agent(t, `exec sleep 600`))
		time.Sleep(age / 10)
		began := time.Now()
		err := p.Begin(t.Context(), cli.Mark{Turn: "1"})
		<-p.Done()
		took := time.Since(began)
		if (err != nil || took < age-age/20) && age < time.Minute { // on a slow machine it ends before the turn
			continue
		}
		if err != nil || took < age-age/20 || p.Exit().By != cli.EndedByAge {
			t.Errorf("ended after %s: %+v, %v", took, p.Exit(), err)
		}
		break
	}
}

// A runner that ends a program by itself reports why.
func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("max age", func(t *testing.T) {
		t.Parallel()
		h := clitest.OpenHost(t, host.Options{
			Timing: cli.Timing{StaleAfter: 100 * time.Millisecond, Grace: 50 * time.Millisecond},
		})
		p := start(t, h, agent(t, `setsid sleep 60 & exec sleep 60`))
		<-p.Done()
		if got := p.Exit(); got.By != cli.EndedByAge {
			t.Errorf("exit %+v", got)
		}
	})
	t.Run("orphaned", func(t *testing.T) {
		t.Parallel()
		o := host.Options{
			Dir: t.TempDir(), Timing: cli.Timing{OrphanAfter: 50 * time.Millisecond, Grace: 50 * time.Millisecond},
		}
		h := clitest.OpenHost(t, o)
		cmd := agent(t, `echo half; exec sleep 60`)
		cmd.Turn = "1"
		p := start(t, h, cmd)
		readLine(t, p)
		h = next(t, h, o)
		eventually(t, "its end", func() bool { return !onlyLeft(t, h).Alive })
		q := attach(t, h, p.Run(), 0)
		out, err := io.ReadAll(q.Stdout())
		<-q.Done()
		if err != nil || string(out) != "half\n" || q.Exit().By != cli.EndedOrphaned {
			t.Errorf("%q, %v, %+v", out, err, q.Exit())
		}
	})
	t.Run("terminated", func(t *testing.T) {
		t.Parallel()
		h := clitest.Host(t)
		p := start(t, h, agent(t, `echo ready; exec sleep 60`))
		readLine(t, p)
		if err := runnerProc(t, p).Signal(15); err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		if got := p.Exit(); got.By != cli.EndedByTerminated {
			t.Errorf("exit %+v", got)
		}
	})
}

// A host that cannot be opened returns an error.
func TestOpenHostFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := host.Open(host.Options{Dir: file}); err == nil {
		t.Error("a file was taken for a directory", h.Close())
	}
}
