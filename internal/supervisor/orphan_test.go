package supervisor

import (
	"bufio"
	"context"
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runStarter is a client that starts an agent, and says so just before; with a spare, if it is to have one.
func runStarter() (int, error) {
	opts := Options{Command: []string{os.Args[0], "supervise"}}
	if os.Getenv("SPARE") != "" {
		opts.Spares = 1
	}
	root, err := Open(os.Getenv("ROOT"), opts)
	if err != nil {
		return 1, err
	}
	for root.pool.missing() || opts.Spares > 0 && !nested(root.dir) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(root.pool.pids())
	if os.Getenv("HOLD") != "" {
		if _, err := fmt.Scanln(); err != nil {
			return 1, err
		}
	}
	_, err = root.Start(context.Background(), Spec{ID: os.Getenv("RUN"), Path: "sleep", Args: []string{"600"}, Env: withoutHelper(os.Environ())})
	if err != nil {
		return 1, err
	}
	time.Sleep(time.Minute)
	return 0, nil
}

// pids are the supervisors that wait, as text.
func (b *pool) pids() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pids []string
	for _, child := range b.spares {
		pids = append(pids, itoa(child.pid))
	}
	return strings.Join(pids, " ")
}

func nested(root string) bool {
	entries, err := os.ReadDir(root)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { _, ok := parseStaging(e.Name()); return ok })
}

// starter begins a starter and gives what it says.
func starter(t *testing.T, dir, id string, env ...string) (cmd *exec.Cmd, said string) {
	t.Helper()
	cmd = exec.Command(self(t))
	cmd.Env = append(withoutHelper(os.Environ()), append(env, helperVar+"=starter", "ROOT="+dir, "RUN="+id)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(said)
}

func murder(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it should be
}

// A client is killed anywhere in a start. Its successor sees the run in its first look, or the agent is never
// started; there is nothing in between.
func TestNoRunIsMissedWhoeverDiesInAStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { noCgroups(t, dir) })
	last := reopen(t, dir, Options{})
	const rounds = 20
	listed := map[string]bool{}
	for i := range rounds {
		id := fmt.Sprintf("round-%d", i)
		var env []string
		if i%2 == 0 {
			env = append(env, "SPARE=1")
		}
		cmd, _ := starter(t, dir, id, env...)
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		murder(t, cmd)
		root, err := Open(dir, Options{Command: []string{self(t), "supervise"}})
		if err != nil {
			t.Fatal(err)
		}
		infos, err := root.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			if info.ID == id { // in the first look after it
				listed[id] = true
			}
			if !info.Supervised || info.Problem != "" {
				t.Errorf("%+v", info)
			}
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(time.Second) // for whatever would come late
	ids, err := last.ids()
	if err != nil || len(ids) != len(listed) {
		t.Errorf("%d runs are there, %d were seen, %v", len(ids), len(listed), err)
	}
	for i := range rounds {
		id := fmt.Sprintf("round-%d", i)
		if running := len(survivors(t, id)) > 0; running != listed[id] {
			t.Errorf("%s: listed %v, runs %v", id, listed[id], running)
		}
	}
	if nested(dir) {
		t.Error("a staging directory is left")
	}
	t.Logf("%d of %d were started", len(listed), rounds)
}

// A supervisor that reads its spec when the client is dead does not start what no client waits for.
func TestSpecOfADeadClientIsNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(self(t))
	cmd.Env = append(withoutHelper(os.Environ()), helperVar+"=starter", "ROOT="+dir, "RUN=late", "SPARE=1", "HOLD=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	spare, _ := proctree.LookUp(pid)
	if err := spare.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the spec is in the socket
	murder(t, cmd)
	if err := spare.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	root := reopen(t, dir, Options{})
	eventually(t, "the spare leaves", func() bool { return !spare.Running() })
	if ids, err := root.ids(); err != nil || len(ids) != 0 || len(survivors(t, "late")) != 0 || nested(dir) {
		t.Errorf("%v, %v, %v", ids, err, survivors(t, "late"))
	}
}

// deadProcess is a process that ran.
func deadProcess(t *testing.T) proctree.ID {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, _ := proctree.LookUp(cmd.Process.Pid)
	murder(t, cmd)
	return id
}

func TestOrphansAreWaitedForAndSparesAreNot(t *testing.T) {
	t.Parallel()
	me, _ := proctree.LookUp(os.Getpid())
	dead := deadProcess(t)
	for name, want := range map[string]bool{
		stagingName{owner: me, client: clientID{dead}}.String():                       true,
		stagingName{owner: me, client: clientID{me}}.String():                         false,
		stagingName{owner: dead, client: clientID{dead}}.String():                     false, // swept
		stagingName{owner: me, client: clientID{proctree.ID{PID: dead.PID}}}.String(): true,
		stagingName{owner: me}.String():                                               false,
		fmt.Sprintf("%s%d-%d", stagingPrefix, me.PID, me.Start):                       false,
		stagingPrefix + "x-y-z-":                                                      false,
	} {
		if n, ok := parseStaging(name); !ok || n.orphaned() != want {
			t.Errorf("%s: %+v, orphaned %v", name, n, n.orphaned())
		}
	}
	root := openRoot(t, Options{Spares: 2})
	spares(t, root)
	eventually(t, "the staging directories", func() bool { entries, err := os.ReadDir(root.dir); return err == nil && len(entries) == 2 })
	if names, err := orphans(root.dir); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestOrphanThatSettlesIsListed(t *testing.T) {
	t.Parallel()
	me, _ := proctree.LookUp(os.Getpid())
	orphan := stagingName{owner: me, client: clientID{deadProcess(t)}}.String()
	for name, look := range map[string]func(t *testing.T, dir string) *Root{
		"by Open": func(t *testing.T, dir string) *Root { return reopen(t, dir, Options{}) },
		"by List": nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var root *Root
			if look == nil {
				root = reopen(t, dir, Options{})
			}
			if err := os.Mkdir(filepath.Join(dir, orphan), 0o700); err != nil {
				t.Fatal(err)
			}
			settled := make(chan error, 1)
			time.AfterFunc(100*time.Millisecond, func() { settled <- (&staging{root: dir, dir: filepath.Join(dir, orphan)}).settle("found") })
			if look != nil {
				root = look(t, dir)
				if !root.there("found") {
					t.Error("Open did not wait")
				}
			}
			infos, err := root.List(t.Context())
			if err != nil || len(infos) != 1 || infos[0].ID != "found" {
				t.Errorf("%+v, %v", infos, err)
			}
			if err := <-settled; err != nil {
				t.Error(err)
			}
		})
	}
}

// An orphan that hangs cannot become a run behind the back of who looked.
func TestOrphanThatHangsLosesItsStaging(t *testing.T) {
	t.Parallel()
	me, _ := proctree.LookUp(os.Getpid())
	dir := t.TempDir()
	n := &staging{root: dir, dir: filepath.Join(dir, stagingName{owner: me, client: clientID{deadProcess(t)}}.String())}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitOrphans(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	root := reopen(t, dir, Options{})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := n.settle("late"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it settles: %v", err)
	}
	if ids, err := root.ids(); err != nil || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
	if err := os.Mkdir(filepath.Join(dir, discardedPrefix+"x"), 0o700); err != nil { // killed in between
		t.Fatal(err)
	}
	if err := sweepStaging(dir); err != nil || exists(t, dir, discardedPrefix+"x") {
		t.Errorf("%v", err)
	}
}
