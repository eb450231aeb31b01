package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runHelper is a program under test: an agent, or what an agent starts. Arguments that follow the
// test binary's own name are: none; all is in the environment.
func runHelper(name string) int {
	switch name {
	case "sleep":
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "deaf": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "family":
		return runFamily()
	case "escapee": // double fork into a session of its own: the middle one exits at once
		startChild("sleep-quietly", true)
	case "sleep-quietly":
		time.Sleep(time.Minute)
	case "deaf-quietly":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Minute)
	case "forker": // starts a successor and ends, over and over
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(2 * time.Millisecond)
		startChild("forker", false)
	case "subreaper":
		return runSubreaper()
	case "ductor": // runs one agent, to be killed while it does
		return runDuctor()
	case "heir":
		return runHeir()
	case "orphan-maker": // leaves an orphan that dies by itself
		startChild("quick", true)
	case "quick":
		time.Sleep(50 * time.Millisecond)
	}
	return 0
}

// runFamily is an agent with every kind of descendant that has been seen to survive its agent.
func runFamily() int {
	startChild("sleep-quietly", false)
	startChild("sleep-quietly", true)
	startChild("deaf-quietly", true)
	waitChild(startChild("escapee", true))
	startChild("forker", false)
	fmt.Println("ready")
	time.Sleep(time.Minute)
	return 0
}

// runSubreaper is a ductor: it adopts orphans, stops one kind and reaps the other, and prints what is wrong.
func runSubreaper() int {
	h := NewHost()
	if err := h.BecomeSubreaper(); err != nil {
		fmt.Println(err)
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
	}
	launch := func(name string) *hostProcess {
		p, err := h.Start(context.Background(), Command{Path: self, Env: append(withoutHelper(os.Environ()), helperVar+"="+name)})
		if err != nil {
			fmt.Println("start", name, err)
			os.Exit(1)
		}
		return p.(*hostProcess)
	}
	escapee := launch("escapee")
	<-escapee.Done()
	if err := escapee.Stop(context.Background(), time.Second); err != nil {
		fmt.Println(err)
	}
	if n := zombies(); n != 0 {
		fmt.Println(n, "zombies after Stop, which reaps whom it killed")
	}

	// The exit status of a program that nobody stopped stays its owner's, however eagerly we reap.
	maker, failing := launch("orphan-maker"), exec.Command("false")
	if err := failing.Start(); err != nil {
		fmt.Println(err)
	}
	<-maker.Done()
	for deadline := time.Now().Add(10 * time.Second); h.reapOnce() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Println("the orphan that died was never found")
			break
		}
	}
	if err := failing.Wait(); failing.ProcessState == nil || failing.ProcessState.ExitCode() != 1 {
		fmt.Println("a child of our own was reaped:", err)
	}
	if maker.Exit() != (ExitStatus{}) {
		fmt.Println("the program's exit was lost:", maker.Exit())
	}
	if n := zombies(); n != 0 {
		fmt.Println(n, "zombies are left")
	}
	return 0
}

// zombies counts dead children of ours that nobody reaped.
func zombies() (n int) {
	procs, err := allProcs()
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range procs {
		if p.parent == os.Getpid() && p.dead() {
			n++
		}
	}
	return n
}

func startChild(name string, session bool) *exec.Cmd {
	child := exec.Command(os.Args[0])
	child.Env = append(withoutHelper(os.Environ()), helperVar+"="+name)
	child.Stdout = os.Stdout
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := child.Start(); err != nil {
		fmt.Println("cannot start", name, err)
	}
	return child
}

func waitChild(child *exec.Cmd) { _ = child.Wait() }

func withoutHelper(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, helperVar+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// helper is the command that runs a helper program.
func helper(t *testing.T, name string) Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Command{Path: self, Dir: t.TempDir(), Env: append(withoutHelper(os.Environ()), helperVar+"="+name, "GORACE=atexit_sleep_ms=0")}
}

// sh is the command that runs a shell script.
func sh(t *testing.T, script string) Command {
	t.Helper()
	return Command{Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), Env: os.Environ()}
}
