// Package testprogram has helpers for the TestMain functions of all packages. They decide whether long tests run, end
// processes that are still running after the tests, and find goroutines that are left. The package is for tests only.
package testprogram

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
)

const longVar = "DUCTOR_TEST_LONG"

// Long reports whether to run the long tests, which take more than an hour in total. Only scripts/test --long runs
// them.
func Long() bool { return os.Getenv(longVar) != "" }

// guardedVar is set in the environment of the second process that Guard starts, and of all its children.
const guardedVar = "DUCTOR_TEST_GUARDED"

// exitPatience is how long child processes may continue after successful tests. For example, an agent runner exits a
// second after its last client has disconnected.
var exitPatience = time.Minute

// Guard runs the tests in a child process of this program, and then exits with the exit code of the child. Before Guard
// exits, it ends all processes that the tests started and that are still running. If the tests passed, but Guard must
// kill such a process, the exit code is a failure.
//
// Guard returns only in the child process. Call it in TestMain. If the test program can also act as another program,
// such as a runner, check for that first.
func Guard() { Split(1) }

// Split is like Guard, but divides the tests among several processes that run concurrently. Use it for tests that
// mostly wait. Split starts only one process if the command line contains a flag such as -test.run or -test.bench.
func Split(processes int) {
	if os.Getenv(guardedVar) != "" {
		return
	}
	code, err := guard(processes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard of a test program:", err)
		code = 1
	}
	syscall.Exit(code) // os.Exit would take a second with the race detector
}

func guard(processes int) (code int, err error) {
	runtime.LockOSThread() // Pdeathsig kills the started test processes when this thread ends
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	if err := os.Setenv(guardedVar, "1"); err != nil {
		return 0, err
	}
	parts, err := partsOf(os.Args, processes)
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	for _, p := range parts {
		if err := p.start(); err != nil {
			return 0, err
		}
	}
	go func() {
		for s := range signals {
			for _, p := range parts {
				_ = syscall.Kill(p.pid, s.(syscall.Signal)) // the process may have ended
			}
		}
	}()
	code, err = reap(parts)
	if err != nil {
		return 0, err
	}
	patience := exitPatience
	if code != 0 {
		patience = 0
	}
	left, err := endAll(patience)
	if len(left) > 0 && code == 0 {
		fmt.Fprintf(os.Stderr, "the tests left processes behind:\n%s\n", strings.Join(left, "\n"))
		code = 1
	}
	return code, err
}

// reap waits until all parts have ended, and returns the highest exit code. It also reaps orphaned processes.
func reap(parts []*part) (code int, err error) {
	for left := len(parts); left > 0; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && err != syscall.EINTR {
			return 0, err
		}
		for _, p := range parts {
			if err == nil && p.pid == pid {
				left--
				code = max(code, p.ended(status))
			}
		}
	}
	if len(parts) > 1 {
		fmt.Println(map[bool]string{true: "PASS", false: "FAIL"}[code == 0])
	}
	return code, nil
}

// endAll waits for all child processes of this process, for at most the given time. Then it kills the remaining ones.
// The children of a killed process become children of this process, and endAll kills them too. It returns the command
// lines of the killed processes.
func endAll(patience time.Duration) (killed []string, err error) {
	const pause = 10 * time.Millisecond
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		children, err := proctree.Children(os.Getpid())
		if err != nil || len(children) == 0 {
			return killed, err
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, child := range children {
			killed = append(killed, fmt.Sprint(child.PID, " ", commandLine(child.PID)))
			_ = child.Signal(syscall.SIGKILL) // the process may have ended
			_, _ = syscall.Wait4(child.PID, nil, 0, nil)
		}
	}
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}
