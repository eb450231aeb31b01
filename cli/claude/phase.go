package claude

// phase is the progress of a turn according to Claude's output.
type phase int

const (
	awaited     phase = iota // no output of the turn has come
	begun                    // a turn is running, but perhaps one that Claude started itself
	taken                    // Claude has accepted the prompt
	finished                 // Claude has printed the turn's result
	interrupted              // Claude has printed the result of the interrupted turn
	abandoned                // ductor has ended the turn, but Claude has not, so the process must end
)

func (p phase) over() bool { return p >= finished }
