package cli

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

	"golang.org/x/sys/unix"
)

func start(t *testing.T, h *Host, cmd Command) *hostProcess {
	t.Helper()
	p, err := h.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), 0); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, p.Stdout()); err != nil {
			t.Error(err)
		}
	})
	return p.(*hostProcess)
}

// awaitLine reads p's output up to its first line.
func awaitLine(t *testing.T, p Process) string {
	t.Helper()
	line, err := bufio.NewReaderSize(p.Stdout(), 16).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// survivors lists processes that carry p's mark, whoever their parent is now.
func survivors(t *testing.T, p *hostProcess) []int {
	t.Helper()
	procs, err := allProcs()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, q := range procs {
		if yes, _ := marked(q.pid, p.tree.entry); yes && !q.dead() {
			pids = append(pids, q.pid)
		}
	}
	return pids
}

func TestProgramTalksOverItsPipes(t *testing.T) {
	p := start(t, NewHost(), sh(t, `read line; echo "got $line"; echo oops >&2; exit 3`))
	if _, err := io.WriteString(p.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "got hello\n" {
		t.Fatalf("stdout %q, %v", out, err)
	}
	<-p.Done()
	if got := p.Exit(); got != (ExitStatus{Code: 3}) {
		t.Errorf("exit %+v", got)
	}
	if got := p.StderrTail(); got != "oops\n" {
		t.Errorf("stderr %q: what was written before the exit is there once Done is closed", got)
	}
	if _, err := io.WriteString(p.Stdin(), "again\n"); err == nil {
		t.Error("a write to a dead program did not fail")
	}
}

func TestStderrKeepsItsTail(t *testing.T) {
	p := start(t, NewHost(), sh(t, `i=0; while [ $i -lt 3000 ]; do echo "line $i" >&2; i=$((i+1)); done`))
	<-p.Done()
	got := p.StderrTail()
	if len(got) != stderrKept || !strings.HasSuffix(got, "line 2999\n") {
		t.Errorf("%d bytes, ending in %q", len(got), got[max(0, len(got)-20):])
	}
}

func TestExitBySignalIsNegative(t *testing.T) {
	p := start(t, NewHost(), sh(t, `kill -9 $$`))
	<-p.Done()
	if got := p.Exit(); got != (ExitStatus{Code: -9, Signal: true}) {
		t.Errorf("exit %+v", got)
	}
}

func TestInterruptReachesTheGroup(t *testing.T) {
	p := start(t, NewHost(), sh(t, `trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.01; done`))
	if got := awaitLine(t, p); got != "ready" {
		t.Fatal(got)
	}
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
	h := NewHost()
	notProgram := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(notProgram, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		cmd      Command
		notThere bool
	}{
		{"no such name", Command{Path: "no-such-program-anywhere"}, true},
		{"no such file", Command{Path: "/no/such/file"}, true},
		{"not executable", Command{Path: notProgram}, false},
		{"no such directory", Command{Path: "sh", Dir: "/no/such/dir"}, false},
	} {
		_, err := h.Start(t.Context(), tc.cmd)
		if err == nil || errors.Is(err, fs.ErrNotExist) != tc.notThere {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := h.LookPath("no-such-program-anywhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LookPath gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(ErrAborted)
	if _, err := h.Start(cancelled, Command{Path: "sh"}); !errors.Is(err, ErrAborted) {
		t.Errorf("a start after the cancel gives %v", err)
	}
}

func TestStopEndsEveryDescendant(t *testing.T) {
	const grace = 200 * time.Millisecond
	p := start(t, NewHost(), helper(t, "family"))
	awaitLine(t, p)
	if n := len(survivors(t, p)); n < 5 {
		t.Fatalf("only %d processes: the test proves nothing", n)
	}
	began := time.Now()
	if err := p.Stop(t.Context(), grace); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(began))
	if left := survivors(t, p); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
	if got := p.Exit(); !got.Signal {
		t.Errorf("exit %+v", got)
	}
}

func TestStopAfterTheProgramExited(t *testing.T) {
	p := start(t, NewHost(), helper(t, "escapee"))
	<-p.Done()
	if n := len(survivors(t, p)); n != 1 {
		t.Fatalf("%d survivors before the stop, want the one that escaped", n)
	}
	for range 2 {
		if err := p.Stop(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if left := survivors(t, p); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
}

func TestStopKillsWhatIgnoresTerm(t *testing.T) {
	p := start(t, NewHost(), helper(t, "deaf"))
	awaitLine(t, p)
	if err := p.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := p.Exit(); got != (ExitStatus{Code: -9, Signal: true}) {
		t.Errorf("exit %+v", got)
	}
}

func TestCancelCutsTheGraceShort(t *testing.T) {
	p := start(t, NewHost(), helper(t, "deaf"))
	awaitLine(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := p.Exit(); !got.Signal {
		t.Errorf("exit %+v", got)
	}
}

func TestStdoutEndsThoughAGrandchildHoldsIt(t *testing.T) {
	p := start(t, NewHost(), sh(t, `echo last; sleep 60 & exit 0`))
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "last\n" {
		t.Errorf("stdout %q, %v", out, err)
	}
	if len(survivors(t, p)) == 0 {
		t.Error("the grandchild is gone: the test proves nothing")
	}
}

func TestSlowReaderLosesNothing(t *testing.T) {
	p := start(t, NewHost(), sh(t, `head -c 50000 /dev/zero; sleep 60 & exit 0`))
	<-p.Done()
	p.out.mu.Lock()
	p.out.exited = p.out.exited.Add(-time.Hour) // as if the reader came an hour later
	p.out.mu.Unlock()
	out, err := io.ReadAll(p.Stdout())
	if err != nil || len(out) != 50000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestWriterIsFreedWhenTheProgramEnds(t *testing.T) {
	p := start(t, NewHost(), sh(t, `sleep 60 & echo started; exec sleep 0.05`)) // neither reads
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Stdin().Write(bytes.Repeat([]byte("x"), 1<<20))
		wrote <- err
	}()
	if err := <-wrote; err == nil {
		t.Error("a megabyte went to a program that reads nothing")
	}
}

// In a process of its own, because becoming a subreaper cannot be taken back.
func TestSubreaperAdoptsStopsAndReaps(t *testing.T) {
	p := start(t, NewHost(), helper(t, "subreaper"))
	out, err := io.ReadAll(p.Stdout())
	if err != nil || len(out) > 0 {
		t.Errorf("%s%v", out, err)
	}
	<-p.Done()
	if p.Exit() != (ExitStatus{}) {
		t.Errorf("exit %+v: %s", p.Exit(), p.StderrTail())
	}
}

// What a program started is found whichever of its ties it cut.
func TestEscapes(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"in the background", `sleep 60 & echo ready; wait`},
		{"own session", `setsid sleep 60 & echo ready; wait`},
		{"nohup", `nohup sleep 60 >/dev/null 2>&1 & echo ready; wait`},
		{"double fork", `(setsid sh -c 'sleep 60 & exit 0' &) ; echo ready; sleep 60`},
		{"without the mark, still a child", `env -i setsid sleep 60 & echo ready; wait`},
		{"without the mark, still of the group", `(env -i sleep 60 &) ; echo ready; sleep 60`},
		{"stopped", `sleep 60 & kill -STOP $!; echo ready; wait`},
		{"deaf", `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1; done' & echo ready; while :; do sleep 1; done`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, NewHost(), sh(t, tc.script))
			awaitLine(t, p)
			var members []procStat
			for len(members) < 2 { // the shell may not have forked yet
				var err error
				if members, _, err = p.tree.members(); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Stop(t.Context(), 100*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				if p.tree.alive(m.procID) {
					t.Errorf("process %d is still there", m.pid)
				}
			}
			if left := survivors(t, p); len(left) > 0 {
				t.Errorf("%v are still there", left)
			}
		})
	}
}

// A process that only has the number of one we knew is none of ours.
func TestSignalSparesALaterProcessOfTheSameNumber(t *testing.T) {
	p := start(t, NewHost(), helper(t, "sleep"))
	awaitLine(t, p)
	earlier := procID{pid: p.pid, start: p.tree.root.start - 1}
	if err := earlier.signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if p.tree.alive(earlier) || !p.tree.alive(p.tree.root) {
		t.Error("the wrong process was hit")
	}
}

func TestStopFromManySides(t *testing.T) {
	p := start(t, NewHost(), helper(t, "deaf"))
	awaitLine(t, p)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := p.Stop(t.Context(), 10*time.Millisecond); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := p.Exit(); !got.Signal {
		t.Errorf("exit %+v", got)
	}
}

// A grandchild that talks on after the program's exit is cut off in the end.
func TestDrainHasAnEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d := newDrainReader(r)
	if _, err := w.WriteString("owed"); err != nil {
		t.Fatal(err)
	}
	d.programExited()
	d.mu.Lock()
	d.exited = time.Now().Add(-drainMost) // it has talked for so long already
	d.mu.Unlock()
	got, err := io.ReadAll(d)
	if err != nil || string(got) != "owed" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := w.WriteString("more"); err == nil {
		t.Error("the pipe is still open")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestParseStat(t *testing.T) {
	const tail = " 1 2 3 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 2"
	for _, tc := range []struct {
		name, in string
		ok       bool
	}{
		{"plain", "9 (sh) S" + tail, true},
		{"odd name", "9 (a) b (c) R 7) Z" + tail, true},
		{"empty", "", false},
		{"cut short", "9 (sh) S 1 2 3", false},
		{"not numbers", "9 (sh) S a b c" + tail, false},
	} {
		got, ok := parseStat(9, []byte(tc.in))
		if ok != tc.ok || ok && (got.pid != 9 || got.parent != 1 || got.group != 2 || got.session != 3 || got.start != 777) {
			t.Errorf("%s: %+v, %v", tc.name, got, ok)
		}
	}
	if z, _ := parseStat(9, []byte("9 (sh) Z"+tail)); !z.dead() {
		t.Error("a zombie lives")
	}
	if z, _ := parseStat(9, []byte("9 (sh) Z"+strings.Replace(tail, "20 0 1 ", "20 0 2 ", 1))); z.dead() {
		t.Error("a process with a thread that runs is dead")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("9 (sh) S 1 2 3 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 2"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, ok := parseStat(5, raw); ok && p.pid != 5 {
			t.Errorf("%+v", p)
		}
	})
}

func TestMarkReplacesAnotherOne(t *testing.T) {
	got := markedEnv([]string{"A=1", "DUCTOR_RUN=old", "B=2"}, "new")
	if want := "A=1 B=2 DUCTOR_RUN=new"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
}

func BenchmarkStopObedient(b *testing.B) {
	h := NewHost()
	for b.Loop() {
		p, err := h.Start(b.Context(), Command{Path: "sleep", Args: []string{"60"}, Env: os.Environ()})
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Stop(b.Context(), time.Second); err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, p.Stdout()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookForMembers(b *testing.B) {
	p, err := NewHost().Start(b.Context(), Command{Path: "sleep", Args: []string{"60"}, Env: os.Environ()})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if live, _, err := p.(*hostProcess).tree.members(); err != nil || len(live) != 1 {
			b.Fatal(live, err)
		}
	}
	if err := p.Stop(b.Context(), time.Second); err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, p.Stdout()); err != nil {
		b.Fatal(err)
	}
}
