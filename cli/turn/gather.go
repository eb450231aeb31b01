package turn

import (
	"io"

	"ductor/cli"
)

// Gather does so with an output that can.
func Gather(output io.Reader) {
	if g, ok := output.(cli.Gatherer); ok {
		g.Gather()
	}
}

// Hurry does so with an output that gathers.
func Hurry(output io.Reader) {
	if g, ok := output.(cli.Gatherer); ok {
		g.Hurry()
	}
}
