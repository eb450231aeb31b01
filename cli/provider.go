package cli

import "context"

// Provider implements one agent dialect. Providers store no state of conversations. They are safe for concurrent use.
type Provider interface {
	// Agent returns the name of the agent, which is constant.
	Agent() Agent
	// Modes lists the modes that Open accepts, the preferred mode first. The list is never empty. Modes may ask the
	// agent.
	Modes() []Mode
	// Auth checks whether the agent can be used. It costs no tokens.
	Auth(ctx context.Context) Auth
	// Models lists the models for users. If it cannot load the list, it returns an error with the reason, not an older
	// list.
	Models(ctx context.Context) ([]Model, error)
	// Open opens a session for req. In Live mode it starts the process; in OneShot mode it starts nothing. It sends no
	// prompt. ctx limits only the opening, not the session. Errors are *Failure.
	Open(ctx context.Context, mode Mode, req Request) (Session, error)
	// Adopt creates a session from a run of the previous process of ductor. Errors are *Failure; the caller then ends
	// the run. If a run serves several conversations, the caller adopts it once for each of them.
	//
	// If req.Turn is not empty, this turn was running, and the caller continues it by Session.Turn with the same req.
	// Turn emits the agent's events since the start of the turn without pauses, then CaughtUp, then new events. It
	// sends the prompt only if the prompt had not reached the agent. If the program has ended, Turn builds the Result
	// from its output.
	//
	// If req.Turn is empty, no turn is running, but the agent works in the background; see LeftRun.Background. The
	// session can run the conversation's next turn. Users also see the agent's output before that turn.
	Adopt(ctx context.Context, left LeftRun, req Request) (Session, error)
}

// Session is an agent that can run turns, one at a time. The caller of Open or Adopt must close the Session.
type Session interface {
	// Turn runs one prompt to its end and returns after it emitted the Result. The agent has then read all of its
	// input, unless the turn was cut short or the session is no longer alive.
	//
	// Turn calls emit serially; emit must not block for long. Turn always emits a Result and returns no error:
	// Result.Err has the failure.
	//
	// When ctx is cancelled, Turn interrupts the agent through the protocol if possible. If the agent does not end the
	// turn soon, Turn kills every process that the agent started. The Result has Aborted set if the cause
	// (context.Cause) is ErrAborted. Otherwise Err has the kind TimedOut.
	//
	// Two causes are special:
	//   - ErrReplaced: if the agent ended the turn itself, Info reports Alive only if every process that the turn
	//     started has ended.
	//   - ErrDetached: Turn interrupts and ends nothing. The Result has Detached set, and Provider.Adopt can resume
	//     the turn.
	Turn(ctx context.Context, req Request, emit func(Event))
	// Fits reports whether this session can run req unchanged. Otherwise the caller closes it and opens another session
	// with req.Resume set.
	Fits(req Request) bool
	// Info describes the session. Callers may call it at any time.
	Info() SessionInfo
	// Close ends every process of the session, including grandchildren. It returns when they have ended. Idempotent.
	Close(ctx context.Context) error
	// Detach detaches from every process of the session without ending them. The caller must not call it while a turn
	// is running, and cannot use the session afterwards. Idempotent.
	Detach()
}

// Decider is a Session whose agent can ask users. The agent asks only in turns whose Request has Attended set.
type Decider interface {
	// Decide answers an ApprovalAsked or a QuestionAsked of the running turn. It returns after it sent the answer. It
	// returns ErrNotAsked if no request with this ID is waiting. Safe for concurrent use.
	Decide(ctx context.Context, id ApprovalID, d Decision) error
}

// Steerer is a Session whose agent accepts messages while a turn is running.
type Steerer interface {
	// Steer adds req's prompt to the running turn. It returns after the agent received the prompt. It returns ErrNoTurn
	// if no turn could accept the prompt. Safe for concurrent use.
	Steer(ctx context.Context, req Request) error
}

// PermissionSetter is a Session whose agent can change the permission mode of a running turn.
type PermissionSetter interface {
	// SetPermission changes the mode of the running turn. It returns after the agent has confirmed the mode. It returns
	// ErrNoTurn if no turn is running. Safe for concurrent use.
	SetPermission(ctx context.Context, mode PermissionMode) error
}

// SessionInfo describes a session. The command /status shows it, and the pool of cli/service uses it.
type SessionInfo struct {
	Agent          Agent
	Mode           Mode
	AgentSessionID AgentSessionID // empty until the agent has named it
	PID            int            // 0 if no process is running
	Alive          bool           // the session can run another turn without a new process
	Background     bool           // the agent works in the background, also between turns
}

// Limited is a Provider whose agent does not fully support all permission modes.
type Limited interface {
	// Cannot explains in one sentence which part of p the agent does not support in mode. It returns "" if the agent
	// supports all of p, or if this is unknown before the first session. It does not block. Safe for concurrent use.
	Cannot(mode Mode, p PermissionMode) string
}

// ModeHolder is a Provider that cannot enforce every permission mode on its agent. A Service rejects requests in a mode
// that is not enforced, except for requests with TextOnly.
type ModeHolder interface {
	// Unheld explains in one sentence why the agent is not held to the mode of req, and what helps. It returns "" if the
	// agent is, or if that is unknown before a session was opened. It does not block. Safe for concurrent use.
	Unheld(req Request) string
}

// ToolHolder is a Provider that can prevent its agent from using tools. A Service rejects requests with ToolLists for
// other providers.
type ToolHolder interface {
	// CannotHold explains in one sentence why the agent could use tools that req.Tools does not permit, in any
	// permission mode. It returns "" if the agent can use only permitted tools.
	CannotHold(req Request) string
}

// Sharer is a Provider whose sessions may share a process.
type Sharer interface {
	// Shares returns the number of the existing process that Open would use for req. It returns 0 if Open would start a
	// new process, or if this is unknown. It does not block.
	Shares(req Request) int
}
