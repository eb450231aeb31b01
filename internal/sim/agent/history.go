package agent

import (
	"fmt"
	"strings"

	"ductor/internal/sim/script"
)

// history returns the answer to the directive [[history]]: the earlier prompts without their directives.
func history(past []entry) string {
	if len(past) == 0 {
		return "This is the first message of the session."
	}
	var b strings.Builder
	for i, e := range past {
		said := script.Parse(e.Prompt).Plain
		if said == "" {
			said = e.Prompt
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. %s", i+1, said)
	}
	return b.String()
}
