package cli

import "io"

// Gatherer is a Process's output that can let a stream of many small pieces gather a little before it is read:
// an agent that writes word by word would otherwise wake us for each word. What comes after a silence, or in bulk, is
// read at once all the same. Safe for concurrent use with reads.
type Gatherer interface {
	// Gather begins that.
	Gather()
	// Hurry has what comes next read at once: somebody waits for it.
	Hurry()
}

// Gather does so with an output that can.
func Gather(output io.Reader) {
	if g, ok := output.(Gatherer); ok {
		g.Gather()
	}
}

// Hurry does so with an output that gathers.
func Hurry(output io.Reader) {
	if g, ok := output.(Gatherer); ok {
		g.Hurry()
	}
}

var _ Gatherer = (*hostOutput)(nil)
