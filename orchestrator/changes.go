package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
)

// Changed summarizes how a turn changed the files of its repository. The zero value means that ductor does not know.
type Changed struct {
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	NoUndo  NoUndo `json:"no_undo,omitempty"` // why a user cannot undo the changes; empty if undo is possible
	Ignored bool   `json:"ignored,omitempty"` // the repository contains ignored files, which an undo does not restore
	// If NoUndo is NoUndoShared, With is the conversation of the turn that wrote at the same time.
	With ConversationID `json:"with,omitzero"`
}

// NoUndo is the reason why a user cannot undo the changes of a turn.
type NoUndo string

// Values of type NoUndo.
const (
	NoUndoLate   NoUndo = "late"   // the snapshot was not ready before the agent's first write
	NoUndoShared NoUndo = "shared" // another turn wrote in the same repository at the same time
	NoUndoLarge  NoUndo = "large"  // the uncommitted files are too large
	NoUndoFailed NoUndo = "failed" // the snapshot failed
)

// Snapshots takes a snapshot of a turn's files before the agent changes them. Package orchestrator/changes implements
// it.
type Snapshots interface {
	// Watch takes the snapshot in the background. The caller calls Watch just before the agent gets its prompt. If
	// resumed is true, the turn began before a restart of ductor, and Watch loads the snapshot that the previous
	// process took. The caller must call End or Leave on the result.
	Watch(t Turn, dir string, resumed bool) TurnWatch
	// AwaitSnapshot waits, for a limited time, until the snapshot of a turn is complete. The caller calls it before it
	// allows the request with the given ID, so that the agent's first write comes after the snapshot.
	AwaitSnapshot(ctx context.Context, turn cli.TurnID, id cli.ApprovalID)
	// SnapshotTaken reports whether AwaitSnapshot would return immediately.
	SnapshotTaken(turn cli.TurnID) bool
}

// TurnWatch observes the file changes of one turn.
type TurnWatch interface {
	// Observe must get every event of the turn. It does not block.
	Observe(ev cli.Event)
	// End ends the watch after the turn and all its processes have ended. The returned function computes the changes of
	// the turn. It is nil if the turn did nothing that could change a file.
	End() func(ctx context.Context) Changed
	// Leave ends the watch when ductor ends but the turn continues. The caller calls Leave instead of End.
	Leave()
}

// Snapshot contains the state of the repository around a directory, and of all repositories inside that repository.
type Snapshot struct {
	Trees []SnapshotTree
}

// SnapshotTree holds the Git trees of a repository from before and after a turn.
type SnapshotTree struct{ Dir, Before, After string }

// TurnChanges is the stored record of a turn that changed files, or of a checkpoint that a user created. For a
// checkpoint, Before and After are equal.
type TurnChanges struct {
	ID           string // ID of the turn or the checkpoint
	Conversation ConversationID
	Session      SessionID
	Title        string // the name of a checkpoint, or the first words of the prompt
	At           time.Time
	Sandbox      cli.Sandbox
	Checkpoint   bool
	Undone       bool
	Commit       string // commit of the changes; empty if they were not committed
	Snapshot     Snapshot
	Changed      Changed
}

// ChangeStore stores how turns changed files. internal/store implements it.
type ChangeStore interface {
	// SaveChanges stores c and replaces the record with the same ID.
	SaveChanges(ctx context.Context, c TurnChanges) error
	// ChangesOf returns the changes of a turn or a checkpoint, or ErrNoChanges.
	ChangesOf(ctx context.Context, id string) (TurnChanges, error)
	// ListChanges lists the changes of a session and the checkpoints of its conversation, newest first.
	ListChanges(ctx context.Context, in ConversationID, session SessionID, limit int) ([]TurnChanges, error)
	// OldChanges lists the records that were stored before a time, oldest first.
	OldChanges(ctx context.Context, before time.Time, limit int) ([]TurnChanges, error)
	DeleteChanges(ctx context.Context, id string) error
}

// Errors of FileChanges.
var (
	ErrNoChanges   = errors.New("these changes are not stored")
	ErrUndone      = errors.New("these changes are already undone")
	ErrNotUndone   = errors.New("these changes are not undone")
	ErrTurnRuns    = errors.New("a turn changes these files now") // wrapped by *TurnWrites
	ErrCommitted   = errors.New("these changes are already committed")
	ErrNoIdentity  = errors.New("Git does not know the name of its user")
	ErrMerging     = errors.New("a merge or a rebase is under way")
	ErrGitFilter   = errors.New("Git changes these files when it stores them")
	ErrInTheWay    = errors.New("ignored files are in the way")
	ErrDiffTooLong = errors.New("the diff is too long")
)

// TurnWrites is the error if a turn that is still running may change the same files. It contains the conversation of
// that turn.
type TurnWrites struct{ In ConversationID }

func (e *TurnWrites) Error() string { return ErrTurnRuns.Error() }
func (e *TurnWrites) Unwrap() error { return ErrTurnRuns }

// ChangedSince is the error if files have changed after a turn. The current state of these files is neither the state
// before the turn nor the state after it.
type ChangedSince struct{ Paths []string }

func (e *ChangedSince) Error() string {
	return fmt.Errorf("%d files changed since", len(e.Paths)).Error()
}

// DiffSince selects the older state for a diff with the current state.
type DiffSince string

// Values of type DiffSince.
const (
	SinceTurn    DiffSince = "turn" // state before the last turn of the conversation that changed files
	SinceSession DiffSince = "session"
	SinceCommit  DiffSince = "commit"
)

// ReturnTo selects the state to restore: the state before a turn, or the state after it. For a checkpoint both are the
// same.
type ReturnTo string

// Values of type ReturnTo.
const (
	BeforeTurn ReturnTo = "before"
	AfterTurn  ReturnTo = "after"
)

// FileChanges lets users inspect, undo and commit the changes of turns. Package orchestrator/changes implements it. Its
// methods return ErrElsewhere for changes of another conversation, and ErrNotAllowed if the user's role does not allow
// changes of files.
type FileChanges interface {
	// Undo restores the files that a turn changed to their state before the turn. It may return ErrUndone, ErrTurnRuns,
	// ErrInTheWay or *ChangedSince.
	Undo(ctx context.Context, by Press, turn cli.TurnID) (TurnChanges, error)
	// Redo restores the state after the turn. It may return ErrNotUndone and the errors of Undo.
	Redo(ctx context.Context, by Press, turn cli.TurnID) (TurnChanges, error)
	// Commit commits only the changes of a turn. It may return ErrCommitted, ErrUndone, ErrNoIdentity, ErrMerging,
	// ErrGitFilter and the errors of Undo.
	Commit(ctx context.Context, by Press, turn cli.TurnID, message string) (TurnChanges, error)
	// Changes returns the changes of a turn or a checkpoint.
	Changes(ctx context.Context, in ConversationID, id string) (TurnChanges, error)
	// Diff returns the changes of a turn as a unified diff, or ErrDiffTooLong.
	Diff(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
	// DiffSince compares the files in the directory of a conversation with an older state. If path is not empty, it
	// compares only files below path.
	//
	// A user without the right ReachFiles can only choose SinceTurn, and gets only the changes that the last turn made.
	// For any other choice, DiffSince returns ErrNotAllowed. It returns ErrNoFile if path neither exists now nor
	// existed in the older state. It may also return ErrNoRepository, ErrNoChanges or ErrDiffTooLong.
	DiffSince(ctx context.Context, by Press, since DiffSince, path string) (string, error)
	// Checkpoint stores the state of all files under a name, or returns ErrNoRepository.
	Checkpoint(ctx context.Context, by Press, name string) (TurnChanges, error)
	// Checkpoints lists the checkpoints of a conversation, and the turns of its current session that changed files. The
	// newest is first.
	Checkpoints(ctx context.Context, in ConversationID) ([]TurnChanges, error)
	// SessionChanges lists the turns of a session that changed files, together with the checkpoints made in that
	// session. The newest is first.
	SessionChanges(ctx context.Context, in ConversationID, session SessionID) ([]TurnChanges, error)
	// Return restores all files to the state before or after a turn, or to a checkpoint. First it stores the current
	// state as a new checkpoint. Return returns the restored record and the new checkpoint.
	Return(ctx context.Context, by Press, id string, side ReturnTo) (restored, checkpoint TurnChanges, err error)
}
