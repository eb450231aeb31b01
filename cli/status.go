package cli

import "time"

// Living describes the live sessions and processes. It also counts the turns that wait for a process, and names the
// agents that get no turns for a while. /status shows it.
type Living struct {
	Sessions     []SessionStatus // sorted by conversation
	Processes    int             // processes of agents, including starting and ending ones
	MaxProcesses int             // 0 is no limit
	Waiting      int             // turns that wait for another agent to end
	Memory       int64           // resident bytes of the agents and their descendants, if known
	MaxMemory    int64           // 0 is no limit
	Resting      []*Failure      // the failure of each agent that gets no turns for a while
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
	Sandbox      Sandbox // the environment in which the session runs
	Busy         bool
	Used         time.Time // start of the running turn, or end of the last one
	// Memory is the resident memory in bytes of the session's process and its descendants. Sessions with the same PID
	// share it. It is 0 if unknown. Only Service.Live measures it.
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
	Sandbox      Sandbox // where the turn was running
	Conversation Conversation
	Start        Start
	GivenUp      bool // the turn is not resumed: ductor ends its run and keeps nothing of it
	Background   bool // the turn has ended, and the agent works in the background from Start on
}

// Remains describes the state of an OpenTurn after a restart.
type Remains string

// Remains values.
const (
	RemainsRun     Remains = "run"     // a run exists, and Service.Resume continues it
	RemainsUnknown Remains = "unknown" // its effects are unknown, so only the user may repeat it
)
