package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
)

// Changed summarizes the changes of a turn to the files of its repository. The zero value means that no changes are
// known.
type Changed struct {
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	NoUndo  NoUndo `json:"no_undo,omitempty"` // why the changes cannot be undone; empty if they can
	Ignored bool   `json:"ignored,omitempty"` // the repository has ignored files, which an undo does not touch
	// With is the conversation of the other turn that wrote at the same time; see NoUndoShared.
	With ConversationID `json:"with,omitzero"`
}

// NoUndo is the reason why the changes of a turn cannot be undone.
type NoUndo string

// The reasons.
const (
	NoUndoLate   NoUndo = "late"   // the snapshot was not ready before the agent's first write
	NoUndoShared NoUndo = "shared" // another turn wrote in the same repository at the same time
	NoUndoLarge  NoUndo = "large"  // the uncommitted files are too large
	NoUndoFailed NoUndo = "failed" // the snapshot failed
)

// Snapshots takes a snapshot of a turn's files before the agent changes them. Package orchestrator/changes implements
// it.
type Snapshots interface {
	// Watch starts to take the snapshot of a turn in the background, just before the agent gets its prompt. If the turn
	// continues after a restart, Watch loads the snapshot of the previous process. The caller must call End or Leave of
	// the result.
	Watch(t Turn, dir string, resumed bool) TurnWatch
	// AwaitSnapshot waits until the snapshot of a turn is complete, but at most for as long as a write may be delayed.
	// The caller allows request id afterwards.
	AwaitSnapshot(ctx context.Context, turn cli.TurnID, id cli.ApprovalID)
	// SnapshotTaken reports whether AwaitSnapshot would return immediately.
	SnapshotTaken(turn cli.TurnID) bool
}

// TurnWatch observes the file changes of one turn.
type TurnWatch interface {
	// Observe receives every event of the turn. It does not block.
	Observe(ev cli.Event)
	// End ends the watch after the turn and all its processes have ended. It returns a function that computes the
	// turn's changes, or nil if the turn did nothing that could change a file.
	End() func(ctx context.Context) Changed
	// Leave ends the watch of a turn that continues after ductor has ended. The caller calls it instead of End.
	Leave()
}

// Snapshot holds the states of the repository that contains a directory, and of the repositories inside it.
type Snapshot struct {
	Trees []SnapshotTree
}

// SnapshotTree is a repository before and after a turn.
type SnapshotTree struct{ Dir, Before, After string }

// TurnChanges is the stored record of a turn that changed files, or of a checkpoint. In a checkpoint, Before and After
// are equal.
type TurnChanges struct {
	ID           string // ID of the turn or the checkpoint
	Conversation ConversationID
	Session      SessionID
	Title        string // the name of a checkpoint, or the first words of the prompt
	At           time.Time
	Sandbox      cli.Sandbox
	Checkpoint   bool
	Undone       bool
	Commit       string // commit that contains the changes; empty for none
	Snapshot     Snapshot
	Changed      Changed
}

// ChangeStore stores the changes of turns. internal/store implements it.
type ChangeStore interface {
	// SaveChanges stores c and replaces the record with the same ID.
	SaveChanges(ctx context.Context, c TurnChanges) error
	// ChangesOf returns the changes of a turn or a checkpoint, or ErrNoChanges.
	ChangesOf(ctx context.Context, id string) (TurnChanges, error)
	// ListChanges lists the changes of a session and the checkpoints of its conversation, newest first.
	ListChanges(ctx context.Context, in ConversationID, session SessionID, limit int) ([]TurnChanges, error)
	// OldChanges lists records stored before a time, oldest first.
	OldChanges(ctx context.Context, before time.Time, limit int) ([]TurnChanges, error)
	DeleteChanges(ctx context.Context, id string) error
}

// Errors of FileChanges.
var (
	ErrNoChanges   = errors.New("these changes are not stored")
	ErrUndone      = errors.New("these changes are already undone")
	ErrNotUndone   = errors.New("these changes are not undone")
	ErrTurnRuns    = errors.New("a turn changes these files now") // the error of a TurnWrites
	ErrCommitted   = errors.New("these changes are already committed")
	ErrNoIdentity  = errors.New("Git does not know the name of its user")
	ErrMerging     = errors.New("a merge or a rebase is under way")
	ErrGitFilter   = errors.New("Git changes these files when it stores them")
	ErrInTheWay    = errors.New("ignored files are in the way")
	ErrDiffTooLong = errors.New("the diff is too long")
)

// TurnWrites is the error if a turn is changing files. In is the turn's conversation.
type TurnWrites struct{ In ConversationID }

func (e *TurnWrites) Error() string { return ErrTurnRuns.Error() }
func (e *TurnWrites) Unwrap() error { return ErrTurnRuns }

// ChangedSince is the error if files have changed since a turn: they match neither the state before the turn nor the
// state after it.
type ChangedSince struct{ Paths []string }

func (e *ChangedSince) Error() string {
	return fmt.Errorf("%d files changed since", len(e.Paths)).Error()
}

// DiffSince selects the state with which ductor compares files.
type DiffSince string

// The states.
const (
	SinceTurn    DiffSince = "turn" // state before the conversation's last turn that changed files
	SinceSession DiffSince = "session"
	SinceCommit  DiffSince = "commit"
)

// ReturnTo selects the state before or after a turn. For a checkpoint both are the same.
type ReturnTo string

// The sides.
const (
	BeforeTurn ReturnTo = "before"
	AfterTurn  ReturnTo = "after"
)

// FileChanges lets users inspect, undo and commit the changes of turns. Package orchestrator/changes implements it. Its
// methods return ErrElsewhere for changes of another conversation. They return ErrNotAllowed if a user with the role of
// a member tries to change files.
type FileChanges interface {
	// Undo restores the files that a turn changed to their state before the turn. It may return ErrUndone, ErrTurnRuns,
	// ErrInTheWay or *ChangedSince.
	Undo(ctx context.Context, by Press, turn cli.TurnID) (TurnChanges, error)
	// Redo restores the state after the turn. It may return ErrNotUndone and the errors of Undo.
	Redo(ctx context.Context, by Press, turn cli.TurnID) (TurnChanges, error)
	// Commit commits the changes of a turn and no other changes. It may return ErrCommitted, ErrUndone, ErrNoIdentity,
	// ErrMerging, ErrGitFilter and the errors of Undo.
	Commit(ctx context.Context, by Press, turn cli.TurnID, message string) (TurnChanges, error)
	// Changes returns the changes of a turn or a checkpoint.
	Changes(ctx context.Context, in ConversationID, id string) (TurnChanges, error)
	// Diff returns the changes of a turn as a unified diff, or ErrDiffTooLong.
	Diff(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
	// DiffSince returns the current differences in the directory of a conversation. If path is not empty, it returns
	// only differences below path. It may return ErrNoRepository, ErrNoChanges or ErrDiffTooLong.
	DiffSince(ctx context.Context, in ConversationID, since DiffSince, path string) (string, error)
	// Checkpoint stores the state of all files, or returns ErrNoRepository.
	Checkpoint(ctx context.Context, by Press, name string) (TurnChanges, error)
	// Checkpoints lists the checkpoints of a conversation and the turns of its session that changed files, newest
	// first.
	Checkpoints(ctx context.Context, in ConversationID) ([]TurnChanges, error)
	// SessionChanges lists the turns of one session of a conversation that changed files, and the checkpoints made in
	// it, newest first.
	SessionChanges(ctx context.Context, in ConversationID, session SessionID) ([]TurnChanges, error)
	// Return restores all files to the state before or after a turn, or to a checkpoint. It first stores the current
	// state as a checkpoint and returns it as before.
	Return(ctx context.Context, by Press, id string, side ReturnTo) (to, before TurnChanges, err error)
}
