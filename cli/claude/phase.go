package claude

// phase is the progress of a turn, as Claude's output shows it.
type phase int

const (
	awaited     phase = iota // no output of the turn has arrived
	begun                    // output has arrived; it may belong to a turn that Claude started itself
	accepted                 // Claude has accepted the prompt
	finished                 // Claude has printed the turn's result
	interrupted              // Claude has printed the result of the interrupted turn
	abandoned                // ductor has ended the turn, but Claude continues it, so the process must end
)

func (p phase) over() bool { return p >= finished }
