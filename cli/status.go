package cli

import "time"

// Living is what lives, for /status.
type Living struct {
	Sessions     []SessionStatus // in order of their conversations
	Processes    int             // of agents, those included that are being started or ended
	MaxProcesses int             // 0 is no limit
	Waiting      int             // turns that wait until another agent ends
	Memory       int64           // bytes that the agents and all they started have resident, as far as it is known
	MaxMemory    int64           // 0 is no limit
	Resting      []*Failure      // of each agent that is left alone for a while, why
}

// Of is the session of a conversation that lives; false if it has none.
func (l Living) Of(conversation Conversation) (SessionStatus, bool) {
	for _, s := range l.Sessions {
		if s.Conversation == conversation {
			return s, true
		}
	}
	return SessionStatus{}, false
}

// SessionStatus is one session that lives.
type SessionStatus struct {
	Conversation Conversation
	Sandbox      Sandbox // where it runs
	Busy         bool
	Used         time.Time // since when it is busy or idle: start of the turn that runs, or end of the last one
	// Memory is how many bytes its process and all it started have resident; 0 if that is not known. Sessions
	// of one PID share it. Only Live measures it.
	Memory int64
	SessionInfo
}

// RunInfo is a turn that runs.
type RunInfo struct {
	Conversation Conversation
	Turn         TurnID
	Agent        Agent
	Started      time.Time // wall clock
}

// OpenTurn is a turn that was running when the previous process of ductor ended.
type OpenTurn struct {
	Turn         TurnID
	Agent        Agent
	Sandbox      Sandbox // where it was running
	Conversation Conversation
	Start        Start
	GivenUp      bool // it is not resumed: nothing remains of it, and its run is ended
	Background   bool // it is over, and the agent works in the background: Start is where that begins
}

// Remains is what is left of an OpenTurn.
type Remains string

// The kinds of remains.
const (
	RemainsRun     Remains = "run"     // a run has it: Service.Resume goes on with it
	RemainsUnknown Remains = "unknown" // what it did is unknown, so only the user may ask it again
)
