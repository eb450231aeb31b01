package bottest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"ductor/orchestrator"
)

// Inbox stores incoming updates in memory. It is a fake of the corresponding methods of orchestrator.Journal.
type Inbox struct {
	mu        sync.Mutex
	updates   map[int64]*kept
	fail      error
	unflushed int
	disk      orchestrator.DiskState
	changed   context.Context // SetDisk cancels this context
	change    context.CancelFunc
}

type kept struct {
	raw     []byte
	handled bool
}

// NewInbox returns an empty Inbox.
func NewInbox() *Inbox {
	b := &Inbox{updates: make(map[int64]*kept), disk: orchestrator.DiskWorks}
	b.changed, b.change = context.WithCancel(context.Background())
	return b
}

// Fail makes all later writes return err.
func (b *Inbox) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// FailFlushes makes the next n calls of Flush fail.
func (b *Inbox) FailFlushes(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unflushed = n
}

// Handle marks updates as handled.
func (b *Inbox) Handle(ids []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if u := b.updates[id]; u != nil {
			u.handled = true
		}
	}
}

// Open returns the IDs of the updates that are not marked as handled.
func (b *Inbox) Open() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []int64
	for id, u := range b.updates {
		if !u.handled {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// AppendUpdates stores updates. It returns the updates that are new and not empty.
func (b *Inbox) AppendUpdates(_ context.Context, updates []orchestrator.Update) ([]orchestrator.Update, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return nil, b.fail
	}
	var fresh []orchestrator.Update
	for _, u := range updates {
		if b.updates[u.ID] != nil {
			continue
		}
		b.updates[u.ID] = &kept{raw: u.Raw, handled: u.Raw == nil}
		if u.Raw != nil {
			fresh = append(fresh, u)
		}
	}
	return fresh, nil
}

// Flush fails after a call of Fail. After a call of FailFlushes, only the given number of calls of Flush fails.
func (b *Inbox) Flush(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unflushed > 0 {
		b.unflushed--
		return errors.New("the disk is slow to answer")
	}
	return b.fail
}

// PendingUpdates returns updates that are not marked as handled and whose IDs are greater than after. It returns at
// most limit updates.
func (b *Inbox) PendingUpdates(_ context.Context, after int64, limit int) ([]orchestrator.Update, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []orchestrator.Update
	for _, id := range slices.Sorted(maps.Keys(b.updates)) {
		if u := b.updates[id]; id > after && !u.handled && len(out) < limit {
			out = append(out, orchestrator.Update{ID: id, Raw: u.raw})
		}
	}
	return out, nil
}

// FinishUpdates marks updates as handled. It ignores the messages.
func (b *Inbox) FinishUpdates(_ context.Context, ids []int64, _ ...orchestrator.Message) error {
	b.mu.Lock()
	err := b.fail
	b.mu.Unlock()
	if err == nil {
		b.Handle(ids)
	}
	return err
}

// ForgetUpdates implements orchestrator.Journal.
func (b *Inbox) ForgetUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return b.FinishUpdates(ctx, ids, notices...)
}

// SetDisk changes the state of the disk.
func (b *Inbox) SetDisk(state orchestrator.DiskState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change()
	b.disk = state
	b.changed, b.change = context.WithCancel(context.Background())
}

// Disk returns the state that SetDisk has set. The initial state is DiskWorks.
func (b *Inbox) Disk() (orchestrator.DiskState, context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disk, b.changed
}

// RetryDisk does nothing.
func (*Inbox) RetryDisk(context.Context) error { return nil }

// WaitingConversations returns no conversations.
func (*Inbox) WaitingConversations(context.Context) ([]orchestrator.ConversationID, error) {
	return nil, nil
}
