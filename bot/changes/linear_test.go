package changes

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// The work for a diff is proportional to its length.
func TestTheWorkOverADiffIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Printed, func(text string) { count(text) })
}
