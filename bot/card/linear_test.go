package card

import (
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/sim/hostile"
)

// The work for an answer that arrives in pieces, between tools and reasoning, is proportional to its length.
func TestTheWorkOverAnAnswerIsLinear(t *testing.T) {
	pieces := func(size int) map[string]string {
		return map[string]string{"answer": hostile.Answer(size), "fences": strings.Repeat("```\n", size/4), "lines": strings.Repeat("a\n", size/2), "word": strings.Repeat("a", size)}
	}
	hostile.Linear(t, pieces, func(text string) {
		d := newDocument(true)
		for i := 0; len(text) > 0; i++ {
			n := min(64, len(text))
			d.applyEvent(cli.TextDelta{Text: text[:n]})
			if i%64 == 0 {
				id := cli.ToolID(text[:n])
				d.applyEvent(cli.ThinkingDelta{Text: text[:n]})
				d.applyEvent(cli.ToolStarted{ID: id, Name: "Bash", Title: text[:n]})
				d.applyEvent(cli.ToolEnded{ID: id, Output: text[:n]})
			}
			text = text[n:]
		}
		d.text()
	})
}
