package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// ownSeconds returns a number of seconds that is different in each test process, because the tests of several checkouts
// may run at the same time.
func ownSeconds() string { return fmt.Sprintf("%d.%03d", 60+os.Getpid()/1000, os.Getpid()%1000) }

// ownSleep returns the command line of a process that only the tests of this process start.
func ownSleep() string { return "sleep " + ownSeconds() }

// pids returns the living processes with a command line.
func pids(t *testing.T, cmdline string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, f := range files {
		b, err := os.ReadFile(f)
		words := strings.TrimSuffix(string(b), "\x00")
		if err != nil || strings.ReplaceAll(words, "\x00", " ") != cmdline {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err == nil && !stopped(pid) {
			all = append(all, pid)
		}
	}
	return all
}

// touch creates an empty file in the working directory.
func touch(p place, name string) error {
	return os.WriteFile(filepath.Join(p.work, name), nil, 0o600)
}
