package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ductor/cli"
)

// SessionID identifies a Session.
type SessionID string

// Session is a series of prompts and answers. Several agents may take part in it.
type Session struct {
	ID           SessionID
	Conversation ConversationID // the conversation to which the session belongs
	Person       PersonID       // the user who owns the session and may move it to another conversation; 0 for none
	// Title contains the first words of the first prompt with text, until the agent or a user changes it. It is empty
	// before that prompt.
	Title string
	// Dir is the directory of the first turn. All turns use it, because agents store their sessions by directory.
	Dir      string
	Created  time.Time
	Used     time.Time // when the last turn ended
	Totals   Totals
	Newest   int64 // number of the newest entry; 0 without entries
	Pinned   bool  // listed before sessions that are not pinned
	Archived bool  // listed only if a user asks for archived sessions
	// AgentSessions contains the records of the agent sessions that belong to this session. Each agent session exists
	// in only one environment.
	AgentSessions map[AgentEnv]AgentSession
}

// AgentSession is the record of an agent session: the session in which an agent itself stores its messages. An agent
// session belongs to a session of ductor. The record also contains which entries of ductor's session the agent has
// seen.
type AgentSession struct {
	ID cli.AgentSessionID
	// Told is the newest entry of this agent session whose prompt the agent accepted. Told is empty if there is none.
	Told cli.TurnID
	UpTo int64 // the agent has seen all entries with numbers up to UpTo, and the entry Told
	// If a prompt was sent, and the agent has not accepted the prompt yet, Offered is the number of the newest entry in
	// that prompt.
	Offered int64
	// Terminal is true if a user began the agent session in a terminal. The other agents have not seen what happened in
	// the terminal.
	Terminal bool
}

// Totals are sums over all entries of a session.
type Totals struct {
	Messages int
	CostUSD  float64
	Tokens   int64
}

// AgentEnv identifies an agent with one account, in one environment and one Lane. Each AgentEnv has an agent session of
// its own.
type AgentEnv struct {
	Agent   cli.Agent
	Account cli.Account
	Sandbox cli.Sandbox // empty means this host
	Lane    Lane
}

// LogInID identifies an account of an agent: "agent@account@sandbox". The name of the default account is empty, and so
// is the sandbox on this host. IDs from older versions of ductor contain only the agent. Such an ID stands for the
// account and environment that the conversation uses now.
type LogInID string

// LogInID returns the ID of the account that the agent uses.
func (e AgentEnv) LogInID() LogInID {
	return LogInID(string(e.Agent) + "@" + string(e.Account) + "@" + string(e.Sandbox))
}

// Env returns the agent, its account and its environment. It returns false if the ID contains only the agent.
func (id LogInID) Env() (AgentEnv, bool) {
	agent, rest, _ := strings.Cut(string(id), "@")
	account, sandbox, whole := strings.Cut(rest, "@")
	return AgentEnv{Agent: cli.Agent(agent), Account: cli.Account(account), Sandbox: cli.Sandbox(sandbox)}, whole
}

// Lane separates the agent sessions that one agent has in a session of ductor. A consultation or a Work does not use
// MainLane: the agent process that runs the turns has the agent session of MainLane open.
type Lane string

// Lane values.
const (
	MainLane  Lane = ""      // for turns
	AsideLane Lane = "aside" // for consultations and Works
)

// AgentEnv returns the AgentEnv in which the turn runs.
func (t Turn) AgentEnv() AgentEnv {
	of := AgentEnv{Agent: t.Agent, Account: t.Entry.Account, Sandbox: t.Sandbox}
	if t.Entry.Kind != TurnEntry {
		of.Lane = AsideLane
	}
	return of
}

// Agents returns the agents of a session, given its last entries in order. The agent that answered last comes first.
// Agents that have only a session of their own, for example from a terminal, come at the end. Questions outside of turns
// do not count.
func (s Session) Agents(entries []Turn) (agents []cli.Agent) {
	add := func(agent cli.Agent) {
		if agent != "" && !slices.Contains(agents, agent) {
			agents = append(agents, agent)
		}
	}
	for _, t := range slices.Backward(entries) {
		if t.Entry.Kind == TurnEntry && t.Outcome.Text != "" {
			add(t.Agent)
		}
	}
	var others []cli.Agent
	for of := range s.AgentSessions {
		if of.Lane == MainLane {
			others = append(others, of.Agent)
		}
	}
	slices.Sort(others)
	for _, agent := range others {
		add(agent)
	}
	return agents
}

// LastChosen returns the AgentEnv of the newest turn that the agent of the conversation answered, given the last entries
// of a session in order. Turns with another agent do not count: a prompt that named its agent, and a turn in which a
// substitute ran. LastChosen returns the zero AgentEnv if no turn counts.
func LastChosen(entries []Turn) AgentEnv {
	turns := make(map[cli.TurnID]Turn, len(entries))
	for _, t := range entries {
		turns[t.ID] = t
	}
	for _, t := range slices.Backward(entries) {
		// A turn that repeats the prompt with another agent names that agent, although its prompt does not.
		first := t
		for before, ok := turns[first.Again]; ok; before, ok = turns[first.Again] {
			first = before
		}
		if t.Entry.Kind == TurnEntry && t.Outcome.Text != "" && t.Outcome.Recovery.Replaced == "" &&
			first.Wants.Agent == "" {
			return t.AgentEnv()
		}
	}
	return AgentEnv{}
}

// OnlyAgent returns the AgentEnv of the one agent that has a session of its own for turns of this session, for example
// from a terminal. It returns the zero AgentEnv if no agent or several agents have one.
func (s Session) OnlyAgent() (only AgentEnv) {
	for of := range s.AgentSessions {
		switch {
		case of.Lane != MainLane:
		case only.Agent != "":
			return AgentEnv{}
		default:
			only = of
		}
	}
	return only
}

// MostSessionName limits the characters of a session's name.
const MostSessionName = 128

// CheckSessionName returns an error if users must not give this name to a session. The error message does not contain
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

// SessionNames finds sessions by their names. internal/store implements it.
type SessionNames interface {
	// Session loads a session by its ID. The error is ErrNoSession if the ID is unknown.
	Session(ctx context.Context, id SessionID) (Session, error)
	// OwnSession returns the session with this name in a conversation, or "".
	OwnSession(ctx context.Context, in ConversationID, name string) (SessionID, error)
}

// FindSession returns the session of a conversation with the given ID or, if there is none, with the given name. For
// sessions of other conversations it returns ErrNoSession, so that callers cannot find out whether these sessions
// exist.
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

// ContextReport reports how full the context window of an agent is.
type ContextReport struct {
	Agent   cli.Agent
	Model   cli.ModelID
	Session Session  // zero before the first turn
	Fill    cli.Fill // zero if the agent has not reported it
}

// FoundSession is a search result: a session that contains the words of the query.
type FoundSession struct {
	Session Session
	Turn    cli.TurnID // the turn that contains the words of the query; empty if only the title contains them
	Excerpt string     // the line that contains the words of the query
}

// SessionQuery searches for sessions of a conversation.
type SessionQuery struct {
	Conversation  ConversationID
	Scope         SessionScope // if Scope.Conversation is set, Scope selects the sessions, and Conversation is ignored
	Elsewhere     PersonID     // if not 0, the search is for this user's sessions in all other conversations
	ID            SessionID    // only this session, archived or not; empty for all
	Dir           string       // only sessions of this directory; empty for all
	Words         string       // words in the title or the text; empty for all sessions
	Archived      bool         // true selects only archived sessions; false selects only sessions that are not archived
	Offset, Limit int
}

// SessionUse is a reason why a session cannot be deleted.
type SessionUse int

// SessionUse values. If there are several reasons, the first one counts.
const (
	UsedByNextPrompt SessionUse = iota + 1 // the session is the current session of its conversation
	UsedByJob                              // the session belongs to a job
	UsedByTurn                             // the session has turns that the chat does not show yet
	UsedByFork                             // another session is a fork of the session
)

// SessionInUse is the error if a session cannot be deleted. It wraps ErrSessionInUse and contains the reason.
type SessionInUse struct {
	Why  SessionUse
	Here bool   // the fork belongs to the same conversation
	Fork string // title of the fork
}

func (e *SessionInUse) Error() string { return ErrSessionInUse.Error() }

// Unwrap returns ErrSessionInUse.
func (e *SessionInUse) Unwrap() error { return ErrSessionInUse }

// SessionStore stores sessions for users. internal/store implements it.
type SessionStore interface {
	SessionNames
	// FindSessions lists sessions: first pinned ones, then the most recently used. It also reports whether it left out
	// sessions because of the limit.
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	// SaveSession stores the title of a session and whether it is pinned or archived, or returns ErrNoSession.
	SaveSession(ctx context.Context, s Session) error
	// TouchSession: see Store.
	TouchSession(ctx context.Context, id SessionID, at time.Time) error
	// DeleteSession deletes a session with all its turns. It returns a *SessionInUse if the session is in use, and
	// ErrNoSession for an unknown ID.
	DeleteSession(ctx context.Context, id SessionID) error
	// CheckUnused returns a *SessionInUse if DeleteSession would.
	CheckUnused(ctx context.Context, id SessionID) error
	// Knows reports whether an agent session with this ID belongs to a session of ductor.
	Knows(ctx context.Context, own cli.AgentSessionID) (bool, error)
	// ForkSession stores s as a new session whose history is a copy of another session's history, up to and including a
	// turn. It returns ErrNoTurn if that turn has not ended or has no session.
	ForkSession(ctx context.Context, s Session, turn cli.TurnID) error
	// MoveSession moves a session to another conversation. If it was the current session of its old conversation, that
	// conversation then has no current session. MoveSession returns ErrSessionInUse if the session belongs to a job, or
	// if it has turns that the chat does not show yet. It returns ErrNoSession for an unknown ID.
	MoveSession(ctx context.Context, id SessionID, to ConversationID) error
	// History lists the last entries of a session that have ended, in the order in which they ended. If the session is
	// a fork, entries from before the fork are in the list, too.
	History(ctx context.Context, id SessionID, limit int) ([]Turn, error)
	// Turn returns a turn, or ErrNoTurn for an unknown ID.
	Turn(ctx context.Context, id cli.TurnID) (Turn, error)
	// StepsOf: see StepStore.
	StepsOf(ctx context.Context, turn cli.TurnID) ([]Step, error)
	// GroupsOf lists the groups in which a user has sent prompts.
	GroupsOf(ctx context.Context, user PersonID) ([]int64, error)
}

// Summary is a summary of a session up to a turn.
type Summary struct {
	Session SessionID
	Until   cli.TurnID // the last turn that the summary includes
	Text    string
}

// Sessions lets users manage their sessions. Its methods return ErrElsewhere for a session of another conversation, and
// ErrNotAllowed if a group member tries to change or delete a session. Package orchestrator/sessions implements it.
type Sessions interface {
	FindSessions(ctx context.Context, q SessionQuery) (found []FoundSession, more bool, err error)
	Session(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Scope returns the sessions that the agent of a turn can read. Only turns of listed users can read sessions of
	// other conversations.
	Scope(ctx context.Context, t Turn) (SessionScope, error)
	// Seen returns the session with the given ID, if scope includes the session. A session of the scope's own
	// conversation can also be given by its name. For other sessions Seen returns ErrNoSession.
	Seen(ctx context.Context, scope SessionScope, idOrName string) (Session, error)
	// Entry returns an entry of a session, or ErrNoTurn.
	Entry(ctx context.Context, in ConversationID, id cli.TurnID) (Turn, error)
	// Turns lists the last turns of a session, oldest first.
	Turns(ctx context.Context, in ConversationID, id SessionID, limit int) ([]Turn, error)
	// Resume makes a session the current session of the conversation.
	Resume(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Continue is like Resume, and also makes the agent that answered last in the session (see LastChosen) and its
	// account those of the conversation. It changes neither if the conversation can't use them.
	Continue(ctx context.Context, in ConversationID, id SessionID) (Session, error)
	// Own returns a session that belongs to the user who pressed, from any conversation. It returns ErrElsewhere for a
	// session of another user, and ErrNoSession for an unknown ID.
	Own(ctx context.Context, by Press, id SessionID) (Session, error)
	// TakeOver moves a session of the user to the conversation in which the user pressed the button, and continues it
	// there; see Continue. It returns ErrElsewhere for a session of another user, ErrSessionInUse if the session has
	// a running turn or belongs to a job, and ErrNoSession for an unknown ID.
	TakeOver(ctx context.Context, by Press, id SessionID) (Session, error)
	// Rename changes the title of a session, or returns ErrBadChoice for an empty title.
	Rename(ctx context.Context, by Press, id SessionID, title string) (Session, error)
	// Pin pins a session, or unpins it if it was pinned. Lists show pinned sessions first.
	Pin(ctx context.Context, by Press, id SessionID) (Session, error)
	// Archive archives a session, or restores it if it was archived.
	Archive(ctx context.Context, by Press, id SessionID) (Session, error)
	// Deletable returns a session that Delete can delete, or the error that Delete would return.
	Deletable(ctx context.Context, by Press, id SessionID) (Session, error)
	// Delete deletes a session with all its turns, or returns a *SessionInUse.
	Delete(ctx context.Context, by Press, id SessionID) error
	// Fork creates a session with a copy of the history up to a turn, and makes it the current session. It may return
	// ErrNoTurn.
	Fork(ctx context.Context, in ConversationID, turn cli.TurnID) (Session, error)
	// Stored lists sessions that the agents themselves have stored for the conversation's directory, and that ductor's
	// store does not contain. The newest is first. If agents run in a sandbox with a separate home directory for each
	// session, Stored returns errors.ErrUnsupported.
	Stored(ctx context.Context, in ConversationID) ([]cli.StoredSession, error)
	// ResumeStored creates a session that continues one of the sessions that Stored lists, and makes it the current
	// session. It returns ErrNoSession if that session no longer exists.
	ResumeStored(ctx context.Context, by Press, agent cli.Agent, id cli.AgentSessionID) (Session, error)
	// Terminal returns a shell command that continues the current session in a terminal, and the agent of that session.
	// Terminal closes the agent's process, so that the terminal can use the session. The next prompt in the chat
	// continues from the state that the terminal left. Terminal returns ErrNoSession if no agent has started a session,
	// and errors.ErrUnsupported if the agent cannot continue a session in a terminal.
	Terminal(ctx context.Context, by Press) (agent cli.Agent, line string, err error)
	// Export returns the prompts and answers of a session as Markdown.
	Export(ctx context.Context, in ConversationID, id SessionID) (string, error)
}
