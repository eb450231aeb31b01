package claude

// phase is how far a turn has come, by what Claude prints.
type phase int

const (
	awaited     phase = iota // nothing of the turn has come
	begun                    // a turn is on its way, and Claude has not said whether it is ours
	taken                    // Claude took our prompt up
	finished                 // Claude gave the turn's result
	interrupted              // the same, of a turn that was cut short
	abandoned                // the turn is over for us, but not for Claude: the process has to end
)

func (p phase) over() bool { return p >= finished }
