package approval

import (
	"testing"

	"ductor/internal/sim/hostile"
	"ductor/lang"
)

// The work for a question is proportional to its length.
func TestTheWorkOverAQuestionIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Printed, func(text string) {
		folded(text)
		short(text, 100)
		inLine(text, 100)
		middle(lang.Printer{}, text, 1000)
	})
}
