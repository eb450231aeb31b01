package testprogram

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ductor/internal/proctree"
)

// endVar makes this test program leave a process behind and end: with an exit code, or by a signal.
const endVar = "TEST_END"

// splitVar makes this test program run its tests in several processes. If its value is the name of a test, that test
// fails.
const splitVar = "TEST_SPLIT"

const shortPatience = 50 * time.Millisecond

func TestMain(m *testing.M) {
	exitPatience = shortPatience
	processes := 1
	if os.Getenv(splitVar) != "" {
		processes = 3
	}
	Split(processes)
	if end := os.Getenv(endVar); end != "" {
		if err := leave(end); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

// leave starts a process that is detached from this program, and ends this program.
func leave(end string) error {
	orphan := exec.Command("sh", "-c", `sleep 1000 </dev/null >/dev/null 2>&1 &
		until grep -qx sleep /proc/$!/comm; do :; done; echo $!`) // the child begins as a copy of the shell
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pid, err := orphan.Output()
	if err != nil {
		return err
	}
	fmt.Println("orphan", strings.TrimSpace(string(pid)))
	if code, err := strconv.Atoi(end); err == nil {
		os.Exit(code)
	}
	time.Sleep(time.Hour) // until the signal
	return errors.New("the signal did not arrive")
}

// TestNothingIsLeftBehind tests that the guard ends a leftover process whether tests pass, fail or are killed, and
// that passing tests then fail.
func TestNothingIsLeftBehind(t *testing.T) {
	if os.Getenv(splitVar) != "" {
		return
	}
	for end, code := range map[string]int{"0": 1, "2": 2, "SIGQUIT": 2, "SIGKILL of the guard": -1} {
		t.Run(end, func(t *testing.T) {
			cmd := again(endVar + "=" + end)
			said := &strings.Builder{}
			cmd.Stderr = said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscanf(out, "orphan %d\n", &pid); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			orphan, alive := proctree.LookUp(pid)
			tests, err := proctree.Children(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			tests = slices.DeleteFunc(tests, func(id proctree.ID) bool { return id.PID == pid })
			switch end {
			case "SIGQUIT":
				err = cmd.Process.Signal(syscall.SIGQUIT)
			case "SIGKILL of the guard":
				err = cmd.Process.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d: %s", got, said)
			}
			if told := strings.Contains(said.String(), fmt.Sprint(pid, " sleep 1000")); told != (end == "0") {
				t.Errorf("it says %s", said)
			}
			if end != "SIGKILL of the guard" {
				if alive && orphan.Running() {
					t.Error("the orphan lives")
				}
				return
			}
			for deadline := time.Now().Add(time.Minute); slices.ContainsFunc(tests,
				proctree.ID.Running); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the tests go on without their guard")
				}
			}
			_ = orphan.Signal(syscall.SIGKILL) // a process that the guard missed
		})
	}
}

// again returns the command that runs this test program as go test does, without a guard.
func again(env string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, guardedVar+"=")
	}), env)
	return cmd
}

// TestTestsAreSplit tests that each test runs in one of the processes, and that there is one verdict.
func TestTestsAreSplit(t *testing.T) {
	if fails := os.Getenv(splitVar); fails != "" {
		if fails == t.Name() {
			t.Error("it fails")
		}
		return
	}
	for _, flag := range []string{"-test.v=true", "-test.v=test2json"} {
		for fails, verdict := range map[string]string{"none": "PASS", t.Name(): "FAIL"} {
			said, err := again(splitVar+"="+fails, flag).CombinedOutput()
			text := strings.ReplaceAll(string(said), "\x16", "")
			if (err == nil) != (fails == "none") || !strings.HasSuffix(text, "\n"+verdict+"\n") {
				t.Errorf("%s: %v:\n%s", fails, err, text)
			}
			for _, test := range []string{"TestNothingIsLeftBehind", "TestTestsAreSplit", "TestLongIsAskedFor"} {
				if strings.Count(text, "=== RUN   "+test+"\n") != 1 {
					t.Errorf("%s did not run once:\n%s", test, text)
				}
			}
			if n := strings.Count(text, "\nPASS\n") + strings.Count(text, "\nFAIL\n"); n != 1 {
				t.Errorf("%d verdicts:\n%s", n, text)
			}
		}
	}
	if said, err := again(splitVar+"=none", "-test.v", "-test.run=^TestLongIsAskedFor$").CombinedOutput(); err != nil ||
		strings.Count(string(said), "=== RUN") != 1 {
		t.Errorf("one test: %v\n%s", err, said)
	}
}

// A goroutine that ends later than goleak waits is no leak. One that does not end is a leak.
func TestLeaksAreFound(t *testing.T) {
	before, release := goleak.IgnoreCurrent(), make(chan struct{})
	go func() { <-release }()
	if err := FindLeaks(before); err == nil {
		t.Error("the goroutine is not found")
	}
	exitPatience = time.Hour
	defer func() { exitPatience = shortPatience }()
	time.AfterFunc(time.Second, func() { close(release) })
	if err := FindLeaks(before); err != nil {
		t.Error(err)
	}
}

func TestLongIsAskedFor(t *testing.T) {
	t.Setenv(longVar, "")
	if Long() {
		t.Error("plain go test is long")
	}
	t.Setenv(longVar, "1")
	if !Long() {
		t.Error(filepath.Base(os.Args[0]), "is not long")
	}
}
