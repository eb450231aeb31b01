package turn

import (
	"io"

	"ductor/cli"
)

// Change is what happened to the output of an agent, between two messages of it. One field is set.
type Change struct {
	Lost     *cli.LostOutput // a part of it is missing
	CaughtUp bool            // all that was printed before ductor listened was handed on; comes once
	Ended    bool            // nothing more comes
}

// Any says whether something happened at all.
func (c Change) Any() bool { return c != Change{} }

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
