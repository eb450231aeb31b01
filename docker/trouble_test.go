package docker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/docker/dockertest"
	"ductor/internal/proctree"
	"ductor/internal/runner"
)

// shell returns a command that would leave a canary file on this machine if it ever ran here: the directory is not
// mounted.
func shell(o Options, canary, script string) cli.Command {
	return cli.Command{
		Path: "sh", Args: []string{"-c", "echo ran 2>/dev/null >" + canary + "; " + script}, Dir: o.Projects[0],
		For: cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a"}, Env: os.Environ(),
	}
}

// sandbox is a launcher for tests of failures.
type sandbox struct {
	testing.TB
	*Launcher
	o      Options
	canary string
	env    []string // added to this machine's environment
}

func newSandbox(t testing.TB, o Options) *sandbox {
	s := &sandbox{TB: t, Launcher: open(t, o), o: o, canary: filepath.Join(t.TempDir(), "canary")}
	t.Cleanup(func() {
		if _, err := os.Stat(s.canary); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("something ran on this machine: %v", err)
		}
	})
	return s
}

func (s *sandbox) start(script string) cli.Process {
	s.Helper()
	cmd := shell(s.o, s.canary, script)
	cmd.Env = append(cmd.Env, s.env...)
	p, err := s.Launcher.Start(s.Context(), cmd)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// runTurn runs a turn and expects success.
func (s *sandbox) runTurn() {
	s.Helper()
	p := s.start("echo fine")
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "fine\n" {
		s.Errorf("the next turn says %q, %v", out, err)
	}
	s.stop(p)
}

func (s *sandbox) stop(p cli.Process) {
	s.Helper()
	dockertest.Eventually(s, "it is stopped", func() bool { // a busy machine may need longer than Stop waits
		err := p.Stop(s.Context(), 100*time.Millisecond)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "in time") {
			s.Error(err)
			return true
		}
		return err == nil
	})
	s.expectNoProcesses(p.Run())
}

// expectNoProcesses expects that no process of a run exists on this machine, where a container's processes are visible
// too.
func (s *sandbox) expectNoProcesses(run cli.RunID) {
	s.Helper()
	dockertest.Eventually(s, "nothing is left of the run", func() bool {
		left, err := proctree.Marked(runner.Mark(string(run)))
		return err == nil && len(left) == 0
	})
}

// awaitGone reads a process until the error that its environment is gone.
func (s *sandbox) awaitGone(p cli.Process, words ...string) {
	s.Helper()
	_, err := io.ReadAll(p.Stdout())
	s.expectFailure(err, words...)
	<-p.Done()
}

// expectFailure expects an error to be a failure of the sandbox, with words for the chat.
func (s *sandbox) expectFailure(err error, words ...string) {
	s.Helper()
	var f *cli.Failure
	if !errors.As(err, &f) || f.Kind != cli.NoSandbox || errors.Is(err, fs.ErrNotExist) {
		s.Fatalf("the error is %v", err)
	}
	sentence := f.Error()
	s.Log(sentence)
	for _, word := range words {
		if !strings.Contains(sentence, word) {
			s.Errorf("%q does not say %q", sentence, word)
		}
	}
}

func (s *sandbox) startReady(script string) cli.Process {
	s.Helper()
	p := s.start("echo ready; " + script)
	line := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil {
		s.Fatal(err)
	}
	return p
}

const deaf = `trap '' TERM HUP
setsid sh -c "trap '' TERM HUP; while :; do sleep 600; done" & while :; do sleep 600; done`

func TestContainerTroubleInMidTurn(t *testing.T) {
	t.Parallel()
	e := needEngine(t)
	s := newSandbox(t, testOptions(t, e))
	name := s.o.containerName()
	s.runTurn()
	t.Run("removed", func(t *testing.T) {
		s := s.forSubtest(t)
		p := s.startReady(deaf)
		dockertest.Docker(t, "rm", "-f", name)
		s.awaitGone(p, "the sandbox's container was ") // briefly stopped, then removed
		s.stop(p)
		s.runTurn()
	})
	t.Run("stopped", func(t *testing.T) {
		s := s.forSubtest(t)
		p := s.startReady(deaf)
		dockertest.Docker(t, "stop", name) // an orderly stop: the runner ends the program and can report it
		_, err := io.ReadAll(p.Stdout())
		<-p.Done()
		if got := p.Exit(); err == nil && got.By != cli.EndedByTerminated {
			t.Errorf("exit %+v", got)
		}
		if err != nil { // on a busy machine the connection may end first
			s.expectFailure(err, "stopped")
		}
		s.stop(p)
		s.runTurn()
	})
	t.Run("killed", func(t *testing.T) {
		s := s.forSubtest(t)
		p := s.startReady(deaf)
		dockertest.Docker(t, "kill", name)
		s.awaitGone(p, "stopped")
		s.stop(p)
		s.runTurn()
	})
	t.Run("connection killed", func(t *testing.T) { killUnderTurn(s.forSubtest(t), name, "ductor-runner connect") })
	t.Run("runner killed", func(t *testing.T) { killUnderTurn(s.forSubtest(t), name, "ductor run") })
}

// killUnderTurn kills one of our programs in a container during a turn, which continues without noticing.
func killUnderTurn(s *sandbox, name, words string) {
	s.Helper()
	p := s.startReady("sleep 1; echo after; cat")
	killIn(s, name, words)
	rest := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), rest); err != nil || string(rest) != "after\n" {
		s.Errorf("after %s was killed it says %q, %v", words, rest, err)
	}
	if _, err := io.WriteString(p.Stdin(), "more\n"); err != nil {
		s.Error(err)
	}
	if _, err := io.ReadFull(p.Stdout(), rest[:5]); err != nil || string(rest[:5]) != "more\n" {
		s.Errorf("after %s was killed it says %q, %v", words, rest, err)
	}
	s.stop(p)
}

func TestContainerPausedInMidTurn(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	s := newSandbox(t, o)
	p := s.startReady(deaf)
	name := s.o.containerName()
	dockertest.Pause(t, dockertest.Host(), name)
	s.awaitGone(p, "paused")
	s.stop(p)
	s.runTurn()
}

// If a container has no room for another process, a start fails with that reason. The processes that fill it can be
// stopped, even if not even a connection can be made.
func TestContainerWithoutRoomForAProcess(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.PIDs = 64
	s := newSandbox(t, o)
	s.runTurn()
	life := func() string { return dockertest.Docker(t, "inspect", "-f", "{{.State.StartedAt}}", o.containerName()) }
	for _, cut := range []bool{false, true} {
		p := s.start("(while :; do sleep 600 & done) 2>/dev/null; sleep 600 & echo full; read line")
		full := make([]byte, 5)
		if _, err := io.ReadFull(p.Stdout(), full); err != nil {
			t.Fatal(err)
		}
		_, err := s.Launcher.Start(t.Context(), shell(o, s.canary, "true"))
		s.expectFailure(err, "in the sandbox's container")
		before := life()
		if cut {
			// the restarted container has no room either
			dockertest.Docker(t, "update", "--pids-limit", "40", o.containerName())
			killIn(t, o.containerName(), "ductor-runner connect")
		}
		s.stop(p)
		// Without the cut, a busy machine may drop the connection too.
		if anew := life() != before; cut && !anew {
			t.Error("the connection is cut, and the container was not started anew")
		}
		s.runTurn()
	}
}

// killIn kills the programs in a container whose command line contains words. If the container does not run, for
// example because a busy machine restarts it, there is nothing to kill.
func killIn(t testing.TB, name, words string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "docker", "--host", dockertest.Host(), "top", name,
		"-eo", "pid,args").CombinedOutput()
	if err != nil && !strings.Contains(string(list), "is not running") {
		t.Fatalf("docker top: %v: %s", err, list)
	}
	for line := range strings.Lines(string(list)) {
		if strings.Contains(line, words) {
			_ = exec.Command("kill", "-9", strings.Fields(line)[0]).Run() // a spare may already have exited
		}
	}
}

// forSubtest returns the same sandbox for a subtest.
func (s *sandbox) forSubtest(t testing.TB) *sandbox {
	return &sandbox{TB: t, Launcher: s.Launcher, o: s.o, canary: s.canary}
}

func TestUnavailableSandboxes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Options)
		words  []string
	}{
		{"no engine", func(o *Options) { o.Engine = engineAt(t, "unix:///no/such/socket") },
			[]string{"cannot be reached", "start it"}},
		{"no engine listens", func(o *Options) { o.Engine = engineAt(t, "tcp://127.0.0.1:1") },
			[]string{"tcp://127.0.0.1:1 cannot be reached"}},
		{"no image", func(o *Options) { o.Image = "no-such-image:1" }, []string{"has no image no-such-image:1",
			"docker pull"}},
		{"no directory", func(o *Options) { o.Projects = append(o.Projects, "/no/such/directory") },
			[]string{"/no/such/directory", "create it there"}},
		{"no runner", func(o *Options) { o.Runner = "/no/such/file" }, []string{"ductor-runner", "CGO_ENABLED=0"}},
		{"a runner that is none", func(o *Options) { o.Runner = "/etc/passwd" }, []string{"not a program for Linux"}},
		{"a runner that needs libraries", func(o *Options) { o.Runner = "/bin/ls" }, []string{"needs libraries"}},
		{"no network", func(o *Options) { o.Network = "no-such-network" }, []string{"no-such-network"}},
		// the container may end because of the limit
		{"no room for a process", func(o *Options) { o.PIDs = 9 }, []string{"the sandbox's container"}},
		{"a seed that is not there", func(o *Options) { o.Seeds = []Seed{{From: "/no/such/seed", To: "x"}} },
			[]string{"/no/such/seed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t, needEngine(t))
			c.change(&o)
			s := newSandbox(t, o)
			_, err := s.Launcher.Start(t.Context(), shell(o, s.canary, "true"))
			s.expectFailure(err, c.words...)
			if _, err := s.LookPath("sh"); err == nil {
				t.Error("a program is found where nothing is")
			}
		})
	}
}

func engineAt(t testing.TB, host string) *Engine {
	t.Helper()
	e, err := Connect(EngineOptions{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.MemoryMB = 96
	s := newSandbox(t, o)
	s.runTurn()
	t.Run("the agent itself", func(t *testing.T) {
		s := s.forSubtest(t)
		p := s.startReady(`x=$(head -c 300000000 /dev/zero | tr '\0' a); echo ${#x}`)
		if _, err := io.ReadAll(p.Stdout()); err != nil {
			t.Error(err)
		}
		<-p.Done()
		if got := p.Exit(); !got.OOM || got.Code != -9 && got.By != cli.EndedUnseen { // the runner may be dead too
			t.Errorf("exit %+v", got)
		}
		s.stop(p)
		s.runTurn()
	})
	t.Run("what it started", func(t *testing.T) { // the agent reports that
		s := s.forSubtest(t)
		p := s.startReady(`tail /dev/zero; echo "tail: $?"`)
		out, err := io.ReadAll(p.Stdout())
		if err != nil || !strings.Contains(string(out), "tail: 137") {
			t.Errorf("it says %q, %v", out, err)
		}
		<-p.Done()
		if got := p.Exit(); got.Code != 0 || got.OOM {
			t.Errorf("exit %+v", got)
		}
		s.stop(p)
		s.runTurn()
	})
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.StateSize, o.ReadOnlyRoot = 8<<20, true
	s := newSandbox(t, o)
	s.runTurn()
	p := s.startReady(`head -c 20000000 /dev/zero >/ductor/runs/big 2>/dev/null; echo full; read go
		head -c 300000 /dev/zero | tr '\0' x; echo; echo end`)
	line := make([]byte, 5)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil {
		t.Fatal(err)
	}
	for prepared := 0; ; prepared++ { // spare processes can still be used
		q, err := s.Launcher.Start(t.Context(), shell(o, s.canary, "true"))
		if err != nil {
			t.Log(err)
			if !strings.Contains(err.Error(), "the disk of the sandbox is full") {
				t.Errorf("a start on a full disk gives %v", err)
			}
			break
		}
		s.stop(q)
		if prepared > 2 {
			t.Fatal("every start works though the disk is full")
		}
	}
	if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout()) // an attached reader gets all output even if the disk is full
	if err != nil || len(out) != 300005 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	s.stop(p)
	dockertest.Docker(t, "exec", o.containerName(), "/bin/rm", runsDir+"/big")
	s.runTurn()
}
