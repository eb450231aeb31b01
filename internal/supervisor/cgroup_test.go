package supervisor

import (
	"ductor/internal/proctree"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// needCgroup skips a test where no group can be made; under CI one must be had.
func needCgroup(t *testing.T) {
	t.Helper()
	me, _ := proctree.LookUp(os.Getpid())
	dir := t.TempDir()
	if err := proctree.CanGroup(); err != nil {
		leaveOut(t, "this needs a writable control group of version 2: ", err)
	}
	c := makeCgroup(dir, dir, me)
	if c.Path == "" {
		t.Fatal("a group should have been had")
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
}

// cgroupsOf lists the groups of a directory of runs.
func cgroupsOf(t testing.TB, root string) (names []string) {
	t.Helper()
	own, err := proctree.OwnGroup()
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(own)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, ok := parseCgroupName(e.Name()); ok {
			if ours, err := nameCgroup(root, name.owner); err != nil || ours == name {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// noCgroups fails the test when a group outlives all that may need it, and the next start.
func noCgroups(t testing.TB, root string) {
	t.Helper()
	eventually(t, "no control group is left", func() bool {
		if err := sweepStaging(root); err != nil {
			t.Error(err)
		}
		sweepCgroups(t.Context(), root)
		return len(cgroupsOf(t, root)) == 0
	})
}

func groupOf(t *testing.T, pid int) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + itoa(pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return strings.TrimSuffix(path, "/")
		}
	}
	t.Fatalf("%s", raw)
	return ""
}

func TestEveryRunHasACgroupOfItsOwn(t *testing.T) {
	needCgroup(t)
	t.Parallel()
	for name, opts := range map[string]Options{"cold": {}, "from a spare": {Spares: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := openRoot(t, opts)
			if opts.Spares > 0 {
				spares(t, root)
				eventually(t, "the group of a spare", func() bool { return len(cgroupsOf(t, root.dir)) == 1 })
			}
			var groups []string
			for range 2 {
				run := start(t, root, sh(`setsid sleep 600 & echo $!; sleep 600`))
				child, err := strconv.Atoi(readLine(t, run.Stdout()))
				if err != nil {
					t.Fatal(err)
				}
				group := groupOf(t, run.PID())
				if supervisor := groupOf(t, run.Info().Supervisor); group == supervisor || !strings.HasPrefix(group, supervisor) {
					t.Errorf("the agent is in %s, its supervisor in %s", group, supervisor)
				}
				if got := groupOf(t, child); got != group {
					t.Errorf("the agent is in %s, its child in %s", group, got)
				}
				groups = append(groups, group)
				c := noted(root.dir, root.path(run.ID()))
				if filepath.Base(c.Path) != filepath.Base(group) || !c.Populated() {
					t.Errorf("%+v is written down, the agent is in %s", c, group)
				}
				mustStop(t, run, time.Second)
				if c.Populated() {
					t.Error("somebody is left")
				}
				if err := run.Collect(t.Context()); err != nil || exists(t, c.Path) {
					t.Errorf("%s is left, %v", c.Path, err)
				}
			}
			if groups[0] == groups[1] {
				t.Error("two runs, one group")
			}
		})
	}
}

// escaped begins a run with a process that left group, session and parent and took no mark along, and kills the run's
// supervisor.
func escaped(t *testing.T, root *Root) (run *Run, one proctree.ID) {
	t.Helper()
	dir := t.TempDir()
	script, file := filepath.Join(dir, "script"), filepath.Join(dir, "pid")
	if err := os.WriteFile(script, []byte(`echo $$ >"$1"; exec sleep 600`), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := sh(`env -i setsid sh -c 'sh "$0" "$1" >/dev/null 2>&1 & exit' "$1" "$2"; while [ ! -s "$2" ]; do sleep 0.01; done; echo ready; exec sleep 600`)
	spec.Args = append(spec.Args, "agent", script, file)
	spec.Limits.Grace = 50 * time.Millisecond
	run = start(t, root, spec)
	readLine(t, run.Stdout())
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	one, ok := proctree.LookUp(pid)
	if !ok {
		t.Fatal("no process escaped")
	}
	t.Cleanup(func() { _ = one.Signal(unix.SIGKILL) })
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	supervisor, _ := proctree.LookUp(run.Info().Supervisor)
	kill9(t, run.Info().Supervisor)
	await(t, "done", run.Done())
	eventually(t, "its supervisor is dead", func() bool { return !supervisor.Running() })
	eventually(t, "its mark is wiped", func() bool { return len(survivors(t, run.ID())) == 0 })
	if !one.Running() {
		t.Fatal("it did not escape: the test proves nothing")
	}
	return run, one
}

// What cut every tie is found by its group, when no process is left that saw it start.
func TestNothingEscapesItsCgroup(t *testing.T) {
	needCgroup(t)
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, root *Root, run *Run) error{
		"Kill": func(t *testing.T, root *Root, run *Run) error { return root.Kill(t.Context(), run.ID()) },
		"Stop": func(t *testing.T, root *Root, run *Run) error { return run.Stop(t.Context(), 50*time.Millisecond) },
		"Collect": func(t *testing.T, root *Root, run *Run) error {
			return root.Collect(t.Context(), run.ID())
		},
		"Kill, before its start was written down": func(t *testing.T, root *Root, run *Run) error {
			old := time.Now().Add(-time.Minute)
			if err := errors.Join(os.Remove(filepath.Join(root.path(run.ID()), specFile)), os.Chtimes(root.path(run.ID()), old, old)); err != nil {
				return err
			}
			return root.Kill(t.Context(), run.ID())
		},
		"Prune of what cannot be read": func(t *testing.T, root *Root, run *Run) error {
			if err := os.WriteFile(filepath.Join(root.path(run.ID()), specFile), []byte("{"), 0o600); err != nil {
				return err
			}
			_, err := root.Prune(t.Context(), 0)
			return err
		},
		"the next start, when the run was removed by hand": func(t *testing.T, root *Root, run *Run) error {
			if err := os.RemoveAll(root.path(run.ID())); err != nil {
				return err
			}
			reopen(t, root.dir, Options{})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := openRoot(t, Options{})
			run, one := escaped(t, root)
			if err := end(t, root, run); err != nil {
				t.Error(err)
			}
			if one.Running() {
				t.Error("it is still there")
			}
			if left := cgroupsOf(t, root.dir); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func TestCgroupsOfOthersAreLeftAlone(t *testing.T) {
	needCgroup(t)
	t.Parallel()
	mine, other := openRoot(t, Options{}), openRoot(t, Options{})
	live := start(t, other, sh(`sleep 600`))
	run, left := escaped(t, other)
	if err := os.RemoveAll(other.path(run.ID())); err != nil { // so that its name alone shows no owner
		t.Fatal(err)
	}
	kept, uncollected := escaped(t, mine)
	reopen(t, mine.dir, Options{})
	if !left.Running() || !live.Info().Alive || len(cgroupsOf(t, other.dir)) != 2 {
		t.Errorf("another's were touched: %v, %v", left.Running(), cgroupsOf(t, other.dir))
	}
	if !uncollected.Running() || !exists(t, mine.path(kept.ID())) {
		t.Error("what is left of a run that is still to be collected was touched")
	}
	reopen(t, other.dir, Options{})
	if left.Running() || len(cgroupsOf(t, other.dir)) != 1 {
		t.Errorf("not swept: %v, %v", left.Running(), cgroupsOf(t, other.dir))
	}
}

// withoutCgroups starts supervisors that can have no group, because nothing of them is mounted.
func withoutCgroups(t *testing.T) Options {
	t.Helper()
	return behind(t, `mount -t tmpfs none /sys/fs/cgroup`)
}

// behind starts supervisors where a script changed what is mounted, for them alone.
func behind(t *testing.T, script string) Options {
	t.Helper()
	needRoot(t)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		leaveOut(t, err)
	}
	return Options{Command: []string{unshare, "-m", "sh", "-c", script + ` && exec "$0" "$@"`, self(t), "supervise"}}
}

func TestWhereNoCgroupCanBeHadAllEndsWithoutOne(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"none is mounted":    `mount -t tmpfs none /sys/fs/cgroup`,
		"they are read-only": `awk '/ - cgroup2 /{print $5}' /proc/self/mountinfo | xargs -r -n1 mount -o bind,remount,ro`,
	} {
		for how, stop := range map[string]bool{"stopped": true, "its supervisor killed": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				root := openRoot(t, behind(t, script))
				run := start(t, root, helper(t, "family"))
				readLine(t, run.Stdout())
				if got, want := groupOf(t, run.PID()), groupOf(t, os.Getpid()); got != want || exists(t, root.path(run.ID()), cgroupFile) {
					t.Errorf("the agent is in %s, and we in %s", got, want)
				}
				if !stop {
					kill9(t, run.Info().Supervisor)
				}
				mustStop(t, run, 50*time.Millisecond)
				if left := survivors(t, run.ID()); len(left) > 0 {
					t.Errorf("%v are still there", left)
				}
			})
		}
	}
}

func TestAgentIsStartedWhereTheKernelRefusesItsCgroup(t *testing.T) {
	ends, err := openPipes()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _ = syscall.Close(ends.in[1]), syscall.Close(ends.out[0]), syscall.Close(ends.err[0]) }()
	pid, err := fork(Spec{ID: "x", Path: "/bin/true"}, proctree.Group{Path: t.TempDir()}, ends)
	ends.closeAgents()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Error(err)
	}
}

func TestACgroupIsKilledInOneStep(t *testing.T) {
	needCgroup(t)
	me, _ := proctree.LookUp(os.Getpid())
	dir := t.TempDir()
	c := makeCgroup(dir, dir, me)
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	ends, err := openPipes()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _ = syscall.Close(ends.in[1]), syscall.Close(ends.out[0]), syscall.Close(ends.err[0]) }()
	pid, err := fork(Spec{ID: "x", Path: "/bin/sleep", Args: []string{"600"}}, c, ends)
	ends.closeAgents()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.PIDs(); !slices.Equal(got, []int{pid}) || !c.Populated() || !errors.Is(c.Remove(), unix.EBUSY) {
		t.Errorf("%v are in it, and should be %d", got, pid)
	}
	if err := c.Kill(); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("by the kernel: %v", err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != syscall.SIGKILL || c.Populated() {
		t.Errorf("%v, %v", status, err)
	}
}

// Who ends a run from inside, by hand in a tool of its agent, lives to tell.
func TestEndingFromInsideSparesWhoDoesIt(t *testing.T) {
	needCgroup(t)
	t.Parallel()
	run := start(t, openRoot(t, Options{}), helper(t, "insider"))
	if got := readAll(t, run.Stdout()); got != "ready\nalone with 0\n" && got != "alone with 0\n" {
		t.Errorf("%q", got)
	}
}

// An agent may divide its group, as tools that make containers do.
func TestCgroupsThatTheAgentMadeGoToo(t *testing.T) {
	needCgroup(t)
	needRoot(t)
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`cd "$CGROUP"/ductor-*-$PPID-* && { sleep 600 & } && mkdir inner && echo $$ >inner/cgroup.procs && { sleep 600 & } && echo ready; wait`)
	own, err := proctree.OwnGroup()
	if err != nil {
		t.Fatal(err)
	}
	spec.Env = append(spec.Env, "CGROUP="+own)
	run := start(t, root, spec)
	readLine(t, run.Stdout())
	c := noted(root.dir, root.path(run.ID()))
	eventually(t, "the agent is in the inner group", func() bool { return strings.HasSuffix(groupOf(t, run.PID()), "/inner") })
	if got := c.PIDs(); !slices.Contains(got, run.PID()) || len(got) < 3 {
		t.Errorf("%v are in the group, the agent is %d", got, run.PID())
	}
	mustStop(t, run, time.Second)
	if err := run.Collect(t.Context()); err != nil || exists(t, c.Path) {
		t.Errorf("%s is left, %v", c.Path, err)
	}
}

func TestOnlyNotesOfOursAreTrusted(t *testing.T) {
	needCgroup(t)
	t.Parallel()
	me, _ := proctree.LookUp(os.Getpid())
	root := t.TempDir()
	own := makeCgroup(root, root, me)
	if own.Path == "" || noted(root, root) != own {
		t.Fatalf("%+v, noted %+v", own, noted(root, root))
	}
	t.Cleanup(func() {
		if err := own.Remove(); err != nil {
			t.Error(err)
		}
	})
	elsewhere := filepath.Join(t.TempDir(), filepath.Base(own.Path))
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, note := range map[string]cgroupNote{
		"of another boot":      {Path: own.Path, Boot: "another"},
		"of no cgroup":         {Path: elsewhere, Boot: proctree.BootID()},
		"of everybody's group": {Path: filepath.Dir(own.Path), Boot: proctree.BootID()},
		"of a group that went": {Path: own.Path + "0", Boot: proctree.BootID()},
		"relative":             {Path: filepath.Base(own.Path), Boot: proctree.BootID()},
		"empty":                {},
	} {
		if err := writeJSON(root, cgroupFile, note); err != nil {
			t.Fatal(err)
		}
		if got := noted(root, root); got != (proctree.Group{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	other := t.TempDir()
	if err := writeJSON(other, cgroupFile, cgroupNote{Path: own.Path, Boot: proctree.BootID()}); err != nil {
		t.Fatal(err)
	}
	if got := noted(other, other); got != (proctree.Group{}) {
		t.Errorf("of another's runs: %+v", got)
	}
	for _, name := range []string{"ductor-", "ductor-1-2-3", "ductor-1-2-3-4-5", "ductor-01-2-3-4", "docker-1-2-3-4", "ductor-1-2-x-4", "ductor-1-2-0-0"} {
		if n, ok := parseCgroupName(name); ok {
			t.Errorf("%s is taken for %+v", name, n)
		}
	}
}
