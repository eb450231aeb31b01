package cli

import "time"

// Living describes the present load, for /status: live sessions and processes, turns that wait for a process, and
// agents with which ductor currently starts no turns.
type Living struct {
	Sessions     []SessionStatus // sorted by conversation
	Processes    int             // processes of agents, including those that are starting or ending
	MaxProcesses int             // 0 means no limit
	Waiting      int             // turns that wait until another process ends
	Memory       int64           // resident bytes of all agents and their descendants, if known
	MaxMemory    int64           // 0 means no limit
	Resting      []*Failure      // one failure for each agent with which ductor currently starts no turns
	Limits       []AccountLimits // usage limits of the agents' plans
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

// SessionStatus describes a live session.
type SessionStatus struct {
	Conversation Conversation
	Sandbox      Sandbox // the environment in which the session runs
	Busy         bool
	Used         time.Time // when the running turn started, or the last turn ended
	// Memory is the resident memory, in bytes, of the session's process and its descendants. It is 0 if unknown. If
	// several sessions use the same process, each of them reports the whole memory of the process. Only Service.Live
	// measures the memory.
	Memory int64
	SessionInfo
}

// RunInfo describes a running turn.
type RunInfo struct {
	Conversation Conversation
	Turn         TurnID
	Agent        Agent
	Started      time.Time // start of the turn by the wall clock
}

// OpenTurn is a turn that was running when the previous process of ductor ended.
type OpenTurn struct {
	Turn         TurnID
	Agent        Agent
	Account      Account
	Sandbox      Sandbox // where the turn was running
	Conversation Conversation
	Start        Start
	GivenUp      bool // ductor does not resume the turn, but kills its run and drops the output
	Background   bool // the turn has ended, and the agent has been working in the background since Start
}

// Remains describes the state of an OpenTurn after a restart of ductor.
type Remains string

// Values of Remains.
const (
	RemainsRun     Remains = "run"     // the turn's run exists, and Service.Resume can continue it
	RemainsUnknown Remains = "unknown" // the effects of the turn are unknown, so only the user may repeat it
)
