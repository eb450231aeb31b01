package orchestrator

import (
	"context"
	"errors"
)

// DiskState says whether what is stored reaches the disk.
type DiskState string

// The states of a disk. While it is full nothing is stored; RetryDisk finds out whether it still is. Of one that
// failed only a restart tells what is on it, so nothing is stored any more.
const (
	DiskWorks  DiskState = "works"
	DiskFull   DiskState = "full"
	DiskFailed DiskState = "failed"
)

// What a write says while the disk does not take it. Each text says what to do.
var (
	ErrDiskFull   = errors.New("the disk is full: free some space; nothing of this step was stored")
	ErrDiskFailed = errors.New("the disk under the database reports an error")
)

// Disk watches the disk under a Journal.
type Disk interface {
	// Disk returns the state of the disk, and a context that is done once that has changed.
	Disk() (DiskState, context.Context)
	// RetryDisk looks whether a disk that was full takes something again, and brings to it what did not get
	// there. The error says what is in the way.
	RetryDisk(ctx context.Context) error
	// WaitingConversations lists the conversations in which a turn waits, runs, or ended and is not shown.
	WaitingConversations(ctx context.Context) ([]ConversationID, error)
}
