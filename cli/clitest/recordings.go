package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"ductor/cli"
)

// seedSize is how large a recording may be to be a seed of fuzzing.
const seedSize = 16 << 10

// Recordings runs transcript for each file that matches pattern, an agent's recorded output, and compares the result
// with events.txt beside it.
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

// Seeds returns the recordings that match pattern, without the long ones.
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

// Keeps checks that the events of one whole turn fulfil the contract of cli.Event.
func Keeps(t Test, events []cli.Event) {
	t.Helper()
	for _, wrong := range Violations(events) {
		t.Errorf("contract: %s", wrong)
	}
}
