package cli

import "context"

// Provider is one agent dialect. Implementations hold no state of any conversation and are safe for
// concurrent use.
type Provider interface {
	// Agent is the dialect's name; constant.
	Agent() Agent
	// Modes lists what Open accepts, the preferred one first; never empty. It may have to ask the agent.
	Modes() []Mode
	// Auth looks whether the agent can be used, without spending a token.
	Auth(ctx context.Context) Auth
	// Models lists what users may pick. An error means none can be shown and says why; a stale list is
	// never returned instead.
	Models(ctx context.Context) ([]Model, error)
	// Open makes a session ready to take req: in Live mode its process is started, in OneShot mode
	// nothing is. No prompt is sent. ctx bounds the opening only, not the session's life.
	// Errors are *Failure.
	Open(ctx context.Context, mode Mode, req Request) (Session, error)
	// Adopt makes a session of a run that the previous process of ductor left.
	//
	// When req.Turn is not empty, that turn was running: the session's Turn, called with the same req, goes
	// on with it. It emits what the agent said since the turn began, from its first event on and without
	// pauses, then CaughtUp, then what comes. A prompt that had not reached the agent is sent then, and only
	// then. Where the program has ended by then, what it printed makes the Result.
	//
	// Otherwise no turn runs, but work in the background, see LeftRun.Background: the session of its conversation is ready
	// for its next turn, and what the agent says in between is shown.
	//
	// One run may be adopted several times, once for each conversation that it serves. Errors are *Failure;
	// the caller then ends the run.
	Adopt(ctx context.Context, left LeftRun, req Request) (Session, error)
}

// Session is an agent ready for turns, one at a time. The caller that opened it closes it.
type Session interface {
	// Turn runs one prompt to its end and returns after it emitted the Result. Unless it is cut short the agent has
	// taken up all that it was sent, or the session is not alive any more.
	//
	// emit is called from one goroutine at a time, in order; it must not block for long. When ctx is
	// cancelled the turn is interrupted by the protocol if there is one, and if the agent does not end
	// the turn shortly every process it started is killed; the Result then has Aborted set if the cause
	// (context.Cause) is ErrAborted, else Err with TimedOut. Turn never returns without a Result, and
	// never returns an error: what went wrong is in Result.Err.
	//
	// When the cause is ErrReplaced and the agent ended the turn itself, Info says Alive only if nothing that the
	// turn ran goes on.
	// When the cause is ErrDetached nothing is interrupted or ended: the Result has Detached set, and the
	// turn can be resumed by Provider.Adopt.
	Turn(ctx context.Context, req Request, emit func(Event))
	// Fits reports whether this session can take req as it is. If not, the caller closes it and opens
	// another with req.Resume set.
	Fits(req Request) bool
	// Info says what is running; safe at any time.
	Info() SessionInfo
	// Close ends every process of the session, grandchildren included, and returns when they are gone.
	// Idempotent.
	Close(ctx context.Context) error
	// Detach detaches from every process of the session without ending it. No turn runs when it is called. The
	// session is of no use afterwards. Idempotent.
	Detach()
}

// Decider is a Session whose agent asks people. Its agent asks only in turns whose Request has Attended set.
type Decider interface {
	// Decide answers an ApprovalAsked or a QuestionAsked of the turn that runs. It returns when the answer is
	// on its way to the agent; ErrNotAsked if nothing of this id waits. Safe for concurrent use.
	Decide(ctx context.Context, id ApprovalID, d Decision) error
}

// Steerer is a Session whose agent takes a message while a turn runs.
type Steerer interface {
	// Steer adds req's prompt to the turn that runs. It returns when the agent has it; ErrNoTurn if no turn
	// runs that could take it. Safe for concurrent use.
	Steer(ctx context.Context, req Request) error
}

// PermissionSetter is a Session whose agent takes another permission mode while a turn runs.
type PermissionSetter interface {
	// SetPermission changes the mode of the turn that runs, and returns when the agent agreed; ErrNoTurn if no turn runs.
	// Safe for concurrent use.
	SetPermission(ctx context.Context, mode PermissionMode) error
}

// SessionInfo describes a session for /status and the pool.
type SessionInfo struct {
	Agent          Agent
	Mode           Mode
	AgentSessionID AgentSessionID // empty until the agent named it
	PID            int            // 0 when no process runs
	Alive          bool           // can take another turn without a new process
	Background     bool           // works in the background, between turns too
}

// Limited is a Provider whose agent does not do all that a permission mode promises.
type Limited interface {
	// Cannot says in one sentence what of p the agent does not do when it is run in mode; empty if nothing, or if
	// that shows only once a session was opened. It does not wait. Safe for concurrent use.
	Cannot(mode Mode, p PermissionMode) string
}

// ToolHolder is a Provider whose agent can be kept from using tools. A Service has no other run a request with ToolLists.
type ToolHolder interface {
	// CannotHold says in one sentence why the agent would use tools that req.Tools does not permit, in any mode; empty if it
	// uses none.
	CannotHold(req Request) string
}

// Sharer is a Provider whose sessions may share a process.
type Sharer interface {
	// Shares is the number of the process that a session for req would be put into by Open; 0 if Open would
	// start one, or if that is not known yet. It does not wait.
	Shares(req Request) int
}
