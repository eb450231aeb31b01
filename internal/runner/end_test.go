package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
	"ductor/internal/runner/fork"
)

func TestAgentIsSignalledBeforeItsTools(t *testing.T) {
	r := start(t, open(t), sh(`setsid sleep 600 & sleep 600 & sleep 600 & echo ready; wait`))
	readLine(t, r)
	agent, _ := proctree.LookUp(r.PID())
	for range 20 {
		members, err := proctree.New(agent, Mark(r.ID())).Members()
		if err != nil || len(members) != 4 || members[0] != agent {
			t.Fatalf("%v of %v, %v", members, agent, err)
		}
	}
	stop(t, r, time.Second)
}

// An agent that ends slowly still gets its signal before its tools.
func TestSlowAgentIsSignalledBeforeItsTools(t *testing.T) {
	r := start(t, open(t), sh(`trap : TERM
		setsid sh -c 'trap "date +%s%N; exit 0" TERM; echo ready; while :; do sleep 0.01; done' &
		until wait $!; do :; done`))
	out := bufio.NewReader(r.Stdout())
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatal(line, err)
	}
	began := time.Now().UnixNano()
	stop(t, r, time.Minute)
	line, err := out.ReadString('\n')
	told, wrong := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || wrong != nil || time.Duration(told-began) < proctree.HeadStart {
		t.Errorf("the tool is told %s after the agent: %q, %v", time.Duration(told-began), line, err)
	}
}

func TestForkBombEnds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this needs root") // to run the bomb as another user with a limit of processes
	}
	requirePrograms(t, "perl", "setpriv", "prlimit")
	uid := 10000 + os.Getpid()%50000 // of no other bomb that another test program runs at the same time
	// No shell: a shell that cannot fork exits, perhaps before the bomb has exploded.
	const bomb = `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; $| = 1; print "ready\n";
		while (1) { my $pid = fork; setsid if defined $pid && !$pid;
			select undef, undef, undef, 0.02 if !defined $pid }'`
	for name, tc := range map[string]struct {
		options Options
		script  string
		killed  bool // kill its runner
	}{
		"in a group":                    {Options{}, bomb, false},
		"without one":                   {withoutGroups(t), bomb, false},
		"without mark, runner killed":   {Options{}, `env -i setsid sh -c "$0" & wait`, true},
		"without group, runner killed":  {withoutGroups(t), bomb, true},
		"without mark, nor group":       {withoutGroups(t), `env -i setsid sh -c "$0" & wait`, false},
		"without mark, in a group here": {Options{}, `env -i setsid sh -c "$0" & wait`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := reopen(t, t.TempDir(), tc.options)
			r := start(t, c, Spec{
				Path: "setpriv", Args: []string{fmt.Sprintf("--reuid=%d", uid), "--clear-groups",
					"prlimit", "--nproc=150", "sh", "-c", tc.script, bomb}, Env: os.Environ(),
			})
			readLine(t, r)
			eventually(t, "the bomb goes off", func() bool {
				info, err := r.Inspect(t.Context())
				return err == nil && info.Processes > 100
			})
			if tc.killed {
				killRunner(t, c)
			}
			began := time.Now()
			eventually(t, "it is stopped", func() bool { // a busy machine may need longer than Stop waits
				err := r.Stop(t.Context(), 100*time.Millisecond)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				return err == nil
			})
			if left := processesOfRun(t, r.ID()); len(left) > 0 {
				t.Errorf("after Stop these run: %v", left)
			}
			t.Logf("stopped in %s", time.Since(began))
			eventually(t, "none of it is left", func() bool { return processesOf(t, uid) == 0 })
		})
	}
}

// processesOf counts the processes of a user.
func processesOf(t testing.TB, uid int) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range all {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil && int(st.Uid) == uid {
			n++
		}
	}
	return n
}

// Processes that an agent left are ended even without a client.
func TestLeftoversAreEndedWithoutAClient(t *testing.T) {
	c := open(t)
	spec := sh(`setsid sleep 600 & echo $!`)
	spec.Limits.LeftoverAfter = 200 * time.Millisecond
	r := start(t, c, spec)
	id, ok := proctree.LookUp(number(t, readLine(t, r)))
	await(t, "its end", r.Done())
	if !ok || !id.Running() {
		t.Fatal("nothing is left: the test proves nothing")
	}
	r.Detach()
	eventually(t, "what it left ends", func() bool { return !id.Running() })
}

// requireGroup returns the control group in which groups of agents are created. It skips the test if that is
// impossible.
func requireGroup(t *testing.T) (own string) {
	t.Helper()
	own, err := proctree.GroupParent("self")
	if err != nil {
		t.Skip("this needs a writable control group of version 2: ", err)
	}
	return own
}

// groupOf returns the control group of a process.
func groupOf(t *testing.T, pid int) string {
	t.Helper()
	for line := range strings.Lines(readFile(t, "/proc", fmt.Sprint(pid), "cgroup")) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return strings.TrimSuffix(path, "/")
		}
	}
	t.Fatal("it has none")
	return ""
}

// groupsOf lists the groups of the runs in a directory.
func groupsOf(t *testing.T, root string) (names []string) {
	t.Helper()
	own, err := proctree.OwnGroup()
	prefix, err2 := groupPrefix(root)
	entries, err3 := os.ReadDir(own)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestEveryRunHasItsOwnCgroup(t *testing.T) {
	requireGroup(t)
	c := open(t)
	var groups []string
	for range 2 {
		r := start(t, c, sh(`setsid sleep 600 & echo $!; sleep 600`))
		child := number(t, readLine(t, r))
		group := groupOf(t, r.PID())
		id, _ := runnerOf(c)
		if own := groupOf(t, id.PID); group == own || !strings.HasPrefix(group, own) {
			t.Errorf("the agent is in %s, its runner in %s", group, own)
		}
		if got := groupOf(t, child); got != group {
			t.Errorf("the agent is in %s, its child in %s", group, got)
		}
		groups = append(groups, group)
		stop(t, r, time.Second)
		if err := r.Collect(t.Context()); err != nil || len(groupsOf(t, c.dir)) > 0 {
			t.Errorf("%v are left, %v", groupsOf(t, c.dir), err)
		}
	}
	if groups[0] == groups[1] {
		t.Error("two runs, one group")
	}
}

// A runner ends the processes of runs whose directories were deleted by a user, but none of another directory's runs.
func TestSweepKeepsGroupsOfOthers(t *testing.T) {
	requireGroup(t)
	mine, others := open(t), open(t)
	begin := func(c *Client) (*Run, proctree.ID) {
		r := start(t, c, sh(escape+`echo ready; exec sleep 600`))
		id, _ := proctree.LookUp(number(t, readLine(t, r)))
		readLine(t, r)
		return r, id
	}
	removed, left := begin(others)
	kept, running := begin(mine)
	removed.Detach() // so that no runner starts immediately
	killRunner(t, others)
	if err := os.RemoveAll(others.pathOf(removed.ID())); err != nil {
		t.Fatal(err)
	}
	killRunner(t, mine)
	if err := mine.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := kept.Inspect(t.Context()); err != nil || !info.Alive || !running.Running() || !left.Running() {
		t.Errorf("%+v, %v: ours run %v, another's %v", info, err, running.Running(), left.Running())
	}
	if err := others.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is left of a run that was removed ends", func() bool {
		return !left.Running() &&
			len(groupsOf(t, others.dir)) == 0
	})
	if !running.Running() || len(groupsOf(t, mine.dir)) != 1 {
		t.Error("ours was touched")
	}
}

// An agent may create groups in its group, like tools that create containers.
func TestNestedCgroupsAreRemoved(t *testing.T) {
	requireGroup(t)
	c := open(t)
	spec := sh(`cd "$CGROUP"/$(basename $(sed -n s/0:://p /proc/self/cgroup)) && { sleep 600 & } &&
		mkdir inner && echo $$ >inner/cgroup.procs && { sleep 600 & } && echo ready; wait`)
	own, err := proctree.OwnGroup()
	if err != nil {
		t.Fatal(err)
	}
	spec.Env = append(spec.Env, "CGROUP="+own)
	r := start(t, c, spec)
	readLine(t, r)
	if group := groupOf(t, r.PID()); !strings.HasSuffix(group, "/inner") {
		t.Errorf("the agent is in %s", group)
	}
	stop(t, r, time.Second)
	if err := r.Collect(t.Context()); err != nil || len(groupsOf(t, c.dir)) > 0 {
		t.Errorf("%v are left, %v", groupsOf(t, c.dir), err)
	}
}

func TestUntrustedGroupsInRecords(t *testing.T) {
	parent := requireGroup(t)
	root := t.TempDir()
	own := (&children{group: parent}).makeGroup(root, "x")
	t.Cleanup(func() {
		if err := own.Remove(); err != nil {
			t.Error(err)
		}
	})
	boot := proctree.BootID()
	if got := (record{ID: "x", Boot: boot, Group: own.Path}).group(root); got != own || own.Path == "" {
		t.Fatalf("%+v, made was %+v", got, own)
	}
	elsewhere := filepath.Join(t.TempDir(), filepath.Base(own.Path))
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, rec := range map[string]record{
		"of another boot":      {ID: "x", Boot: "another", Group: own.Path},
		"of another run":       {ID: "y", Boot: boot, Group: own.Path},
		"of no control group":  {ID: "x", Boot: boot, Group: elsewhere},
		"of all groups":        {ID: "x", Boot: boot, Group: filepath.Dir(own.Path)},
		"of a group that went": {ID: "x", Boot: boot, Group: own.Path + "0"},
		"relative":             {ID: "x", Boot: boot, Group: filepath.Base(own.Path)},
		"empty":                {ID: "x", Boot: boot},
	} {
		if got := rec.group(root); got != (proctree.Group{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := (record{ID: "x", Boot: boot, Group: own.Path}).group(t.TempDir()); got != (proctree.Group{}) {
		t.Errorf("of another directory: %+v", got)
	}
}

// forkInGroup starts a program in a group.
func forkInGroup(t *testing.T, s Spec, group proctree.Group) (pid int) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	program := fork.Program{Path: s.Path, Args: s.Args, Env: s.environment()}
	if pid, err = fork.Start(program, group, [4]int{fd, fd, fd, fd}, fork.Limits{}); err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestStartWithoutACgroup(t *testing.T) {
	pid := forkInGroup(t, Spec{ID: "x", Path: "/bin/true"}, proctree.Group{Path: t.TempDir()})
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Error(err)
	}
}

func TestKillCgroup(t *testing.T) {
	group := (&children{group: requireGroup(t)}).makeGroup(t.TempDir(), "x")
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	pid := forkInGroup(t, Spec{ID: "x", Path: "/bin/sleep", Args: []string{"600"}}, group)
	if got := group.PIDs(); !slices.Equal(got, []int{pid}) || !group.Populated() ||
		!errors.Is(group.Remove(), unix.EBUSY) {
		t.Errorf("%v are in it, and should be %d", got, pid)
	}
	if err := group.Kill(); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("by the kernel: %v", err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != syscall.SIGKILL ||
		group.Populated() {
		t.Errorf("%v, %v", status, err)
	}
}
