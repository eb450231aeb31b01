package cli

import "context"

// Mode says how a session talks to its agent.
type Mode string

// The modes. A provider supports OneShot, Live or both.
const (
	Live    Mode = "live"     // one process, many turns
	OneShot Mode = "one-shot" // a process per turn
)

// Provider is one agent dialect. Implementations hold no state of any conversation and are safe for
// concurrent use.
type Provider interface {
	// Agent is the dialect's name; constant.
	Agent() Agent
	// Modes lists what Open accepts, the preferred one first; never empty.
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
}

// Session is an agent ready for turns, one at a time. The caller that opened it closes it.
type Session interface {
	// Turn runs one prompt to its end and returns after it emitted the Result.
	//
	// emit is called from one goroutine at a time, in order; it must not block for long. When ctx is
	// cancelled the turn is interrupted by the protocol if there is one, and if the agent does not end
	// the turn shortly every process it started is killed; the Result then has Aborted set if the cause
	// (context.Cause) is ErrAborted, else Err with TimedOut. Turn never returns without a Result, and
	// never returns an error: what went wrong is in Result.Err.
	Turn(ctx context.Context, req Request, emit func(Event))
	// Fits reports whether this session can take req as it is. If not, the caller closes it and opens
	// another with req.Resume set.
	Fits(req Request) bool
	// Info says what is running; safe at any time.
	Info() SessionInfo
	// Close ends every process of the session, grandchildren included, and returns when they are gone.
	// Idempotent.
	Close(ctx context.Context) error
}

// SessionInfo describes a session for /status and the pool.
type SessionInfo struct {
	Agent          Agent
	Mode           Mode
	AgentSessionID AgentSessionID // empty until the agent named it
	PID            int            // 0 when no process runs
	Alive          bool           // can take another turn without a new process
}
