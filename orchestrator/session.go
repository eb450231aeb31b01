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

// SessionID identifies a Session.
type SessionID string

// Session is a line of work with a history. Several agents may take part in it.
type Session struct {
	ID           SessionID
	Conversation ConversationID // the conversation of the session
	Person       PersonID       // the owner, who may move the session to another conversation; 0 for none
	Title        string         // first words of the first prompt, until the user renames it
	Dir          string         // directory of the first turn; agents find their sessions by directory
	Created      time.Time
	Used         time.Time // end of the last turn
	Totals       Totals
	Newest       int64 // number of the last entry; 0 if there is none
	Pinned       bool  // listed before other sessions
	Archived     bool  // listed only if a user asks for archived sessions
	// AgentSessions holds the session of each agent in each environment. An agent's session exists only in its own
	// environment.
	AgentSessions map[AgentEnv]AgentSession
}

// AgentSession is an agent's own part of a session. It records which entries of the session the agent has received; see
// handoff.Knowledge.
type AgentSession struct {
	ID   cli.AgentSessionID // ID of the agent's own session
	Told cli.TurnID         // the agent's last own entry whose prompt it accepted; empty for none
	UpTo int64              // number of the last entry that the agent received with an accepted prompt
	// Offered is the number of the last entry in a prompt that the agent has not confirmed.
	Offered int64
	// Terminal means that the session began in a terminal. Only this agent knows that part of the session.
	Terminal bool
}

// Totals are sums over the entries of a session.
type Totals struct {
	Messages int
	CostUSD  float64
	Tokens   int64
}

// AgentEnv identifies an agent with one account, in one environment and one lane. Each AgentEnv has an agent session of
// its own.
type AgentEnv struct {
	Agent   cli.Agent
	Account cli.Account
	Sandbox cli.Sandbox // empty means this host
	Lane    Lane
}

// LogInID names a log-in in buttons and in the store: "agent@account@sandbox", with empty names for the default account
// and for this host. Older versions stored only the agent. That means the account and the environment that the
// conversation uses now.
type LogInID string

// LogInID returns the ID of the log-in that the agent uses.
func (e AgentEnv) LogInID() LogInID {
	return LogInID(string(e.Agent) + "@" + string(e.Account) + "@" + string(e.Sandbox))
}

// Env returns the agent, its account and its environment. It returns false if the ID contains only the agent.
func (id LogInID) Env() (AgentEnv, bool) {
	agent, rest, _ := strings.Cut(string(id), "@")
	account, sandbox, whole := strings.Cut(rest, "@")
	return AgentEnv{Agent: cli.Agent(agent), Account: cli.Account(account), Sandbox: cli.Sandbox(sandbox)}, whole
}

// Lane is a series of prompts to an agent in a session. Questions outside of turns have a lane of their own, because
// the process that runs the conversation's turns keeps the agent's session open.
type Lane string

// The lanes.
const (
	MainLane  Lane = "" // turns of the conversation
	AsideLane Lane = "aside"
)

// AgentEnv identifies the agent session in which the turn runs. Turns and questions outside of turns use different
// agent sessions.
func (t Turn) AgentEnv() AgentEnv {
	of := AgentEnv{Agent: t.Agent, Account: t.Entry.Account, Sandbox: t.Sandbox}
	if t.Entry.Kind != TurnEntry {
		of.Lane = AsideLane
	}
	return of
}

// MostSessionName limits the characters of a session's name.
const MostSessionName = 128

// CheckSessionName returns an error if callers must not use name as the name or ID of a session. The error does not
// quote the name.
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
	// OwnSession returns the session with a name in a conversation, or "".
	OwnSession(ctx context.Context, in ConversationID, name string) (SessionID, error)
}

// FindSession returns the session of a conversation with this ID, or else with this name. It also returns ErrNoSession
// for sessions of other conversations, so that callers cannot detect them.
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

// FoundSession is a search result: a session and its newest turn that contains the search words.
type FoundSession struct {
	Session Session
	Turn    cli.TurnID // empty if only the title contains the words
	Excerpt string     // the matching line
}

// SessionQuery searches for sessions of a conversation.
type SessionQuery struct {
	Conversation  ConversationID
	Scope         SessionScope // if it has a conversation, search this scope instead of the conversation
	Elsewhere     PersonID     // if not 0, search this user's sessions in all other conversations instead
	ID            SessionID    // only this session, archived or not; empty for all
	Dir           string       // only sessions of this directory; empty for all
	Words         string       // words in the title or the text; empty for all sessions
	Archived      bool         // only archived sessions, instead of all others
	Offset, Limit int
}

// SessionStore stores sessions for users. internal/store implements it.
type SessionStore interface {
	SessionNames
	// FindSessions lists sessions: pinned sessions first, then the most recently used. more reports whether the limit
	// cut the list.
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	// SaveSession stores the title of a session and whether it is pinned or archived, or returns ErrNoSession.
	SaveSession(ctx context.Context, s Session) error
	// DeleteSession deletes a session with all its turns. It returns ErrSessionInUse if the session is current in a
	// conversation, belongs to a job, has undelivered turns, or was forked. It returns ErrNoSession if the session does
	// not exist.
	DeleteSession(ctx context.Context, id SessionID) error
	// Knows reports whether an agent's own session ID belongs to a session that ductor started or continues.
	Knows(ctx context.Context, own cli.AgentSessionID) (bool, error)
	// ForkSession stores s as a new session. The history of s is the history of another session up to and including a
	// given turn. ForkSession returns ErrNoTurn if that turn has not ended or has no session.
	ForkSession(ctx context.Context, s Session, turn cli.TurnID) error
	// MoveSession moves a session to another conversation. If the session was current in its old conversation, that
	// conversation then has no current session. It returns ErrSessionInUse if the session belongs to a job or has
	// undelivered turns, and ErrNoSession for an unknown ID.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// History lists the last ended entries of a session, in the order in which they ended. It includes entries from
	// before a fork.
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
	Until   cli.TurnID // the last turn that the summary covers
	Text    string
}

// Sessions lets users manage sessions. It does not run turns. Its methods return ErrElsewhere for sessions of another
// conversation, and ErrNotAllowed if a member tries to change or delete a session. Package orchestrator/sessions
// implements it.
type Sessions interface {
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	Session(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Scope returns the sessions that the agent of a turn can read. Only turns of listed users can read sessions of
	// other conversations.
	Scope(ctx context.Context, t Turn) (SessionScope, error)
	// Seen returns a session of a scope by its ID, or by its name in the scope's conversation. It returns ErrNoSession
	// for sessions outside of the scope.
	Seen(ctx context.Context, scope SessionScope, idOrName string) (Session, error)
	// Entry returns an entry of a session, or ErrNoTurn.
	Entry(ctx context.Context, in ConversationID, id cli.TurnID) (Turn, error)
	// Turns lists the last turns of a session, oldest first.
	Turns(ctx context.Context, in ConversationID, id SessionID, limit int) ([]Turn, error)
	// Resume makes a session the current session of the conversation.
	Resume(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Own returns a session of a user, in any conversation. It returns ErrElsewhere for a session of another user, and
	// ErrNoSession for an unknown ID.
	Own(ctx context.Context, by Press, id SessionID) (Session, error)
	// TakeOver moves a session of a user to this conversation and makes it the current session. It returns
	// ErrSessionInUse if the session is running or belongs to a job, ErrElsewhere for a session of another user, and
	// ErrNoSession for an unknown ID.
	TakeOver(ctx context.Context, by Press, id SessionID) (Session, error)
	// Rename changes the title of a session, or returns ErrBadChoice for an empty title.
	Rename(ctx context.Context, by Press, id SessionID, title string) (Session, error)
	// Pin pins a session, or unpins a pinned session. Pinned sessions are listed first.
	Pin(ctx context.Context, by Press, id SessionID) (Session, error)
	// Archive archives a session, or restores an archived session.
	Archive(ctx context.Context, by Press, id SessionID) (Session, error)
	// Delete deletes a session with all its turns, or returns ErrSessionInUse.
	Delete(ctx context.Context, by Press, id SessionID) error
	// Fork creates a session with the history up to a turn and makes it the current session, or returns ErrNoTurn.
	Fork(ctx context.Context, in ConversationID, turn cli.TurnID) (Session, error)
	// Stored lists the sessions in the agents' own files that belong to the conversation's directory and that ductor
	// does not know, newest first. It returns errors.ErrUnsupported if sessions have their own homes.
	Stored(ctx context.Context, in ConversationID) ([]cli.StoredSession, error)
	// ResumeStored creates a session that continues a Stored session with its agent, and makes it the current session.
	// It returns ErrNoSession if the stored session no longer exists.
	ResumeStored(ctx context.Context, by Press, agent cli.Agent, id cli.AgentSessionID) (Session, error)
	// Terminal returns the shell command that resumes the current session in a terminal, and the agent of that session.
	// It closes the agent's open process. At the next prompt in the chat, the agent continues from the state that the
	// terminal left. Terminal returns ErrNoSession if no agent has started a session, and errors.ErrUnsupported for an
	// agent that cannot resume in a terminal.
	Terminal(ctx context.Context, by Press) (agent cli.Agent, line string, err error)
	// Export returns the prompts and answers of a session as Markdown.
	Export(ctx context.Context, in ConversationID, id SessionID) (string, error)
}
