package agent_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

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
		if err != nil || strings.TrimSuffix(string(b), "\x00") != cmdline {
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
