package changes

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// The work over a diff is in proportion to its length.
func TestTheWorkOverADiffIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Printed, func(text string) { count(text) })
}
