package turn

import (
	"io"

	"ductor/cli"
)

// Change is an item in the stream of an agent's output that is not a message. Queues deliver it in order with the
// messages. Exactly one field is set.
type Change struct {
	Lost     *cli.LostOutput // a part of the output is lost
	CaughtUp bool            // everything that the agent printed before ductor attached was delivered; comes once
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
