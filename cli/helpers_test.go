package cli

import (
	"fmt"
	"io"
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
	case "cat":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 1
		}
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
	return Command{Path: self, Dir: t.TempDir(), Env: append(withoutHelper(os.Environ()), helperVar+"="+name)}
}

// sh is the command that runs a shell script.
func sh(t *testing.T, script string) Command {
	t.Helper()
	return Command{Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), Env: os.Environ()}
}
