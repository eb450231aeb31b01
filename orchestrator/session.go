package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ductor/cli"
)

// SessionID names one line of work, whichever agents took part in it.
type SessionID string

// Session is a line of work with a history.
type Session struct {
	ID           SessionID
	Conversation ConversationID // the conversation that it runs in; a session runs in one at a time
	Person       PersonID       // the owning user, who may move it to another conversation; 0 for none
	Title        string         // first words of the first prompt, until the user renames it
	Dir          string         // where it was started: agents key their sessions by it
	Created      time.Time
	Used         time.Time // end of the last turn
	Totals       Totals
	Newest       int64 // the number of its last entry; 0 without one
	Pinned       bool  // listed before others
	Archived     bool  // listed only if the user asks for it
	// AgentSessions holds the session of each agent in each environment: an ID is valid only in its own environment.
	AgentSessions map[AgentEnv]AgentSession
}

// AgentSession is an agent's own part of a session, with what the agent was told of the session's entries. Package
// handoff has the rule.
type AgentSession struct {
	ID   cli.AgentSessionID // the agent's own
	Told cli.TurnID         // its last own entry whose prompt it accepted; empty for none
	UpTo int64              // the last entry that an accepted prompt told it of, by its number
	// Offered is the last entry that a prompt told it of without any sign that the agent accepted the prompt.
	Offered int64
	// Terminal is set if the session began in a terminal: only this agent knows the conversation before.
	Terminal bool
}

// Totals are sums over the entries of a session.
type Totals struct {
	Messages int
	CostUSD  float64
	Tokens   int64
}

// AgentEnv is an agent in one environment and one lane: it has one session of its own there.
type AgentEnv struct {
	Agent   cli.Agent
	Sandbox cli.Sandbox // empty is this host
	Lane    Lane
}

// Lane is a series of prompts to an agent in a session. The process that runs the turns of a conversation holds the
// agent's own session open, so prompts beside the turns have another one.
type Lane string

// The lanes.
const (
	MainLane  Lane = "" // turns of the conversation
	AsideLane Lane = "aside"
)

// AgentEnv returns the entry's agent, environment and lane.
func (t Turn) AgentEnv() AgentEnv {
	of := AgentEnv{Agent: t.Agent, Sandbox: t.Sandbox}
	if t.Entry.Kind != TurnEntry {
		of.Lane = AsideLane
	}
	return of
}

// MostSessionName limits the characters of a session's name.
const MostSessionName = 128

// CheckSessionName returns an error if a caller must not use name as a session's name or ID. The error does not quote
// the name.
func CheckSessionName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return errors.New("the session_id is not valid UTF-8")
	case utf8.RuneCountInString(name) > MostSessionName:
		return fmt.Errorf("the session_id has %d characters, and %d are the limit", utf8.RuneCountInString(name),
			MostSessionName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the session_id has a control character, such as a line break")
	}
	return nil
}

// SessionNames finds sessions by the names that callers chose. internal/store implements it.
type SessionNames interface {
	// Session returns ErrNoSession for an unknown ID.
	Session(ctx context.Context, id SessionID) (Session, error)
	// OwnSession returns the session with a name in a conversation, or "" if there is none.
	OwnSession(ctx context.Context, in ConversationID, name string) (SessionID, error)
}

// FindSession returns the session of a conversation with an ID, or else the one with a name. It returns ErrNoSession if
// there is none, so that nothing is known of the sessions of other conversations.
func FindSession(ctx context.Context, names SessionNames, in ConversationID, idOrName string) (Session, error) {
	s, err := names.Session(ctx, SessionID(idOrName))
	if err == nil && s.Conversation == in || err != nil && !errors.Is(err, ErrNoSession) {
		return s, err
	}
	id, err := names.OwnSession(ctx, in, idOrName)
	if err == nil && id == "" {
		err = ErrNoSession
	}
	if err != nil {
		return Session{}, err
	}
	return names.Session(ctx, id)
}

// ContextReport reports how full the context of an agent is.
type ContextReport struct {
	Agent   cli.Agent
	Model   cli.ModelID
	Session Session  // zero before the first turn
	Fill    cli.Fill // zero if the agent has not reported it
}

// FoundSession is a search result: a session and its newest turn with the search words.
type FoundSession struct {
	Session Session
	Turn    cli.TurnID // empty if only the title has the words
	Excerpt string     // one line of the match
}

// SessionQuery searches for sessions of a conversation.
type SessionQuery struct {
	Conversation  ConversationID
	Scope         SessionScope // search this scope instead, if it has a conversation
	Elsewhere     PersonID     // search this user's sessions in all other conversations instead; 0 for none
	ID            SessionID    // only this one, archived or not; empty for all
	Dir           string       // only those of this directory; empty for all
	Words         string       // words in the title or the text; empty for all sessions
	Archived      bool         // the archived ones, instead of the others
	Offset, Limit int
}

// SessionStore stores sessions for users. internal/store implements it.
type SessionStore interface {
	SessionNames
	// FindSessions lists sessions: pinned ones first, then the most recently used. more reports whether there are more
	// than the limit.
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	// SaveSession stores the title of a session and whether it is pinned or archived, or returns ErrNoSession.
	SaveSession(ctx context.Context, s Session) error
	// DeleteSession deletes a session with all its turns. It returns ErrSessionInUse if the session is current in a
	// conversation, belongs to a job, has undelivered turns, or was forked. It returns ErrNoSession if there is none.
	DeleteSession(ctx context.Context, id SessionID) error
	// Knows reports whether an agent's own session ID belongs to a session that ductor started or continues.
	Knows(ctx context.Context, own cli.AgentSessionID) (bool, error)
	// ForkSession stores s as a new session, whose history is that of another session up to a given turn. It returns
	// ErrNoTurn if that turn has not ended or has no session.
	ForkSession(ctx context.Context, s Session, turn cli.TurnID) error
	// MoveSession moves a session to another conversation. The conversation where it was current has no current session
	// then. It returns ErrSessionInUse if the session belongs to a job or has undelivered turns, and ErrNoSession.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// History lists the last ended entries of a session in the order of their ends, including those that the session
	// was forked with.
	History(ctx context.Context, id SessionID, limit int) ([]Turn, error)
	// Turn returns ErrNoTurn for an unknown ID.
	Turn(ctx context.Context, id cli.TurnID) (Turn, error)
	// StepsOf is a method of StepStore.
	StepsOf(ctx context.Context, turn cli.TurnID) ([]Step, error)
	// GroupsOf lists the groups in which a user has written prompts.
	GroupsOf(ctx context.Context, user PersonID) ([]int64, error)
}

// Summary is a summary of a session up to a turn.
type Summary struct {
	Session SessionID
	Until   cli.TurnID // the last turn that it covers
	Text    string
}

// Sessions lets users manage sessions, apart from running turns. Package orchestrator/sessions implements it. Its
// methods return ErrElsewhere for sessions of another conversation, and ErrNotAllowed if a member tries to change or
// delete one.
type Sessions interface {
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	Session(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Scope returns the sessions that the agent of a turn can read. Only the turn of a listed user reads more than its
	// own conversation.
	Scope(ctx context.Context, t Turn) (SessionScope, error)
	// Seen returns a session of a scope by its ID, or by its name in the scope's conversation. For all others it returns
	// ErrNoSession.
	Seen(ctx context.Context, scope SessionScope, idOrName string) (Session, error)
	// Entry returns an entry of a session, or ErrNoTurn.
	Entry(ctx context.Context, in ConversationID, id cli.TurnID) (Turn, error)
	// Turns lists the last turns of a session, oldest first.
	Turns(ctx context.Context, in ConversationID, id SessionID, limit int) ([]Turn, error)
	// Resume makes a session the current one.
	Resume(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Own returns a session of a user, in any conversation. It returns ErrNoSession, or ErrElsewhere for a session of
	// another user.
	Own(ctx context.Context, by Press, id SessionID) (Session, error)
	// TakeOver makes a session of a user the current one here, and no longer the current one of its previous
	// conversation. It returns ErrSessionInUse while the session runs there or if it belongs to a job, ErrNoSession,
	// and ErrElsewhere for a session of another user.
	TakeOver(ctx context.Context, by Press, id SessionID) (Session, error)
	// Rename changes the title of a session, or returns ErrBadChoice for an empty one.
	Rename(ctx context.Context, by Press, id SessionID, title string) (Session, error)
	// Pin pins a session, so that it is listed before others, or unpins it.
	Pin(ctx context.Context, by Press, id SessionID) (Session, error)
	// Archive archives a session, or restores it.
	Archive(ctx context.Context, by Press, id SessionID) (Session, error)
	// Delete deletes a session with all its turns, or returns ErrSessionInUse.
	Delete(ctx context.Context, by Press, id SessionID) error
	// Fork creates a session with the history up to a turn and makes it the current one, or returns ErrNoTurn.
	Fork(ctx context.Context, in ConversationID, turn cli.TurnID) (Session, error)
	// Stored lists sessions in the agents' own files that belong to the conversation's directory and are unknown to
	// ductor, the newest first. It returns errors.ErrUnsupported if sessions have homes of their own.
	Stored(ctx context.Context, in ConversationID) ([]cli.StoredSession, error)
	// ResumeStored creates a session that continues one of the Stored ones with its agent, and makes it the current
	// one. It returns ErrNoSession if the stored session no longer exists.
	ResumeStored(ctx context.Context, by Press, agent cli.Agent, id cli.AgentSessionID) (Session, error)
	// Terminal returns the shell command that resumes the current session in a terminal, and the agent that it runs. It
	// closes the agent's open session of the conversation, so that the agent continues from the state of the terminal
	// at the next prompt here. It returns ErrNoSession before an agent has started one, and errors.ErrUnsupported for
	// an agent that cannot resume in a terminal.
	Terminal(ctx context.Context, by Press) (agent cli.Agent, line string, err error)
	// Export returns the prompts and answers of a session as Markdown.
	Export(ctx context.Context, in ConversationID, id SessionID) (string, error)
}
