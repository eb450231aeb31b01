package cli

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAwaitExitOfAProcess(t *testing.T) {
	for name, command := range map[string]string{"at once": "exit 3", "later": "sleep 0.05; exit 3"} {
		t.Run(name, func(t *testing.T) {
			child := exec.Command("/bin/sh", "-c", command)
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			if name == "at once" {
				awaitDeath(t, child.Process.Pid)
			}
			done := make(chan struct{})
			go func() { awaitExit(child.Process.Pid); close(done) }()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the exit went unnoticed")
			}
			if p, ok := readProc(child.Process.Pid); !ok || !p.dead() {
				t.Errorf("it is %+v (found %t): not dead, or its status was taken", p, ok)
			}
			if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != 3 {
				t.Errorf("exit code %d, %v", child.ProcessState.ExitCode(), err)
			}
		})
	}
}

// awaitDeath waits for a zombie.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
}

func TestAwaitExitOfNoProcess(t *testing.T) {
	child := exec.Command("/bin/true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	awaitExit(child.Process.Pid) // returns
}
