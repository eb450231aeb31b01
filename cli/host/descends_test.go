package host_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"ductor/cli/clitest"
	"ductor/cli/host"
	"ductor/internal/proctree"
	"ductor/internal/runner"
)

// A process descends from a run even if it has left its parent, its session and its environment. Other processes of
// this user do not, and neither does this one.
func TestDescends(t *testing.T) {
	t.Parallel()
	p := start(t, clitest.Host(t), sh(t, `sleep 60 & child=$!
		daemon=$(env -i setsid sleep 60 >/dev/null 2>&1 & echo $!)
		echo $$ $child $daemon; wait`))
	var agent, child, daemon int
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &agent, &child, &daemon)
	}
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	var ancestors []proctree.ID
	eventually(t, "the daemon leaves its parent and its environment", func() bool {
		ancestors, err = proctree.Lineage(daemon)
		return err == nil && ancestors[1].PID != agent && proctree.Name(daemon) == "sleep"
	})
	if entry := proctree.Variable(daemon, runner.RunVar); entry != "" {
		t.Fatalf("the daemon has the entry %s", entry)
	}
	for name, pid := range map[string]int{"the agent": agent, "its child": child, "its daemon": daemon,
		"its runner": ancestors[1].PID} {
		if of, err := host.Descends(pid); err != nil || !of {
			t.Errorf("%s: %v, %v", name, of, err)
		}
	}
	mine := exec.Command("sleep", "60")
	if err := mine.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mine.Process.Kill(); _ = mine.Wait() }()
	for name, pid := range map[string]int{"a child of ours": mine.Process.Pid, "this process": os.Getpid()} {
		if of, err := host.Descends(pid); err != nil || of {
			t.Errorf("%s: %v, %v", name, of, err)
		}
	}
	if _, err := host.Descends(0); err == nil {
		t.Error("an invisible process descends from nothing")
	}
}
