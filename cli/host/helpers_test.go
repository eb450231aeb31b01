package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/proctree"
)

// runHelper is a program under test: an agent, or a child of an agent. It takes no arguments: the environment
// configures it.
func runHelper(name string) int {
	switch name {
	case "deaf": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "clock":
		return printClock()
	case "family":
		return runFamily()
	case "escapee": // double fork into a new session: the middle process exits at once
		startChild("sleep-quietly", true)
	case "sleep-quietly":
		time.Sleep(time.Minute)
	case "deaf-quietly":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Minute)
	case "deep": // three nested sessions, which all ignore SIGTERM
		return runDeep("deep-2")
	case "deep-2":
		return runDeep("deaf-quietly")
	case "forker": // starts a successor and ends, repeatedly
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(2 * time.Millisecond)
		startChild("forker", false)
	}
	return 0
}

// runFamily is an agent with every kind of child process that was seen to survive its agent.
func runFamily() int {
	startChild("sleep-quietly", false)
	startChild("sleep-quietly", true)
	startChild("deaf-quietly", true)
	startChild("deep", true)
	_ = startChild("escapee", true).Wait()
	startChild("forker", false)
	fmt.Println("ready")
	time.Sleep(time.Minute)
	return 0
}

func runDeep(child string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	startChild(child, true)
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

func withoutHelper(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, helperVar+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// helper returns the command that runs a helper program.
func helper(t testing.TB, name string) cli.Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return cli.Command{Path: self, Dir: t.TempDir(), Env: append(withoutHelper(os.Environ()), helperVar+"="+name, "GORACE=atexit_sleep_ms=0")}
}

// sh returns the command that runs a shell script.
func sh(t testing.TB, script string) cli.Command {
	t.Helper()
	return cli.Command{Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), Env: os.Environ()}
}

// churn starts three hundred processes in all kinds of ways; some end at once.
const churn = `i=0; while [ $i -lt 100 ]; do
	setsid nohup sleep 60 >/dev/null 2>&1 &
	(trap '' TERM; exec sleep 60) &
	(sleep 60 & exit 0) &
	i=$((i+1)); done
echo ready; wait`

// agent is sh for a live agent of a conversation.
func agent(t testing.TB, script string) cli.Command {
	t.Helper()
	cmd := sh(t, script)
	cmd.For = cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a", Setting: "s1"}
	return cmd
}

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func kill(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// runnerProc returns the runner of p's program.
func runnerProc(t *testing.T, p cli.Process) proctree.ID {
	t.Helper()
	id, ok := proctree.LookUp(runnerOf(t, p))
	if !ok {
		t.Fatal("the runner is gone")
	}
	return id
}
