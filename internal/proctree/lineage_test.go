package proctree

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// lineageVar makes the test binary print its lineage.
const lineageVar = "PROCTREE_TEST_LINEAGE"

func TestMain(m *testing.M) {
	if os.Getenv(lineageVar) == "" {
		os.Exit(m.Run())
	}
	printLineage()
}

// printLineage prints the number of visible ancestors. It first hides the processes of root, and becomes another user.
func printLineage() {
	if os.Geteuid() != 0 {
		line, err := Lineage(os.Getpid())
		fmt.Print(len(line), " ", err)
		return
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, "hidepid=2"); err != nil {
		fmt.Print("cannot mount: ", err)
		return
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	fmt.Print(string(out), " ", err)
}

// The lineage of a process ends before an ancestor that /proc hides.
func TestLineageOfHiddenProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can hide processes")
	}
	line, err := Lineage(os.Getpid())
	if err != nil || len(line) < 2 || line[0].PID != os.Getpid() || line[1].PID != os.Getppid() {
		t.Errorf("ours is %+v, %v", line, err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{lineageVar + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // Go makes its mounts private
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "cannot mount") {
		t.Skipf("a mount namespace is needed: %s, %v", out, err)
	}
	if string(out) != "1 <nil> <nil>" {
		t.Errorf("with hidden ancestors: %s", out)
	}
}
