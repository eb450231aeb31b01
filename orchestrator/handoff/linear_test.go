package handoff

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// The work for an answer grows linearly with its length.
func TestTheWorkOverAnAnswerIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Markdown, func(text string) { Middle(text, Tokens(text)/3) })
}
