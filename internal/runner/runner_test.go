package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
)

func TestInputAndOutput(t *testing.T) {
	c := open(t)
	r := start(t, c, sh(`read line; echo "got $line"; echo oops >&2; exit 3`))
	write(t, r, "hello\n")
	if got := readRest(t, r); got != "got hello\n" {
		t.Errorf("%q", got)
	}
	await(t, "done", r.Done())
	if got := r.Exit(); got != (Exit{Known: true, Code: 3}) {
		t.Errorf("%+v", got)
	}
	if got := r.StderrTail(); got != "oops\n" {
		t.Errorf("%q", got)
	}
	if _, err := r.Stdin().Write([]byte("again\n")); err == nil {
		t.Error("a write to a dead agent succeeded")
	}
	stop(t, r, 0)
	if err := r.Collect(t.Context()); err != nil {
		t.Error(err)
	}
	if got := r.StderrTail(); got != "oops\n" {
		t.Errorf("standard error of a run that was detached from: %q", got)
	}
	if _, err := c.Attach(t.Context(), r.ID(), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("attach to what was collected: %v", err)
	}
}

func TestCloseStdin(t *testing.T) {
	r := start(t, open(t), sh(`cat; echo done`))
	text := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	var sent sync.WaitGroup
	sent.Go(func() {
		_, err := r.Stdin().Write(text)
		if err := errors.Join(err, r.Stdin().Close()); err != nil {
			t.Error(err)
		}
	})
	if got := readRest(t, r); got != string(text)+"done\n" {
		t.Errorf("%d bytes of %d", len(got), len(text))
	}
	sent.Wait()
}

// An agent inherits no descriptors, limits, signals or session of ductor.
func TestAgentInheritsNothing(t *testing.T) {
	r := start(t, open(t),
		sh(`ls -l /proc/self/fd >&2; ls /proc/self/fd | wc -l; ulimit -Sn
			cat /proc/$$/status | grep -c 'SigBlk:.0000000000000000'; ps -o sid= -p $$`))
	out := strings.Fields(readRest(t, r))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if out[0] != "5" { // 0, 1, 2, the directory that ls reads, and the other end of standard input
		t.Errorf("it has %s", r.StderrTail())
	}
	if out[2] != "1" || out[3] != fmt.Sprint(r.PID()) {
		t.Errorf("%q", out)
	}
}

func TestStartErrors(t *testing.T) {
	c := open(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec     Spec
		notThere bool
	}{
		"no program":     {Spec{Path: "no-such-program"}, true},
		"no directory":   {Spec{Path: "sh", Dir: "/no/such"}, false},
		"no interpreter": {Spec{Path: script}, true},
	} {
		if _, err := c.Start(t.Context(), tc.spec); err == nil || errors.Is(err, fs.ErrNotExist) != tc.notThere {
			t.Errorf("%s: %v", name, err)
		}
	}
	if runs, err := c.List(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("%v, %v", runs, err)
	}
	spec := sh("exit 0")
	spec.ID = "twice"
	start(t, c, spec)
	if _, err := c.Start(t.Context(), spec); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second run of one name: %v", err)
	}
}

// A runner that dies loses only exit codes: output, input, the process tree and the deadline survive.
func TestAgentsSurviveAKilledRunner(t *testing.T) {
	for _, grouped := range []bool{true, false} {
		t.Run(fmt.Sprintf("grouped %v", grouped), func(t *testing.T) {
			o := Options{}
			if !grouped {
				o = withoutGroups(t)
			}
			c := reopen(t, t.TempDir(), o)
			r := start(t, c,
				sh(`i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i; sleep 0.005; done
		while read line; do echo "got $line"; done; echo bye`))
			write(t, r, "one\n")
			readLine(t, r)
			for range 3 {
				killRunner(t, c)
				write(t, r, "more\n")
			}
			if err := r.Stdin().Close(); err != nil {
				t.Fatal(err)
			}
			lines := strings.Fields(strings.ReplaceAll(readRest(t, r), "got ", ""))
			if len(lines) != 399+4+1 || lines[398] != "400" || lines[399] != "one" || lines[402] != "more" ||
				lines[403] != "bye" {
				t.Errorf("%d lines, the last %v", len(lines), lines[max(0, len(lines)-6):])
			}
			await(t, "done", r.Done())
			if got := r.Exit(); got.Known {
				t.Errorf("%+v", got)
			}
			stop(t, r, 0)
		})
	}
}

// withoutGroups returns options for runners without control groups, because the cgroup file system is not mounted for
// them.
func withoutGroups(t *testing.T) Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this needs root")
	}
	requirePrograms(t, "mount", "/usr/bin/unshare")
	own := runnerCommand(t)
	return Options{Command: append([]string{"/usr/bin/unshare", "-m", "sh", "-c",
		`mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@"`}, own...), Program: own[0]}
}

// requirePrograms skips a test if one of the programs is not installed.
func requirePrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
}

// escape leaves group, session and parent, and drops the mark.
const escape = `env -i PATH="$PATH" setsid sh -c 'sleep 600 >/dev/null 2>&1 & echo $!' & wait; `

func TestNothingEscapes(t *testing.T) {
	for _, grouped := range []bool{true, false} {
		for how, end := range map[string]func(t *testing.T, c *Client, r *Run){
			"stop": func(t *testing.T, c *Client, r *Run) { stop(t, r, time.Second) },
			"stop after the runner was killed": func(t *testing.T, c *Client, r *Run) {
				killRunner(t, c)
				stop(t, r, time.Second)
			},
			"stop after the agent was killed": func(t *testing.T, c *Client, r *Run) {
				if err := unix.Kill(r.PID(), unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				await(t, "done", r.Done())
				stop(t, r, time.Second)
			},
			"kill by another client": func(t *testing.T, c *Client, r *Run) {
				other := reopen(t, c.dir, c.opts)
				if err := other.Kill(t.Context(), r.ID()); err != nil {
					t.Fatal(err)
				}
				await(t, "done", r.Done())
				if by := r.Exit().By; by != ByKill {
					t.Errorf("it was ended by %q", by)
				}
			},
		} {
			t.Run(fmt.Sprintf("grouped %v, %s", grouped, how), func(t *testing.T) {
				o := Options{}
				if !grouped {
					o = withoutGroups(t)
				}
				c := reopen(t, t.TempDir(), o)
				r := start(t, c, sh(escape+`echo ready; exec sleep 600`))
				id, ok := proctree.LookUp(number(t, readLine(t, r)))
				if readLine(t, r) != "ready" || !ok {
					t.Fatal("no process escaped")
				}
				eventually(t, "its mark is wiped", func() bool { return len(processesOfRun(t, r.ID())) == 1 })
				end(t, c, r)
				if id.Running() {
					_ = id.Signal(unix.SIGKILL)
					t.Error("it still runs")
				}
			})
		}
	}
}

func TestExitNamesWhoEndedTheAgent(t *testing.T) {
	c := open(t)
	r := start(t, c, sh(`trap '' TERM; echo ready; while :; do sleep 600; done`))
	readLine(t, r)
	stop(t, r, 50*time.Millisecond)
	if got := r.Exit(); got != (Exit{Known: true, Code: -9, Signal: true, By: ByStop}) {
		t.Errorf("%+v", got)
	}
	stop(t, r, time.Hour)
}

func TestLimitsWithoutAClient(t *testing.T) {
	dir := t.TempDir()
	c := reopen(t, dir, Options{})
	for name, tc := range map[string]struct {
		limits Limits
		by     string
	}{
		"age":      {Limits{MaxAge: 300 * time.Millisecond}, ByMaxAge},
		"orphaned": {Limits{OrphanAfter: 200 * time.Millisecond}, ByOrphaned},
	} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, runner killed %v", name, killed), func(t *testing.T) {
				r := start(t, c, sh(`echo ready; sleep 600`))
				readLine(t, r)
				if err := r.Limit(t.Context(), tc.limits); err != nil {
					t.Fatal(err)
				}
				if killed {
					killRunner(t, c)
				}
				r.Detach()
				eventually(t, "its end", func() bool {
					runs, err := c.List(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, i := range runs {
						if i.ID == r.ID() {
							return i.Status != nil && i.Status.By == tc.by
						}
					}
					return false
				})
			})
		}
	}
}

func TestAttachAfterAnotherClient(t *testing.T) {
	dir := t.TempDir()
	c := reopen(t, dir, Options{})
	spec := sh(`while read line; do echo "got $line"; done; echo bye; exit 4`)
	spec.Labels = map[string]string{"for": "a turn"}
	r := start(t, c, spec)
	write(t, r, "one\n")
	readLine(t, r)
	write(t, r, "two\n")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	next := reopen(t, dir, Options{})
	var info Info
	eventually(t, "the second line, and the end of the first client's connection", func() bool {
		runs, err := next.List(t.Context())
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		info = runs[0]
		return info.OutputEnd == 16 && !info.Attached
	})
	if info.Labels["for"] != "a turn" || info.InputEnd != 8 || !info.Alive || info.PID != r.PID() {
		t.Errorf("%+v", info)
	}
	q := attach(t, next, r.ID(), 8)
	if got := readLine(t, q); got != "got two" {
		t.Errorf("%q", got)
	}
	if at := q.When(12); time.Since(at) > time.Minute { // even if the runner had not checked yet
		t.Errorf("it was said at %s", at)
	}
	write(t, q, "three\n")
	if err := q.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readRest(t, q); got != "got three\nbye\n" || q.Exit() != (Exit{Known: true, Code: 4}) {
		t.Errorf("%q, %+v", got, q.Exit())
	}
}

// A runner without clients exits if nothing runs, and stays while an agent runs.
func TestIdleRunnerExits(t *testing.T) {
	first := open(t)
	runs := start(t, first, sh(`read line`))
	id, _ := runnerOf(first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(desertedIdle + desertedIdle/4) // the only way to test that nothing happens
	second := reopen(t, first.dir, Options{})
	r := attach(t, second, runs.ID(), 0)
	if now, _ := runnerOf(second); now != id {
		t.Errorf("the runner %v left a run that went on to %v", id, now)
	}
	stop(t, r, 0)
	if err := r.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the runner leaves", func() bool { return !id.Running() })
}

// A grandchild that keeps the output open does not delay its end.
func TestGrandchildDoesNotDelayTheEndOfOutput(t *testing.T) {
	r := start(t, open(t), sh(`setsid sleep 600 & echo last`))
	if got := readRest(t, r); got != "last\n" {
		t.Errorf("%q", got)
	}
	stop(t, r, time.Second)
}

func TestWriteFailsWhenTheAgentExits(t *testing.T) {
	r := start(t, open(t), sh(`sleep 0.3`))
	if n, err := r.Stdin().Write(make([]byte, 4<<20)); err == nil {
		t.Errorf("%d bytes were written to a program that does not read", n)
	}
}

func TestARunnerLeavesNothingOnTheDisk(t *testing.T) {
	c := open(t)
	r := start(t, c, sh(`echo secret; cat`))
	readLine(t, r)
	if err := r.Forget(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if text := readFile(t, c.dir, r.ID(), outFile); strings.Contains(text, "secret") || len(text) != 7 {
		t.Errorf("%q", text)
	}
	write(t, r, "more\n")
	if got := readLine(t, r); got != "more" {
		t.Errorf("%q", got)
	}
	q := attach(t, c, r.ID(), 0)
	var lost *LostError
	if _, err := q.Stdout().Read(make([]byte, 10)); !errors.As(err, &lost) || lost.To != 7 {
		t.Errorf("%v", err)
	}
	if got := readLine(t, q); got != "more" {
		t.Errorf("%q", got)
	}
	if err := q.Collect(t.Context()); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(c.dir, r.ID())); err == nil {
		t.Errorf("left are %v", entries)
	}
}

// A runner ends a run whose record it cannot read, such as a run of an older ductor.
func TestUnreadableRunIsEnded(t *testing.T) {
	c := open(t)
	dir := c.pathOf("alien")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "spec.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command("sleep", "600")
	// like every agent
	agent.Env, agent.SysProcAttr = append(os.Environ(), Mark("alien")), &syscall.SysProcAttr{Setsid: true}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	runs, err := c.List(t.Context())
	if err != nil || len(runs) > 0 {
		t.Errorf("%+v, %v", runs, err)
	}
	if err := agent.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory is left: %v", err)
	}
}

// The standard error of an agent that exits before the reply to its start is available, too.
func TestStderrOfAnAgentThatExitsAtOnce(t *testing.T) {
	c := open(t)
	for range 50 {
		r := start(t, c, sh("echo why >&2; exit 3"))
		if _, err := io.Copy(io.Discard, r.Stdout()); err != nil {
			t.Fatal(err)
		}
		if r.Exit().Code != 3 || r.StderrTail() != "why\n" {
			t.Fatalf("it ended with %+v and said %q", r.Exit(), r.StderrTail())
		}
		if err := r.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
