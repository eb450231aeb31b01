package turn

import (
	"io"

	"ductor/cli"
)

// Change is an event in an agent's output other than a message. Queues deliver changes and messages in order. Exactly
// one field is set.
type Change struct {
	Lost     *cli.LostOutput // a part of the output is lost
	CaughtUp bool            // set once, after all output that the agent printed before ductor attached
	Ended    bool            // the output has ended
}

// Any reports whether a field is set.
func (c Change) Any() bool { return c != Change{} }

// Gather calls cli.Gatherer.Gather if the output supports it.
func Gather(output io.Reader) {
	if g, ok := output.(cli.Gatherer); ok {
		g.Gather()
	}
}

// Hurry calls cli.Gatherer.Hurry if the output supports it.
func Hurry(output io.Reader) {
	if g, ok := output.(cli.Gatherer); ok {
		g.Hurry()
	}
}
