package turn

import (
	"io"

	"ductor/cli"
)

// Change is an event of the stream of an agent's messages that is no message. Queues deliver it at its place between
// the messages. Exactly one field is set.
type Change struct {
	Lost     *cli.LostOutput // a part of the output is missing
	CaughtUp bool            // all output from before ductor attached has been delivered; comes once
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
