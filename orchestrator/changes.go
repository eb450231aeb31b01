package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
)

// Changed is what a turn changed in the files of its repository. The zero value: nothing, or nothing that is known.
type Changed struct {
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	NoUndo  NoUndo `json:"no_undo,omitempty"` // why it cannot be undone; empty if it can
	Ignored bool   `json:"ignored,omitempty"` // there are ignored files, which an undo leaves as they are
	// With is the conversation of the turn that wrote at the same time, of NoUndoShared.
	With ConversationID `json:"with,omitzero"`
}

// NoUndo says why what a turn changed cannot be undone.
type NoUndo string

// Why it cannot.
const (
	NoUndoLate   NoUndo = "late"   // the snapshot took longer than the agent needed to its first write
	NoUndoShared NoUndo = "shared" // another turn wrote in the same repository at the same time
	NoUndoLarge  NoUndo = "large"  // what is in no commit is too large
	NoUndoFailed NoUndo = "failed" // the snapshot could not be made
)

// Snapshots has the files of turns looked at before agents change them. Package orchestrator/changes implements it.
type Snapshots interface {
	// Watch begins to look at the files of a turn whose agent is about to get its prompt, beside it. For a turn that goes on it looks for
	// what the previous process saw. End or Leave ends it.
	Watch(t Turn, dir string, goesOn bool) TurnWatch
	// Hold waits until the files of a turn have been looked at, for as long as a write may wait for that. What was asked is allowed then.
	Hold(ctx context.Context, turn cli.TurnID, id cli.ApprovalID)
	// Looked reports whether Hold need not wait.
	Looked(turn cli.TurnID) bool
}

// TurnWatch sees what one turn changes.
type TurnWatch interface {
	// Take gets every event of the turn. It waits for nothing.
	Take(ev cli.Event)
	// End says that the turn has ended with all it started. The function that it returns says what the turn changed; nil if the turn
	// did nothing that could change a file.
	End() func(ctx context.Context) Changed
	// Leave is End for a turn that goes on without ductor.
	Leave()
}

// Snapshot is one of the files of repositories: the one that a directory is in, and those within.
type Snapshot struct {
	Trees []SnapshotTree
}

// SnapshotTree is a repository as it was before and after.
type SnapshotTree struct{ Dir, Before, After string }

// TurnChanges is what is kept of a turn that changed files, or of a checkpoint, of which Before and After are the same.
type TurnChanges struct {
	ID           string // of the turn or the checkpoint
	Conversation ConversationID
	Session      SessionID
	Title        string // the name of a checkpoint, or the first words of the prompt
	At           time.Time
	Sandbox      cli.Sandbox
	Checkpoint   bool
	Undone       bool
	Commit       string // that has the changes; empty for none
	Snapshot
	Changed
}

// ChangeStore keeps what turns changed. internal/store implements it.
type ChangeStore interface {
	// SaveChanges stores c in place of what has its id.
	SaveChanges(ctx context.Context, c TurnChanges) error
	// ChangesOf gives what a turn changed, or a checkpoint; ErrNoChanges.
	ChangesOf(ctx context.Context, id string) (TurnChanges, error)
	// ListChanges lists what is kept of a session and the checkpoints of its conversation, newest first.
	ListChanges(ctx context.Context, in ConversationID, session SessionID, limit int) ([]TurnChanges, error)
	// OldChanges lists what was stored before a moment, oldest first.
	OldChanges(ctx context.Context, before time.Time, limit int) ([]TurnChanges, error)
	DeleteChanges(ctx context.Context, id string) error
}

// Errors of what users do with changes.
var (
	ErrNoChanges   = errors.New("nothing is kept of these changes")
	ErrUndone      = errors.New("this was undone before")
	ErrNotUndone   = errors.New("this is not undone")
	ErrTurnRuns    = errors.New("a turn changes these files now") // of a TurnWrites
	ErrCommitted   = errors.New("these changes are committed already")
	ErrNoIdentity  = errors.New("Git does not know the name of its user")
	ErrMerging     = errors.New("a merge or a rebase is under way")
	ErrGitFilter   = errors.New("Git changes these files when it stores them")
	ErrInTheWay    = errors.New("ignored files are in the way")
	ErrDiffTooLong = errors.New("the diff is too long")
)

// TurnWrites says in which conversation a turn runs that changes files.
type TurnWrites struct{ In ConversationID }

func (e *TurnWrites) Error() string { return ErrTurnRuns.Error() }
func (e *TurnWrites) Unwrap() error { return ErrTurnRuns }

// ChangedSince says that files are neither as a turn found them nor as it left them.
type ChangedSince struct{ Paths []string }

func (e *ChangedSince) Error() string {
	return fmt.Errorf("%d files changed since", len(e.Paths)).Error()
}

// DiffSince says which state ductor compares files with.
type DiffSince string

// The states.
const (
	SinceTurn    DiffSince = "turn" // as the last turn of the conversation that changed files found them
	SinceSession DiffSince = "session"
	SinceCommit  DiffSince = "commit"
)

// ReturnTo says to which side of a turn files return. Those of a checkpoint are the same on both.
type ReturnTo string

// The sides.
const (
	BeforeTurn ReturnTo = "before"
	AfterTurn  ReturnTo = "after"
)

// FileChanges is what users do with what turns changed. Package orchestrator/changes implements it. Changes of another conversation give
// ErrElsewhere, ErrNotAllowed for a member who would change files.
type FileChanges interface {
	// Undo has the files that a turn changed be as it found them. ErrUndone, ErrTurnRuns, ErrInTheWay, *ChangedSince.
	Undo(ctx context.Context, by Press, turn cli.TurnID) (TurnChanges, error)
	// Redo has them be as the turn left them. ErrNotUndone, and the errors of Undo.
	Redo(ctx context.Context, by Press, turn cli.TurnID) (TurnChanges, error)
	// Commit commits what a turn changed and nothing else. ErrCommitted, ErrUndone, ErrNoIdentity, ErrMerging, ErrGitFilter, and the errors of Undo.
	Commit(ctx context.Context, by Press, turn cli.TurnID, message string) (TurnChanges, error)
	// Changes gives what a turn changed, or a checkpoint.
	Changes(ctx context.Context, in ConversationID, id string) (TurnChanges, error)
	// Diff is what a turn changed, in unified form. ErrDiffTooLong.
	Diff(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
	// DiffSince is what differs now in the directory of a conversation, in a path of it or in all. ErrNoRepository, ErrNoChanges, ErrDiffTooLong.
	DiffSince(ctx context.Context, in ConversationID, since DiffSince, path string) (string, error)
	// Checkpoint remembers all files as they are. ErrNoRepository.
	Checkpoint(ctx context.Context, by Press, name string) (TurnChanges, error)
	// Checkpoints lists the checkpoints of a conversation and the turns of its session that changed files, newest first.
	Checkpoints(ctx context.Context, in ConversationID) ([]TurnChanges, error)
	// SessionChanges lists what is kept of one session of a conversation, its turns and the checkpoints made in it, newest first.
	SessionChanges(ctx context.Context, in ConversationID, session SessionID) ([]TurnChanges, error)
	// Return has all files be as a turn found or left them, or as they were at a checkpoint, and remembers how they were before that in a checkpoint.
	Return(ctx context.Context, by Press, id string, side ReturnTo) (to, before TurnChanges, err error)
}
