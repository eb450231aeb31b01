package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// SessionID is ours: one line of work, whichever agents took part in it.
type SessionID string

// Session is a line of work with a history.
type Session struct {
	ID           SessionID
	Conversation ConversationID // that it runs in, one at a time
	Person       PersonID       // the user it belongs to, who may take it to another conversation; 0 for none
	Title        string         // first words of the first prompt, until the user renames it
	Dir          string         // where it was begun: agents key their sessions by it
	Created      time.Time
	Used         time.Time // end of the last turn
	Totals
	Pinned   bool // listed before others
	Archived bool // listed only where the user asks for it
	// AgentSessions has the session of each agent for it in each environment: it means nothing in another one.
	AgentSessions map[AgentEnv]AgentSession
}

// AgentSession is what an agent has of a session.
type AgentSession struct {
	ID cli.AgentSessionID // the agent's own
	// Told is the last turn that the agent knows. It was told all before that turn, and accepted its prompt. Empty if it knows none.
	Told cli.TurnID
	// Terminal is set if it began in a terminal: what was said there before is known to this agent alone.
	Terminal bool
}

// Totals are what the turns of a session sum up to.
type Totals struct {
	Messages int
	CostUSD  float64
	Tokens   int64
}

// AgentEnv is an agent in the environment of its runs.
type AgentEnv struct {
	Agent   cli.Agent
	Sandbox cli.Sandbox // empty is this host
}

// AgentEnv is the agent of a turn and the environment it runs in.
func (t Turn) AgentEnv() AgentEnv { return AgentEnv{t.Agent, t.Sandbox} }

// ContextReport says how full the context of an agent is.
type ContextReport struct {
	Agent   cli.Agent
	Model   cli.ModelID
	Session Session  // zero before the first turn
	Fill    cli.Fill // zero where the agent has not said
}

// FoundSession is a session in which words were found, with the newest turn that has them.
type FoundSession struct {
	Session
	Turn    cli.TurnID // empty where only the title has them
	Excerpt string     // of what was said there, in one line
}

// SessionQuery asks for sessions of a conversation.
type SessionQuery struct {
	Conversation  ConversationID
	Elsewhere     PersonID // asks for those of this user in all other conversations instead; 0 for none
	Words         string   // that the title has, or that were said in it; empty for all sessions
	Archived      bool     // the archived ones, instead of the others
	Offset, Limit int
}

// SessionStore keeps what users do with sessions. internal/store implements it.
type SessionStore interface {
	// Session returns ErrNoSession for an id that is not there.
	Session(ctx context.Context, id SessionID) (Session, error)
	// FindSessions lists sessions, pinned ones first, then last used first. more says that there are others behind the limit.
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	// SaveSession stores the title of a session and whether it is pinned or archived. ErrNoSession.
	SaveSession(ctx context.Context, s Session) error
	// DeleteSession deletes a session with all that was said in it. ErrSessionInUse for one that is the current session of a
	// conversation, of a job, has turns that are not delivered, or was forked; ErrNoSession.
	DeleteSession(ctx context.Context, id SessionID) error
	// Knows reports whether an agent's own id is that of a session that ductor ever began, or continues.
	Knows(ctx context.Context, own cli.AgentSessionID) (bool, error)
	// ForkSession stores s as a session that has what was said in another one up to a turn of it. ErrNoTurn for a turn that has not
	// ended or has no session.
	ForkSession(ctx context.Context, s Session, turn cli.TurnID) error
	// MoveSession moves a session to another conversation; the one that it was current in has none then. ErrSessionInUse for a
	// session of a job, or with turns that are not delivered; ErrNoSession.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// History lists the last ended turns of a session, oldest first, those that it was forked with included.
	History(ctx context.Context, id SessionID, limit int) ([]Turn, error)
	// Turn returns ErrNoTurn for an id that is not there.
	Turn(ctx context.Context, id cli.TurnID) (Turn, error)
}

// Summary tells what was said in a session up to a turn, in short.
type Summary struct {
	Session SessionID
	Until   cli.TurnID // the last turn that it tells of
	Text    string
}

// Sessions is what users do with sessions besides running turns in them; package orchestrator/sessions implements it. Sessions of
// another conversation give ErrElsewhere. What changes or deletes one is ErrNotAllowed for a member.
type Sessions interface {
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	Session(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Turns lists the last turns of a session, oldest first.
	Turns(ctx context.Context, in ConversationID, id SessionID, limit int) ([]Turn, error)
	// Resume makes a session the current one.
	Resume(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Own finds a session of a user, in whatever conversation. ErrNoSession, ErrElsewhere for one of another user.
	Own(ctx context.Context, by Press, id SessionID) (Session, error)
	// TakeOver makes a session of a user the current one, and ends that where it was. ErrSessionInUse while it runs there, or for one
	// of a job; ErrNoSession, ErrElsewhere for one of another user.
	TakeOver(ctx context.Context, by Press, id SessionID) (Session, error)
	// Rename gives a session another title; ErrBadChoice for an empty one.
	Rename(ctx context.Context, by Press, id SessionID, title string) (Session, error)
	// Pin has a session listed before others, or no longer so where it was.
	Pin(ctx context.Context, by Press, id SessionID) (Session, error)
	// Archive archives a session, or restores it.
	Archive(ctx context.Context, by Press, id SessionID) (Session, error)
	// Delete deletes a session with all that was said in it. ErrSessionInUse.
	Delete(ctx context.Context, by Press, id SessionID) error
	// Fork begins a session that has what was said up to a turn, and makes it the current one. ErrNoTurn.
	Fork(ctx context.Context, in ConversationID, turn cli.TurnID) (Session, error)
	// Stored lists the sessions that agents keep in their own files for the directory of a conversation and that are not ductor's,
	// the newest first. errors.ErrUnsupported where sessions have homes of their own.
	Stored(ctx context.Context, in ConversationID) ([]cli.StoredSession, error)
	// ResumeStored begins a session that continues one of those, with its agent, and makes it the current one. ErrNoSession if it is
	// there no longer.
	ResumeStored(ctx context.Context, by Press, agent cli.Agent, id cli.AgentSessionID) (Session, error)
	// Terminal gives the line of a shell that resumes the current session in a terminal, with the agent that it runs. What the agent
	// keeps open for the conversation is closed, so that the next prompt here knows what was said there. ErrNoSession before an agent
	// has begun one; errors.ErrUnsupported for an agent that resumes nothing in a terminal.
	Terminal(ctx context.Context, by Press) (agent cli.Agent, line string, err error)
	// Export returns the prompts and answers of a session as Markdown.
	Export(ctx context.Context, in ConversationID, id SessionID) (string, error)
}
