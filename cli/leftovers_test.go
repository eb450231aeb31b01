package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What the helper "ductor" is told.
const (
	ownerVar  = "CLI_TEST_OWNER"
	agentVar  = "CLI_TEST_AGENT"  // a shell script
	reportVar = "CLI_TEST_REPORT" // where the heir writes what it did
)

// runDuctor runs one agent for its owner, and tells what the agent says.
func runDuctor() int {
	h := NewHostFor(Owner(os.Getenv(ownerVar)))
	p, err := h.Start(context.Background(), Command{Path: "sh", Args: []string{"-c", os.Getenv(agentVar)}, Env: withoutHelper(os.Environ())})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for lines := bufio.NewScanner(p.Stdout()); lines.Scan(); {
		fmt.Println(lines.Text())
	}
	<-p.Done()
	return 0
}

// runHeir is a ductor that an agent started: it tells its process id, waits until its maker is dead, and
// then ends what that one left behind, having become the parent of some of it.
func runHeir() int {
	child := startChild("sleep-quietly", true)
	fmt.Println(child.Process.Pid)
	fmt.Println(os.Getpid())
	own, _ := markOf(os.Getpid())
	for p, ok := readProc(own.ductor.pid); ok && p.procID == own.ductor && !p.dead(); p, ok = readProc(own.ductor.pid) {
		time.Sleep(time.Millisecond)
	}
	n, err := NewHostFor(Owner(os.Getenv(ownerVar))).EndLeftovers(context.Background(), time.Second)
	report := fmt.Sprintf("ended %d, %v", n, err)
	if os.WriteFile(os.Getenv(reportVar)+".new", []byte(report), 0o600) != nil ||
		os.Rename(os.Getenv(reportVar)+".new", os.Getenv(reportVar)) != nil {
		return 1
	}
	return 0
}

// killedDuctor is a ductor in a process of its own with an agent that runs.
type killedDuctor struct {
	cmd *exec.Cmd
	all []procID // what the agent said it started
}

// startDuctor waits until the agent said the ids of n processes.
func startDuctor(t *testing.T, owner Owner, n int, agent string, env ...string) *killedDuctor {
	t.Helper()
	c := helper(t, "ductor")
	d := &killedDuctor{cmd: exec.Command(c.Path)}
	d.cmd.Dir, d.cmd.Env = c.Dir, append(append(c.Env, ownerVar+"="+string(owner), agentVar+"="+agent), env...)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		for _, id := range d.all {
			_ = id.signal(9) // most are dead
		}
	})
	lines := bufio.NewScanner(out)
	for len(d.all) < n && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		p, ok := readProc(pid)
		if err != nil || !ok {
			t.Fatalf("the agent says %q, which is no process", lines.Text())
		}
		d.all = append(d.all, p.procID)
	}
	if len(d.all) < n {
		t.Fatalf("the agent said %d processes, want %d", len(d.all), n)
	}
	return d
}

func (d *killedDuctor) kill() {
	_ = d.cmd.Process.Kill() // it may be dead
	_ = d.cmd.Wait()         // it was killed
}

// alive lists those of the agent that run.
func (d *killedDuctor) alive() (pids []int) {
	for _, id := range d.all {
		if p, ok := readProc(id.pid); ok && p.procID == id && !p.dead() {
			pids = append(pids, id.pid)
		}
	}
	return pids
}

func ownerOf(t *testing.T) Owner { return Owner(t.TempDir()) }

func TestWhatAKilledDuctorLeftIsEnded(t *testing.T) {
	for _, tc := range []struct {
		name, agent string
		n           int
	}{
		{"the agent itself", `echo $$; exec sleep 60`, 1},
		{"a tool in a session of its own", `setsid sleep 60 & echo $!; wait`, 1},
		{"orphans", `setsid sh -c 'setsid sleep 60 & echo $!'; sleep 60 & echo $!; exit`, 2},
		{"deaf", `trap "" TERM; setsid sh -c 'echo $$; while :; do sleep 1; done' & wait`, 1},
		{"stopped", `setsid sleep 60 & echo $!; kill -STOP $!; wait`, 1},
		{"without the mark, its parent has it", `setsid sh -c 'env -i setsid sleep 60 & echo $!; wait' & wait`, 1},
		{"without the mark, its session has it", `setsid sh -c '(env -i sleep 60 & echo $!); (sleep 60 & echo $!)'; exit`, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			owner := ownerOf(t)
			d := startDuctor(t, owner, tc.n, tc.agent)
			d.kill()
			if got := d.alive(); len(got) != tc.n {
				t.Fatalf("%v outlived the kill: the test proves nothing", got)
			}
			n, err := NewHostFor(owner).EndLeftovers(t.Context(), 50*time.Millisecond)
			if err != nil || n < tc.n {
				t.Errorf("ended %d, %v", n, err)
			}
			if left := d.alive(); len(left) > 0 {
				t.Errorf("%v are still there", left)
			}
			if n, err := NewHostFor(owner).EndLeftovers(t.Context(), time.Hour); n != 0 || err != nil {
				t.Errorf("the second time: ended %d, %v", n, err)
			}
		})
	}
}

func TestWhatIsNotLeftBehindIsSpared(t *testing.T) {
	const agent = `setsid sleep 60 & echo $!; setsid sh -c 'sleep 60 & echo $!'; wait`
	owner := ownerOf(t)
	living := startDuctor(t, owner, 2, agent)
	foreign := startDuctor(t, ownerOf(t), 2, agent)
	foreign.kill()
	unowned := startDuctor(t, "", 2, agent)
	unowned.kill()
	left := startDuctor(t, owner, 2, agent)
	left.kill()

	if _, err := NewHostFor(owner).EndLeftovers(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*killedDuctor{"a living ductor": living, "another ductor": foreign, "a ductor without a name": unowned} {
		if got := d.alive(); len(got) != 2 {
			t.Errorf("of the processes of %s only %v are left", name, got)
		}
	}
	if got := left.alive(); len(got) != 0 {
		t.Errorf("%v are still there", got)
	}
}

// A ductor that its predecessor's agent started has the predecessor's mark, and so has the shell above it.
func TestADuctorStartedByAnAgentSparesItself(t *testing.T) {
	owner, report := ownerOf(t), filepath.Join(t.TempDir(), "report")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The heir is in a session of its own, where a shell waits for it that must go on, too.
	agent := fmt.Sprintf(`setsid sh -c '%s=heir "%s"; echo shell >> "%s"' & setsid sleep 60 & echo $!; wait`, helperVar, self, report)
	d := startDuctor(t, owner, 3, agent, reportVar+"="+report)
	d.kill()
	var got string
	for deadline := time.Now().Add(10 * time.Second); !strings.HasSuffix(got, "shell\n") && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(report)
		got = string(b)
	}
	// Both sleepers, but not the heir and what it stands under: its shell and the agent.
	if want := "ended 2, <nil>shell\n"; got != want {
		t.Errorf("the heir says %q, want %q", got, want)
	}
	if left := d.alive(); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
}

// A start again within the grace of the one before must not wait for it.
func TestCancelCutsTheGraceOfLeftoversShort(t *testing.T) {
	owner := ownerOf(t)
	d := startDuctor(t, owner, 1, `trap "" TERM; echo $$; while :; do sleep 1; done`)
	d.kill()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewHostFor(owner).EndLeftovers(ctx, time.Hour); err != nil {
		t.Error(err)
	}
	if left := d.alive(); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
}

func TestLeftoversOfNobody(t *testing.T) {
	for name, h := range map[string]*Host{"NewHost": NewHost(), "no name": NewHostFor("")} {
		if _, err := h.EndLeftovers(t.Context(), time.Second); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOwnersAreToldApart(t *testing.T) {
	keys := []string{ownerKey("/a"), ownerKey("/b"), ownerKey("/a/"), ownerKey("/a")}
	if keys[0] != keys[3] {
		t.Errorf("one owner has two keys: %q", keys)
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != 3 {
		t.Errorf("%q", keys)
	}
}

func TestParseMark(t *testing.T) {
	ok := mark{owner: "0af3", ductor: procID{pid: 12, start: 345}}
	for value, want := range map[string]mark{
		"0af3.12.345.RUN": ok, "0af3.12.345.a.b": ok,
		"": {}, "RUN": {}, "...": {}, "0af3.12.345": {}, "0af3.12.345.": {}, ".12.345.RUN": {},
		"0af3.x.345.RUN": {}, "0af3.12.-1.RUN": {}, "0af3.0.345.RUN": {}, "0af3.-1.345.RUN": {},
	} {
		if got, found := parseMark(value); got != want || found != (want != mark{}) {
			t.Errorf("%q: %+v, %v", value, got, found)
		}
	}
}

func TestMarksAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mark{
			owner:  rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "owner"),
			ductor: procID{pid: rapid.IntRange(1, 1<<22).Draw(t, "pid"), start: rapid.Uint64().Draw(t, "start")},
		}
		if got, ok := parseMark(m.run(rapid.StringMatching(`.+`).Draw(t, "id"))); !ok || got != m {
			t.Fatalf("%+v became %+v", m, got)
		}
	})
}

func FuzzParseMark(f *testing.F) {
	f.Add("0af3.12.345.RUN")
	f.Fuzz(func(t *testing.T, value string) {
		if m, ok := parseMark(value); ok && (m.owner == "" || m.ductor.pid <= 0) {
			t.Errorf("%q gives %+v", value, m)
		}
	})
}
