package proctree

import (
	"bufio"
	"os/exec"
	"slices"
	"testing"

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
	seen, err := tree.Glance()
	if err != nil {
		t.Fatal(err)
	}
	all, err := tree.Members()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, all) || len(all) < 5 || seen[0] != id {
		t.Errorf("a glance finds %v, a look %v", seen, all)
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
	seen, err := New(dead, mark).Glance()
	if err != nil || !slices.Contains(seen, id) {
		t.Errorf("it finds %v, %v", seen, err)
	}
}
