package docker

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/docker/dockertest"
	"ductor/internal/proctree"
	"ductor/internal/runner"
)

// clientVar turns the test binary into a ductor that starts something in a container and waits to be killed. It
// contains the options.
const clientVar = "DOCKER_TEST_CLIENT"

func runClient() {
	var o Options
	err := json.Unmarshal([]byte(os.Getenv(clientVar)), &o)
	if err == nil {
		o.Engine, err = Connect(EngineOptions{Host: os.Getenv("DOCKER_HOST")})
	}
	var p cli.Process
	if err == nil {
		var l *Launcher
		if l, err = Open(o); err == nil {
			p, err = l.Start(contextOfClient(), shell(o, "/no/canary", "echo ready; "+deaf))
		}
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	if _, err := io.ReadFull(p.Stdout(), make([]byte, 6)); err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(string(p.Run()) + "\n")
	time.Sleep(time.Hour)
}

// killedClient starts a process tree that ignores signals in a container, from a ductor that is then killed. It returns
// the run.
func killedClient(t *testing.T, o Options) cli.RunID {
	t.Helper()
	o.Engine = nil
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), clientVar+"="+string(raw))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the client says %q, %v", line, err)
	}
	run := cli.RunID(strings.TrimSpace(line))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	dockertest.Eventually(t, "the deaf grandchild is there, without which the test proves nothing", func() bool {
		left, err := proctree.Marked(runner.Mark(string(run)))
		return err == nil && len(left) >= 3
	})
	return run
}

// A killed ductor leaves its run in the container; the next ductor finds it, continues it and ends it.
func TestRunOfAKilledDuctorContinues(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	run := killedClient(t, o)
	s := newSandbox(t, o)
	left, err := s.Left(t.Context())
	if err != nil || len(left) != 1 || left[0].Run != run || !left[0].Alive || left[0].OutputEnd != 6 {
		t.Fatalf("left is %+v, %v", left, err)
	}
	p, err := s.Attach(t.Context(), cli.LeftRun{Run: run}, 0)
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil || string(line) != "ready\n" {
		t.Errorf("it said %q, %v", line, err)
	}
	began := time.Now()
	s.stop(p)
	t.Logf("ended in %s", time.Since(began).Round(time.Millisecond))
	dockertest.Eventually(t, "the bridges of the killed ductor end", func() bool {
		return strings.Count(dockertest.Docker(t, "top", o.containerName(), "-eo", "pid,args"),
			"ductor-runner connect") <= 1
	})
	s.runTurn()
}

// A run whose ductor never comes back ends in time.
func TestOrphanEndsByItself(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.OrphanAfter = time.Second
	s := newSandbox(t, o)
	s.expectNoProcesses(killedClient(t, o))
	s.runTurn()
}

// An overdue run is ended inside the container, by the same code as on the host.
func TestOldRunIsEnded(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.StaleAfter = time.Second
	s := newSandbox(t, o)
	p := s.startReady(deaf)
	<-p.Done()
	if got := p.Exit(); got.By != cli.EndedByAge {
		t.Errorf("exit %+v", got)
	}
	s.stop(p)
}

// At the start, containers that are no longer configured are removed with their processes; the others stay.
func TestOrphanedContainersAreRemoved(t *testing.T) {
	t.Parallel()
	e := needEngine(t)
	o := testOptions(t, e)
	kept := newSandbox(t, o)
	kept.runTurn()
	gone := o
	gone.Name = "of another time"
	run := killedClient(t, gone)
	if n, err := e.Clean(t.Context(), o.Owner, func(name string) bool { return name == o.Name }); err != nil || n != 1 {
		t.Errorf("%d containers were removed, %v", n, err)
	}
	kept.expectNoProcesses(run)
	kept.runTurn()
}

// Changed settings lead to a new container; the home stays.
func TestChangedSettingsReplaceTheContainer(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	s := newSandbox(t, o)
	p := s.startReady("echo kept >~/file; cat")
	id := dockertest.Docker(t, "inspect", "-f", "{{.Id}}", o.containerName())
	o.MemoryMB, o.PIDs = 200, 100
	next := newSandbox(t, o)
	q := next.start("cat ~/file; ulimit -c")
	out, err := io.ReadAll(q.Stdout())
	if err != nil || !strings.HasPrefix(string(out), "kept\n") {
		t.Errorf("in the new container %q, %v", out, err)
	}
	next.stop(q)
	if again := dockertest.Docker(t, "inspect", "-f", "{{.Id}} {{.HostConfig.Memory}}",
		o.containerName()); again == id || !strings.HasSuffix(again, " 209715200") {
		t.Errorf("the container is %s", again)
	}
	if out, err := io.ReadAll(p.Stdout()); err != nil {
		t.Logf("the run in the old one ended after %q with %v", out, err)
	}
	s.stop(p)
}

func TestIdleContainerIsRetired(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	s := newSandbox(t, o)
	p := s.startReady(deaf)
	if done, err := s.Retire(t.Context(), 0); done || err != nil {
		t.Errorf("a busy one: %v, %v", done, err)
	}
	s.stop(p)
	if done, err := s.Retire(t.Context(), time.Hour); done || err != nil {
		t.Errorf("one that was used just now: %v, %v", done, err)
	}
	l, err := Open(o) // as the next ductor does
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, used, err := l.Size(t.Context()); err != nil || time.Since(used) > time.Minute ||
		!used.Equal(usedAt(o.Dir, o.containerName())) {
		t.Errorf("the next ductor thinks that it was used %s, %v", used, err)
	}
	if done, err := s.Retire(t.Context(), 0); !done || err != nil {
		t.Errorf("an idle one: %v, %v", done, err)
	}
	if size, _, err := l.Size(t.Context()); err != nil || size != 0 {
		t.Errorf("one that is gone holds %d bytes, %v", size, err)
	}
	s.runTurn()
}

// The rights of a container and the files that it sees.
func TestConfinement(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.ReadOnlyRoot, o.User, o.MemoryMB = true, "1234:1235", 100
	secret := t.TempDir() + "/key"
	dockertest.Write(t, secret, "k3y", 0o644)
	o.Seeds = []Seed{{From: secret, To: ".agent/key"}}
	o.Mounts = []Mount{{Source: "/etc/hostname", Target: homeDir + "/.config/name"}}
	s := newSandbox(t, o)
	s.env = []string{"SSH_AUTH_SOCK=/run/agent"}
	p := s.start(`id -u; id -g; cat ~/.agent/key; echo; touch ~/x ~/.config/y /tmp/z && echo home
touch /usr/x 2>/dev/null || echo read-only
touch ~/.config/name 2>/dev/null || echo ro-mount
grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr '\t\n' '  '; echo
echo "[$SSH_AUTH_SOCK]$HOME"; ls /sys/class/net; ls /var/run/docker.sock 2>/dev/null`)
	out, err := io.ReadAll(p.Stdout())
	want := "1234\n1235\nk3y\nhome\nread-only\nro-mount\nCapEff: 0000000000000000 NoNewPrivs: 1 \n[]/ductor/home\nlo\n"
	if err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q; stderr %s", out, err, want, p.StderrTail())
	}
	ctx := t.Context()
	if err := p.Stop(ctx, 0); err != nil {
		t.Error(err)
	}
}

// A container of an older ductor, which had a supervisor for each agent, is removed with its agents when its runs are
// listed.
func TestContainerOfAnOlderDuctorIsRemoved(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	s := newSandbox(t, o)
	s.runTurn()
	dockertest.Docker(t, "rm", "-f", o.containerName())
	dockertest.Docker(t, "run", "-d", "--network", "none", "--name", o.containerName(), "--label",
		labelOwner+"="+o.Owner, "--label", "ductor.supervisor=old", o.Image, "sleep", "600")
	next := newSandbox(t, o)
	if left, err := next.Left(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left is %+v, %v", left, err)
	}
	if there := dockertest.Docker(t, "ps", "-aq", "--filter", "name="+o.containerName()); there != "" {
		t.Errorf("it is still there: %s", there)
	}
	next.runTurn()
}
