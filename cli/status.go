package cli

import "time"

// Living describes live sessions and processes, their memory, the turns that wait for one, and agents in a pause.
// /status shows it.
type Living struct {
	Sessions     []SessionStatus // sorted by conversation
	Processes    int             // of agents, also starting and ending ones
	MaxProcesses int             // 0 is no limit
	Waiting      int             // turns that wait for another agent to end
	Memory       int64           // resident bytes of the agents and everything they started, if known
	MaxMemory    int64           // 0 is no limit
	Resting      []*Failure      // the failure of each agent in a pause
	Limits       []AccountLimits // of the agents' plans
}

// Of returns the live session of a conversation. It returns false if the conversation has none.
func (l Living) Of(conversation Conversation) (SessionStatus, bool) {
	for _, s := range l.Sessions {
		if s.Conversation == conversation {
			return s, true
		}
	}
	return SessionStatus{}, false
}

// SessionStatus is a live session.
type SessionStatus struct {
	Conversation Conversation
	Sandbox      Sandbox // where it runs
	Busy         bool
	Used         time.Time // when it became busy or idle: start of the running turn, or end of the last one
	// Memory is the resident memory in bytes of the session's process and of everything it started. It is 0 if it is
	// unknown. Sessions with the same PID share it. Only Live measures it.
	Memory int64
	SessionInfo
}

// RunInfo is a running turn.
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
	Account      Account
	Sandbox      Sandbox // where it was running
	Conversation Conversation
	Start        Start
	GivenUp      bool // it is not resumed: ductor ends its run, and nothing remains
	Background   bool // it has ended, and the agent works in the background: Start is where that work starts
}

// Remains is the state of an OpenTurn after a restart.
type Remains string

// The states.
const (
	RemainsRun     Remains = "run"     // a run exists: Service.Resume continues it
	RemainsUnknown Remains = "unknown" // its effects are unknown, so only the user may repeat it
)
