package skills

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// The work over a skill is in proportion to its length.
func TestTheWorkOverASkillIsLinear(t *testing.T) {
	for _, texts := range []func(int) map[string]string{hostile.Printed, hostile.Markdown} {
		hostile.Linear(t, texts, func(text string) {
			ownName(text)
			ownName("---\n" + text + "\n---")
			Commands(text)
		})
	}
}
