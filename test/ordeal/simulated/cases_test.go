package simulated

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/test/ordeal/scenario"
)

// TestCases plays scenarios in which the ordeal found defects of ductor, reduced as far as possible.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("../cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			found, log, _ := play(t, s)
			for _, v := range found {
				t.Error(v)
			}
			if t.Failed() {
				t.Logf("%s\n%s", s, strings.Join(log, "\n"))
			}
		})
	}
}
