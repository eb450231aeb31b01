package proctree

import (
	"bufio"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Glance finds the same processes as Members for a program that keeps its descendants, even across sessions.
func TestGlanceFindsWhatMembersFinds(t *testing.T) {
	cmd := exec.Command("sh", "-c", `sleep 60 & (sleep 60 & setsid sh -c 'sleep 60 & echo ready; wait') & wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, ok := LookUp(cmd.Process.Pid)
	tree := New(id, "")
	t.Cleanup(func() {
		members, _ := tree.Members()
		for _, m := range append(members, id) {
			_ = m.Signal(unix.SIGKILL)
		}
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil || !ok {
		t.Fatal(ok, err)
	}
	eventually(t, func() error {
		seen, err := tree.Glance()
		if err != nil {
			return err
		}
		all, err := tree.Members()
		if err == nil && (!slices.Equal(seen, all) || len(all) < 5 || seen[0] != id) {
			err = fmt.Errorf("a glance finds %v, a look %v", seen, all)
		}
		return err
	})
}

// eventually calls f until it returns nil. A scan may miss a process that is just replacing its program. eventually fails
// the test after a minute.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// If the root is dead, Glance finds processes by the mark.
func TestGlanceBesideADeadRoot(t *testing.T) {
	const mark = "GLANCE_TEST=marked"
	cmd := exec.Command("setsid", "sleep", "60")
	cmd.Env = []string{"PATH=/usr/bin:/bin", mark}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, _ := LookUp(cmd.Process.Pid)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	dead := ID{PID: id.PID, Start: id.Start - 1}
	eventually(t, func() error {
		seen, err := New(dead, mark).Glance()
		if err == nil && !slices.Contains(seen, id) {
			err = fmt.Errorf("it finds %v", seen)
		}
		return err
	})
}
