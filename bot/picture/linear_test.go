package picture

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// The work for a diff is proportional to its length.
func TestTheWorkOverADiffIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Printed, func(text string) {
		diffRows(text, english)
		Width(text)
		expand(text, 0)
		Drawable(text)
	})
}

// Any text can be laid out.
func FuzzDiff(f *testing.F) {
	f.Add(sampleDiff)
	f.Fuzz(func(t *testing.T, text string) {
		for _, row := range diffRows(text, english) {
			for _, run := range row.Runs {
				if len(run.Text) > len(text)+len("deleted  → binary mode was line") {
					t.Fatalf("%q", run.Text)
				}
			}
		}
		if _, _, err := Diff(Dark, text, 50, english); err != nil {
			t.Fatal(err)
		}
	})
}
