package host_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
	"ductor/internal/proctree"
	"ductor/internal/runner"
)

func start(t testing.TB, h *host.Launcher, cmd cli.Command) cli.Process {
	t.Helper()
	p, err := h.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func stop(t testing.TB, p cli.Process, grace time.Duration) {
	t.Helper()
	if err := p.Stop(t.Context(), grace); err != nil {
		t.Fatal(err)
	}
}

// oneByte never reads ahead.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

// readLine reads one line of p's output.
func readLine(t testing.TB, p cli.Process) string {
	t.Helper()
	line, err := bufio.NewReaderSize(oneByte{p.Stdout()}, 16).ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

// survivors lists the processes with p's mark, whoever their parent is now.
func survivors(t testing.TB, run cli.RunID) []proctree.ID {
	t.Helper()
	ids, err := proctree.Marked(runner.RunVar + "=" + string(run))
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// eventually fails the test if ok does not return true in time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not in a minute", what)
		}
	}
}

func TestProgramTalksOverItsPipes(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), sh(t, `read line; echo "got $line"; echo oops >&2; exit 3`))
	if _, err := io.WriteString(p.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "got hello\n" {
		t.Fatalf("stdout %q, %v", out, err)
	}
	<-p.Done()
	if got := p.Exit(); got != (cli.ExitStatus{Code: 3}) {
		t.Errorf("exit %+v", got)
	}
	if got := p.StderrTail(); got != "oops\n" {
		t.Errorf("stderr %q: what was written before the exit is there once Done is closed", got)
	}
	if _, err := io.WriteString(p.Stdin(), "again\n"); err == nil {
		t.Error("a write to a dead program did not fail")
	}
	stop(t, p, 0)
}

func TestHowAProgramEnded(t *testing.T) {
	t.Parallel()
	h := clitest.Host(t)
	for _, tc := range []struct {
		name, script string
		stop         time.Duration // the grace; zero for none
		want         cli.ExitStatus
	}{
		{"by itself", "exit 3", 0, cli.ExitStatus{Code: 3}},
		{"by a signal of somebody's", "kill -9 $$", 0, cli.ExitStatus{Code: -9, Signal: true}},
		{"by Stop", "echo ready; exec sleep 60", time.Minute, cli.ExitStatus{Code: -15, Signal: true, By: cli.EndedByStop}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, h, sh(t, tc.script))
			if tc.stop > 0 {
				readLine(t, p)
				stop(t, p, tc.stop)
			}
			<-p.Done()
			if got := p.Exit(); got != tc.want {
				t.Errorf("exit %+v, want %+v", got, tc.want)
			}
			stop(t, p, 0)
		})
	}
}

func TestInterruptReachesTheGroup(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), sh(t, `trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.01; done`))
	readLine(t, p)
	if err := p.Interrupt(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Exit().Code; got != 7 {
		t.Errorf("exit code %d", got)
	}
	if err := p.Interrupt(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("an interrupt after the end gives %v", err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	h := clitest.Host(t)
	notProgram := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(notProgram, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		cmd      cli.Command
		notThere bool
	}{
		{"no such name", cli.Command{Path: "no-such-program-anywhere"}, true},
		{"no such file", cli.Command{Path: "/no/such/file"}, true},
		{"not executable", cli.Command{Path: notProgram}, false},
		{"no such directory", cli.Command{Path: "sh", Dir: "/no/such/dir"}, false},
	} {
		_, err := h.Start(t.Context(), tc.cmd)
		if err == nil || errors.Is(err, fs.ErrNotExist) != tc.notThere {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := h.LookPath("no-such-program-anywhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LookPath gives %v", err)
	}
	if _, err := h.Attach(t.Context(), cli.LeftRun{Run: "no-such-run"}, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Attach gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(cli.ErrAborted)
	if _, err := h.Start(cancelled, cli.Command{Path: "sh"}); !errors.Is(err, cli.ErrAborted) {
		t.Errorf("a start after the cancel gives %v", err)
	}
}

// A program sees the environment it was given and the mark of its run, but nothing of its runner's.
func TestProgramsEnvironment(t *testing.T) {
	t.Parallel()
	cmd := cli.Command{Path: "env", Env: []string{"A=1", runner.RunVar + "=outer", "B=x=y"}}
	p := start(t, clitest.Host(t), cmd)
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	if want := "A=1\nB=x=y\n" + runner.RunVar + "=" + string(p.Run()) + "\n"; string(out) != want {
		t.Errorf("it sees %q, want %q", out, want)
	}
	stop(t, p, 0)
}

func TestStopEndsEveryDescendant(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		cmd   cli.Command
		least int // processes, or the test proves nothing
	}{{"a family", helper(t, "family"), 8}, {"three hundred", sh(t, churn), 300}} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, clitest.Host(t), tc.cmd)
			readLine(t, p)
			eventually(t, "descendants", func() bool { return len(survivors(t, p.Run())) >= tc.least })
			began := time.Now()
			stop(t, p, 200*time.Millisecond)
			t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
			if left := survivors(t, p.Run()); len(left) > 0 {
				t.Errorf("%v are still there", left)
			}
		})
	}
}

func TestStopKillsWhatIgnoresTerm(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), helper(t, "deaf"))
	readLine(t, p)
	stop(t, p, 50*time.Millisecond)
	if got := p.Exit(); got != (cli.ExitStatus{Code: -9, Signal: true, By: cli.EndedByStop}) {
		t.Errorf("exit %+v", got)
	}
}

// Stop finds every process that a program started, even without a tie to it. Each script says which process escapes.
func TestEscapes(t *testing.T) {
	t.Parallel()
	h := clitest.Host(t)
	for _, tc := range []struct{ name, script string }{
		{"in the background", `sleep 60 & echo $!; wait`},
		{"own session", `setsid sleep 60 & echo $!; wait`},
		{"nohup", `nohup sleep 60 >/dev/null 2>&1 & echo $!; wait`},
		{"double fork", `(setsid sh -c 'sleep 60 & echo $!; exit 0' &) ; sleep 60`},
		{"without the mark, still a child", `env -i setsid sleep 60 & echo $!; wait`},
		{"without the mark, still of the group", `(env -i sleep 60 & echo $!) ; sleep 60`},
		{"without the mark, an orphan in another session", `setsid sh -c '(env -i sleep 60 & echo $!)'; sleep 60`},
		{"without the mark, and the program exits", `setsid sh -c '(env -i sleep 60 & echo $!)'; exit 0`},
		{"stopped", `sleep 60 & kill -STOP $!; echo $!; wait`},
		{"deaf", `sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & while :; do sleep 1; done`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, h, sh(t, tc.script))
			id, ok := proctree.LookUp(atoi(t, readLine(t, p)))
			if !ok || !id.Running() {
				t.Fatal("nothing escaped: the test proves nothing")
			}
			stop(t, p, 100*time.Millisecond)
			if id.Running() {
				t.Errorf("process %d is still there", id.PID)
			}
			if left := survivors(t, p.Run()); len(left) > 0 {
				t.Errorf("%v are still there", left)
			}
		})
	}
}

func TestStopAfterTheProgramExited(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), helper(t, "escapee"))
	<-p.Done()
	// A process that has just begun its program has no environment for a moment, so it has no mark.
	eventually(t, "the one that escaped", func() bool { return len(survivors(t, p.Run())) == 1 })
	for range 3 {
		stop(t, p, time.Second)
	}
	if left := survivors(t, p.Run()); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
	if got := p.Exit(); got != (cli.ExitStatus{}) {
		t.Errorf("exit %+v", got)
	}
}

func TestCancelCutsTheGraceShort(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), helper(t, "deaf"))
	readLine(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := p.Exit(); !got.Signal {
		t.Errorf("exit %+v", got)
	}
}

// Many concurrent stops, detaches and readers of one run all return, and no process is left.
func TestStopFromManySides(t *testing.T) {
	t.Parallel()
	for _, detach := range []bool{false, true} {
		p := start(t, clitest.Host(t), helper(t, "deaf"))
		readLine(t, p)
		var all sync.WaitGroup
		all.Go(func() { _, _ = io.Copy(io.Discard, p.Stdout()) }) // ends with whatever comes first
		for range 4 {
			all.Go(func() {
				if err := p.Stop(t.Context(), 10*time.Millisecond); err != nil {
					t.Error(err)
				}
			})
			if detach {
				all.Go(p.Detach)
			}
		}
		all.Wait()
		if left := survivors(t, p.Run()); len(left) > 0 {
			t.Errorf("%v are still there", left)
		}
	}
}

func TestStopAfterDetach(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), helper(t, "family"))
	readLine(t, p)
	p.Detach()
	p.Detach()
	if _, err := p.Stdout().Read(make([]byte, 1)); !errors.Is(err, cli.ErrDetached) {
		t.Errorf("a read gives %v", err)
	}
	if len(survivors(t, p.Run())) == 0 {
		t.Fatal("it did not outlive Detach: the test proves nothing")
	}
	for range 2 {
		stop(t, p, 50*time.Millisecond)
	}
	if left := survivors(t, p.Run()); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
}

func TestStdoutEndsThoughAGrandchildHoldsIt(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), sh(t, `echo last; sleep 60 & exit 0`))
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "last\n" {
		t.Errorf("stdout %q, %v", out, err)
	}
	eventually(t, "the grandchild", func() bool { return len(survivors(t, p.Run())) > 0 })
	stop(t, p, 0)
}

func TestSlowReaderLosesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), sh(t, `head -c 500000 /dev/zero; sleep 60 & exit 0`))
	<-p.Done()
	stop(t, p, 0)
	out, err := io.ReadAll(p.Stdout())
	if err != nil || len(out) != 500000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestWriterIsFreedWhenTheProgramEnds(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), sh(t, `sleep 60 & echo started; exec sleep 0.05`)) // neither reads
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Stdin().Write(bytes.Repeat([]byte("x"), 1<<20))
		wrote <- err
	}()
	if err := <-wrote; err == nil {
		t.Error("a megabyte went to a program that reads nothing")
	}
	stop(t, p, 0)
}
