package simulated

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/test/ordeal/scenario"
)

// TestCases plays the scenarios of real defects that the ordeal found.
func TestCases(t *testing.T) {
	cases, err := filepath.Glob("cases/*.txt")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			found, log, _ := play(t, s)
			for _, v := range found {
				t.Errorf("%s\n%s", v, strings.Join(log, "\n"))
			}
		})
	}
}
