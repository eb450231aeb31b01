package cli

import "context"

// Provider translates between this package and the protocol of one agent. Providers store no state of conversations.
// They are safe for concurrent use.
type Provider interface {
	// Agent returns the name of the agent. The name is constant.
	Agent() Agent
	// Modes lists the modes that Open accepts, the preferred mode first. The list is never empty. Modes may start the
	// agent to find out.
	Modes() []Mode
	// Auth checks whether the agent is installed and logged in. It uses no tokens.
	Auth(ctx context.Context) Auth
	// Models lists the models that users can choose. If it cannot load the list, it returns an error, never an older
	// list.
	Models(ctx context.Context) ([]Model, error)
	// Open opens a session for req without sending a prompt. In Live mode it starts the process; in OneShot mode it
	// starts nothing. Cancelling ctx aborts the opening, but does not affect the session. Errors are *Failure.
	Open(ctx context.Context, mode Mode, req Request) (Session, error)
	// Adopt creates a session from a run of the previous process of ductor. Errors are *Failure; the caller then ends
	// the run. If a run serves several conversations, the caller adopts it once for each of them.
	//
	// If req.Turn is not empty, that turn was running, and the caller continues it by calling Session.Turn with the
	// same req. Turn first emits all events since the start of the turn, then CaughtUp, then new events. Turn sends the
	// prompt only if the agent has not received it. If the program has ended, Turn builds the Result from its output.
	//
	// If req.Turn is empty, no turn is running, but the agent works in the background; see LeftRun.Background. The
	// session can then run the conversation's next turn. Users see the agent's output from before that turn, too.
	Adopt(ctx context.Context, left LeftRun, req Request) (Session, error)
}

// Session runs the turns of one conversation, one at a time. The caller of Open or Adopt must close the Session.
type Session interface {
	// Turn runs one prompt and returns after it emitted the Result. By then the agent has read all of its input, unless
	// the turn was cut short or the session can run no more turns.
	//
	// Turn calls emit serially; emit must not block for long. Turn always emits a Result and returns no error:
	// Result.Err has the failure.
	//
	// When ctx is cancelled, Turn interrupts the agent through the protocol if possible. If the agent does not end the
	// turn soon, Turn kills every process that the agent started. The Result has Aborted set if the cause
	// (context.Cause) is ErrAborted. Otherwise Err has the kind TimedOut.
	//
	// Two causes are special:
	//   - ErrReplaced: the agent may end the turn by itself. Afterwards, Info reports Alive only if no process that the
	//     turn started is left.
	//   - ErrDetached: Turn interrupts and ends nothing. The Result has Detached set, and Provider.Adopt can resume the
	//     turn.
	Turn(ctx context.Context, req Request, emit func(Event))
	// Fits reports whether this session can run req. If it cannot, the caller closes the session and opens another with
	// req.Resume set.
	Fits(req Request) bool
	// Info describes the session. Callers may call it at any time, even during a turn.
	Info() SessionInfo
	// Close ends every process of the session, including grandchildren. It returns when they have ended. Idempotent.
	Close(ctx context.Context) error
	// Detach detaches from every process of the session without ending them. The caller must not call it while a turn
	// is running, and cannot use the session afterwards. Idempotent.
	Detach()
}

// Decider is a Session whose agent can ask users for approvals and answers. The agent asks only in turns whose Request
// has Attended set.
type Decider interface {
	// Decide sends the agent the answer to an ApprovalAsked or a QuestionAsked of the running turn. It returns
	// ErrNotAsked if no request with this ID is waiting. Safe for concurrent use.
	Decide(ctx context.Context, id ApprovalID, d Decision) error
}

// Steerer is a Session whose agent accepts further messages during a turn.
type Steerer interface {
	// Steer adds req's prompt to the running turn, and returns after the agent received it. It returns ErrNoTurn if no
	// turn is running that accepts the prompt. A second call with the same req.Turn returns nil at once, even if the
	// first call does not know yet whether the agent receives the prompt. Safe for concurrent use.
	Steer(ctx context.Context, req Request) error
}

// PermissionSetter is a Session whose agent can change the permission mode of a running turn.
type PermissionSetter interface {
	// SetPermission changes the permission mode of the running turn. It returns after the agent has confirmed the
	// change. It returns ErrNoTurn if no turn is running. Safe for concurrent use.
	SetPermission(ctx context.Context, mode PermissionMode) error
}

// SessionInfo describes a session, for the command /status and for the pool in cli/service.
type SessionInfo struct {
	Agent          Agent
	Mode           Mode
	AgentSessionID AgentSessionID // empty until the agent has named the session
	PID            int            // 0 if no process is running
	Alive          bool           // the session can run another turn without starting a process
	Background     bool           // the agent works in the background, possibly also between turns
}

// Limited is a Provider whose agent does not fully support every permission mode.
type Limited interface {
	// Cannot explains in one sentence which part of a permission mode the agent does not support when it runs in the
	// given Mode. It returns "" if the agent supports the whole permission mode, or if this is unknown before the first
	// session. It does not block. Safe for concurrent use.
	Cannot(mode Mode, p PermissionMode) string
}

// OnceDenies ends a sentence of Limited.Cannot about an agent that, in one-shot mode, denies every action that needs
// permission. OnceDenies names the actions that ductor would allow without asking a user: edits in the mode
// accept-edits, and the tools in Request.AllowedTools. The agent denies these actions, too, because it cannot ask
// ductor.
const OnceDenies = "even edits in accept-edits and allowed tools other than the web"

// ModeHolder is a Provider that cannot always make its agent obey the permission mode. A Service rejects a request if
// the agent may ignore its mode, unless the request has TextOnly set.
type ModeHolder interface {
	// Unheld explains why the agent may ignore the permission mode of req, and how to fix that. The text continues a
	// sentence that begins with the mode: "not available, because …". Unheld returns "" if the agent obeys the mode, or
	// if this is unknown before the first session. It does not block. Safe for concurrent use.
	Unheld(req Request) string
}

// ToolHolder is a Provider that can prevent its agent from using tools. For all other providers, a Service rejects
// requests with ToolLists.
type ToolHolder interface {
	// CannotHold explains in one sentence why ductor cannot limit the agent to the tools that req.Tools permits. It
	// returns "" if the agent can use only permitted tools. The result does not depend on the permission mode.
	CannotHold(req Request) string
}

// Sharer is a Provider whose sessions can share a process.
type Sharer interface {
	// Shares returns the process ID of the running process that Open would use for req. It returns 0 if Open would
	// start a process, or if this is unknown. It does not block.
	Shares(req Request) int
}
