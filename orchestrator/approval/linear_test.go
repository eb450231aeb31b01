package approval

import (
	"testing"

	"ductor/cli"
	"ductor/internal/sim/hostile"
)

// The work for a command grows linearly with its length.
func TestTheWorkOverACommandIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Printed, func(text string) {
		for _, command := range []string{text, "bash -lc 'git status " + text + "'"} {
			a := commandApproval(command)
			session, lasting := offeredRules(a)
			covers(session, a)
			covers(lasting, a)
			readWords(command)
			lastingCommand(command)
		}
		cli.AddedText(text)
		cli.UnifiedDiff(text, "a"+text)
		_, _ = parsePattern(text)
		patternCovers("Bash(git *)", commandApproval(text))
	})
}
