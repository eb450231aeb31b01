package handoff

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// The work over an answer is in proportion to its length.
func TestTheWorkOverAnAnswerIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Markdown, func(text string) { Middle(text, Tokens(text)/3) })
}
