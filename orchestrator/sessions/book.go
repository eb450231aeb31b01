// Package sessions lets users manage sessions. Users can find, rename, pin, archive, fork, export and delete them, and
// move them from and to a terminal. The package also decides when a session ends, and which title it has.
//
// The package does NOT run turns and does not send messages.
package sessions

import (
	"context"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Engine runs the turns of conversations. *conversation.Engine implements it.
type Engine interface {
	// Resume makes a session the current session of its conversation. If as is not zero and the conversation can use
	// its agent and account, Resume also makes them the agent and the account of the conversation.
	Resume(ctx context.Context, s orchestrator.Session, as orchestrator.AgentEnv) error
	// Begin stores a new session with one agent session, and makes it the current session of its conversation. It also
	// makes the agent and the account of the agent session those of the conversation.
	Begin(ctx context.Context, s orchestrator.Session) error
	// Move moves a session to another conversation. It returns ErrSessionInUse while a turn of the session runs.
	Move(ctx context.Context, s orchestrator.Session, to orchestrator.ConversationID) error
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
	// Directory returns the absolute path of a directory. If sessions must not work there, it returns ErrOutsideRoot or
	// ErrNotADir.
	Directory(path string) (string, error)
}

// Agents contains the methods of service.Service that a Book needs.
type Agents interface {
	StoredSessions(ctx context.Context, in cli.Sandbox, of cli.Accounts, dir string) ([]cli.StoredSession, error)
	ResumeCommand(ctx context.Context, agent cli.Agent, req cli.Request) (string, error)
	Release(conversation cli.Conversation)
}

// Options configures a Book. All fields except Seen are required.
type Options struct {
	Store  orchestrator.SessionStore
	Now    func() time.Time
	NewID  func() string
	Access Access
	// Seen returns the directory of an agent's session that ran in a terminal, if a hook of ductor reported the
	// session. Otherwise it returns "". Seen may be nil.
	Seen func(ctx context.Context, agent cli.Agent, id cli.AgentSessionID) (string, error)
}

// Book implements orchestrator.Sessions. It is safe for concurrent use once Attach has returned.
type Book struct {
	opts   Options
	engine Engine
	agents Agents
}

// New creates a Book. The caller must call Attach before using it.
func New(o Options) *Book { return &Book{opts: o} }

// Attach sets the components that are constructed after the Book.
func (b *Book) Attach(engine Engine, agents Agents) { b.engine, b.agents = engine, agents }

var _ orchestrator.Sessions = (*Book)(nil)

const titleMax = 200

// FindSessions implements orchestrator.Sessions.
func (b *Book) FindSessions(ctx context.Context, q orchestrator.SessionQuery) (found []orchestrator.FoundSession,
	more bool, err error) {
	return b.opts.Store.FindSessions(ctx, q)
}

// Session returns a session of a conversation. It may return ErrNoSession or ErrElsewhere.
func (b *Book) Session(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.SessionID) (orchestrator.Session, error) {
	s, err := b.opts.Store.Session(ctx, id)
	if err == nil && s.Conversation != in {
		err = orchestrator.ErrElsewhere
	}
	return s, err
}

// Entry implements orchestrator.Sessions.
func (b *Book) Entry(ctx context.Context, in orchestrator.ConversationID, id cli.TurnID) (orchestrator.Turn, error) {
	t, err := b.opts.Store.Turn(ctx, id)
	if err == nil {
		_, err = b.Session(ctx, in, t.Session)
	}
	if err != nil {
		return orchestrator.Turn{}, err
	}
	return t, nil
}

// Turns implements orchestrator.Sessions.
func (b *Book) Turns(ctx context.Context, in orchestrator.ConversationID, id orchestrator.SessionID,
	limit int) ([]orchestrator.Turn, error) {
	if _, err := b.Session(ctx, in, id); err != nil {
		return nil, err
	}
	return b.opts.Store.History(ctx, id, limit)
}

// Resume implements orchestrator.Sessions. It restores an archived session.
func (b *Book) Resume(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.SessionID) (orchestrator.Session, error) {
	s, err := b.Session(ctx, in, id)
	if err != nil {
		return s, err
	}
	return b.resume(ctx, s, orchestrator.AgentEnv{})
}

func (b *Book) resume(ctx context.Context, s orchestrator.Session, as orchestrator.AgentEnv) (orchestrator.Session,
	error) {
	// Mark the session as used. Otherwise the policy for idle sessions could end it at the next turn.
	if err := b.opts.Store.TouchSession(ctx, s.ID, b.opts.Now()); err != nil {
		return s, err
	}
	s.Archived = false
	return s, b.engine.Resume(ctx, s, as)
}

// lastEntries is the number of entries in which Continue searches for the last answer.
const lastEntries = 200

// Continue implements orchestrator.Sessions.
func (b *Book) Continue(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.SessionID) (orchestrator.Session, error) {
	s, err := b.Session(ctx, in, id)
	if err != nil {
		return s, err
	}
	var as orchestrator.AgentEnv
	// Ignore an error, because the session can continue with the agent of the conversation, too.
	if entries, err := b.opts.Store.History(ctx, id, lastEntries); err == nil {
		as = orchestrator.LastChosen(entries)
	}
	if as.Agent == "" {
		as = s.OnlyAgent()
	}
	return b.resume(ctx, s, as)
}

// restored restores a session if it is archived. touch is the store's TouchSession.
func restored(ctx context.Context, touch func(context.Context, orchestrator.SessionID, time.Time) error,
	s orchestrator.Session, used time.Time) (orchestrator.Session, error) {
	if !s.Archived {
		return s, nil
	}
	s.Archived = false
	return s, touch(ctx, s.ID, used)
}

// Own implements orchestrator.Sessions.
func (b *Book) Own(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) (orchestrator.Session,
	error) {
	s, err := b.opts.Store.Session(ctx, id)
	if err == nil && (s.Person == 0 || s.Person != by.Person || !by.May(orchestrator.ChangeSessions)) {
		err = orchestrator.ErrElsewhere
	}
	return s, err
}

// TakeOver implements orchestrator.Sessions.
func (b *Book) TakeOver(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) (orchestrator.Session,
	error) {
	s, err := b.Own(ctx, by, id)
	if err != nil {
		return s, err
	}
	if s.Conversation != by.Conversation {
		if err := b.engine.Move(ctx, s, by.Conversation); err != nil {
			return s, err
		}
	}
	return b.Continue(ctx, by.Conversation, id)
}

// Rename implements orchestrator.Sessions.
func (b *Book) Rename(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID,
	title string) (orchestrator.Session, error) {
	title = cli.Shorten(strings.Join(strings.Fields(title), " "), titleMax)
	if title == "" {
		return orchestrator.Session{}, orchestrator.ErrBadChoice
	}
	return b.change(ctx, by, id, func(s *orchestrator.Session) { s.Title = title })
}

// Pin implements orchestrator.Sessions.
func (b *Book) Pin(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) (orchestrator.Session,
	error) {
	return b.change(ctx, by, id, func(s *orchestrator.Session) { s.Pinned = !s.Pinned })
}

// Archive implements orchestrator.Sessions.
func (b *Book) Archive(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) (orchestrator.Session,
	error) {
	return b.change(ctx, by, id, func(s *orchestrator.Session) { s.Archived = !s.Archived })
}

func (b *Book) change(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID,
	f func(*orchestrator.Session)) (orchestrator.Session, error) {
	if !by.May(orchestrator.ChangeSessions) {
		return orchestrator.Session{}, orchestrator.ErrNotAllowed
	}
	s, err := b.Session(ctx, by.Conversation, id)
	if err != nil {
		return s, err
	}
	f(&s)
	return s, b.opts.Store.SaveSession(ctx, s)
}

// Deletable implements orchestrator.Sessions.
func (b *Book) Deletable(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) (orchestrator.Session,
	error) {
	if !by.May(orchestrator.ChangeSessions) {
		return orchestrator.Session{}, orchestrator.ErrNotAllowed
	}
	s, err := b.Session(ctx, by.Conversation, id)
	if err == nil {
		err = b.opts.Store.CheckUnused(ctx, id)
	}
	return s, err
}

// Delete implements orchestrator.Sessions.
func (b *Book) Delete(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) error {
	if _, err := b.Deletable(ctx, by, id); err != nil {
		return err
	}
	return b.opts.Store.DeleteSession(ctx, id)
}

// Fork implements orchestrator.Sessions. In the new session, agents get the earlier turns as history.
func (b *Book) Fork(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (orchestrator.Session,
	error) {
	t, err := b.opts.Store.Turn(ctx, turn)
	if err != nil {
		return orchestrator.Session{}, err
	}
	from, err := b.Session(ctx, in, t.Session)
	if err != nil {
		return from, err
	}
	title := from.Title
	if title != "" {
		title = cli.Shorten("⑂ "+title, titleMax)
	}
	now := b.opts.Now()
	fork := orchestrator.Session{
		ID: orchestrator.SessionID(b.opts.NewID()), Conversation: in, Person: from.Person,
		Title: title, Dir: from.Dir,
		Created: now, Used: now, AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{},
	}
	if err := b.opts.Store.ForkSession(ctx, fork, turn); err != nil {
		return orchestrator.Session{}, err
	}
	if fork, err = b.opts.Store.Session(ctx, fork.ID); err != nil { // with its totals
		return fork, err
	}
	return fork, b.engine.Resume(ctx, fork, orchestrator.AgentEnv{})
}

// Export implements orchestrator.Sessions.
func (b *Book) Export(ctx context.Context, in orchestrator.ConversationID, id orchestrator.SessionID) (string, error) {
	s, err := b.Session(ctx, in, id)
	if err != nil {
		return "", err
	}
	turns, err := b.opts.Store.History(ctx, id, exportedTurns)
	if err != nil {
		return "", err
	}
	return b.exportMarkdown(ctx, s, turns)
}
