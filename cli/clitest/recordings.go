package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"ductor/cli"
)

// seedSize is the greatest size of a recording that Seeds returns, because fuzzing is slow with long ones.
const seedSize = 16 << 10

// Recordings tests with recorded output of an agent. It calls transcript for each file that matches pattern, and
// compares the result with the golden file events.txt in the same directory.
func Recordings(t *testing.T, update Update, pattern string,
	transcript func(t *testing.T, file string, raw []byte) string) {
	t.Helper()
	for _, file := range recorded(t, pattern) {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			Golden(t, update, filepath.Join(dir, "events.txt"), transcript(t, file, raw))
		})
	}
}

// Seeds returns the contents of the recordings that match pattern, for fuzzing. It omits long ones.
func Seeds(f testing.TB, pattern string) (seeds [][]byte) {
	f.Helper()
	for _, file := range recorded(f, pattern) {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(raw) < seedSize {
			seeds = append(seeds, raw)
		}
	}
	return seeds
}

func recorded(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	return files
}

// Test is the common part of *testing.T and *rapid.T.
type Test interface {
	Helper()
	Errorf(format string, args ...any)
}

// Keeps fails the test if the events of a complete turn violate the contract of cli.Event.
func Keeps(t Test, events []cli.Event) {
	t.Helper()
	for _, wrong := range Violations(events) {
		t.Errorf("contract: %s", wrong)
	}
}
