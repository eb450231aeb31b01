package proctree

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Signal does not reach a later process that reuses the number.
func TestSignalSparesALaterProcessOfTheSameNumber(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-exited })
	id, ok := LookUp(cmd.Process.Pid)
	if !ok || !id.Running() {
		t.Fatalf("a process that runs is %+v, %v", id, ok)
	}
	earlier := ID{PID: id.PID, Start: id.Start - 1}
	if earlier.Running() {
		t.Error("it is taken for one that began before it")
	}
	if err := earlier.Signal(unix.SIGKILL); err != nil {
		t.Errorf("a signal to who is gone: %v", err)
	}
	select {
	case <-exited:
		t.Fatal("a later process was killed")
	case <-time.After(50 * time.Millisecond):
	}
	if err := id.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-exited
}
