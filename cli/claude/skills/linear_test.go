package skills

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// TestTheWorkOverASkillIsLinear tests that the work is proportional to the length of a skill.
func TestTheWorkOverASkillIsLinear(t *testing.T) {
	for _, texts := range []func(int) map[string]string{hostile.Printed, hostile.Markdown} {
		hostile.Linear(t, texts, func(text string) {
			ownName(text)
			ownName("---\n" + text + "\n---")
		})
	}
}
