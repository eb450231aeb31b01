package claude

// phase is the progress of a turn, according to Claude's output.
type phase int

const (
	awaited     phase = iota // nothing of the turn has come
	begun                    // a turn is running, but it is unknown whose it is
	taken                    // Claude has accepted the prompt
	finished                 // Claude has printed the turn's result
	interrupted              // like finished, of an interrupted turn
	abandoned                // the turn is over for ductor, but not for Claude: the process must end
)

func (p phase) over() bool { return p >= finished }
