package cli

import "context"

// Provider is one agent dialect. Implementations have no conversation state and are safe for concurrent use.
type Provider interface {
	// Agent returns the dialect's name; constant.
	Agent() Agent
	// Modes lists the modes that Open accepts, the preferred one first; never empty. It may have to ask the agent.
	Modes() []Mode
	// Auth checks whether the agent can be used, without spending a token.
	Auth(ctx context.Context) Auth
	// Models lists the models for users. If it cannot load the list, it returns an error that explains why, and never a
	// stale list.
	Models(ctx context.Context) ([]Model, error)
	// Open opens a session for req: in Live mode it starts the process, in OneShot mode it starts nothing. It sends no
	// prompt. ctx limits only the opening, not the session's life. Errors are *Failure.
	Open(ctx context.Context, mode Mode, req Request) (Session, error)
	// Adopt creates a session from a run of the previous process of ductor.
	//
	// If req.Turn is not empty, that turn was running, and the session's Turn, called with the same req, continues it.
	// Turn emits the agent's events since the start of the turn without pauses, then CaughtUp, then new events. If the
	// prompt had not reached the agent, Turn sends it, and only then. If the program has ended, Turn builds the Result
	// from its output.
	//
	// Otherwise no turn is running, but the agent works in the background, see LeftRun.Background. The session is ready
	// for the conversation's next turn, and output of the agent in between is shown.
	//
	// The caller may adopt one run several times, once for each conversation that it serves. Errors are *Failure; the
	// caller then ends the run.
	Adopt(ctx context.Context, left LeftRun, req Request) (Session, error)
}

// Session is an agent that is ready for turns, one at a time. The caller that opened it closes it.
type Session interface {
	// Turn runs one prompt to its end and returns after it emitted the Result. Unless it is cut short, the agent has
	// read all of its input, or the session is not alive any more.
	//
	// Turn calls emit serially; emit must not block for long. When ctx is cancelled, Turn interrupts the agent by the
	// protocol if there is a way. If the agent does not end the turn soon, Turn kills every process it started. The
	// Result has Aborted set if the cause (context.Cause) is ErrAborted, otherwise Err with TimedOut. Turn always emits
	// a Result and returns no error: Result.Err has the failure.
	//
	// If the cause is ErrReplaced and the agent ended the turn itself, Info reports Alive only if nothing that the turn
	// started continues to run. If the cause is ErrDetached, nothing is interrupted or ended: the Result has Detached
	// set, and Provider.Adopt can resume the turn.
	Turn(ctx context.Context, req Request, emit func(Event))
	// Fits reports whether this session can run req unchanged. If not, the caller closes it and opens another with
	// req.Resume set.
	Fits(req Request) bool
	// Info describes the session; safe at any time.
	Info() SessionInfo
	// Close ends every process of the session, grandchildren included, and returns when they are gone.
	// Idempotent.
	Close(ctx context.Context) error
	// Detach detaches from every process of the session without ending it. No turn is running when the caller calls it.
	// The session is unusable afterwards. Idempotent.
	Detach()
}

// Decider is a Session whose agent asks users. It asks only in turns whose Request has Attended set.
type Decider interface {
	// Decide answers an ApprovalAsked or a QuestionAsked of the running turn. It returns when the answer is on its way
	// to the agent, or ErrNotAsked if no request with this ID is waiting. Safe for concurrent use.
	Decide(ctx context.Context, id ApprovalID, d Decision) error
}

// Steerer is a Session whose agent accepts messages while a turn is running.
type Steerer interface {
	// Steer adds req's prompt to the running turn. It returns when the agent has it, or ErrNoTurn if no turn could
	// accept it. Safe for concurrent use.
	Steer(ctx context.Context, req Request) error
}

// PermissionSetter is a Session whose agent can change the permission mode of a running turn.
type PermissionSetter interface {
	// SetPermission changes the mode of the running turn, and returns when the agent has confirmed it, or ErrNoTurn if
	// no turn is running. Safe for concurrent use.
	SetPermission(ctx context.Context, mode PermissionMode) error
}

// SessionInfo describes a session for /status and the pool.
type SessionInfo struct {
	Agent          Agent
	Mode           Mode
	AgentSessionID AgentSessionID // empty until the agent has named it
	PID            int            // 0 if no process is running
	Alive          bool           // can run another turn without a new process
	Background     bool           // works in the background, also between turns
}

// Limited is a Provider whose agent does not fully support all permission modes.
type Limited interface {
	// Cannot explains in one sentence which part of p the agent does not support in mode. It returns "" if there is
	// none, or if that is only known after a session was opened. It does not block. Safe for concurrent use.
	Cannot(mode Mode, p PermissionMode) string
}

// ToolHolder is a Provider whose agent can be kept from using tools. A Service runs requests with ToolLists only with
// such providers.
type ToolHolder interface {
	// CannotHold explains in one sentence why the agent would use tools that req.Tools does not permit, in any mode. It
	// returns "" if it would not.
	CannotHold(req Request) string
}

// Sharer is a Provider whose sessions may share a process.
type Sharer interface {
	// Shares returns the number of the process that Open would use for req; 0 if Open would start a new one, or if that
	// is unknown. It does not block.
	Shares(req Request) int
}
