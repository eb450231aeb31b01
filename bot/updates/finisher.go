package updates

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Finisher finishes updates together with the notices that answer them.
type Finisher struct {
	journal    Journal
	notices    Notices
	unfinished *unfinished
	log        *slog.Logger
}

// Notices makes notices and sends stored ones.
type Notices interface {
	// Compose makes a notice that is to be stored with what caused it. replyTo is 0 for none.
	Compose(id orchestrator.ConversationID, text string, k tgapi.Keyboard, replyTo int) (orchestrator.Notice, error)
	// ComposeFollowed is Compose for a notice whose message is to change: it calls sent with the message once that is in
	// the chat, unless ductor is restarted before. sent must not block.
	ComposeFollowed(id orchestrator.ConversationID, text string, k tgapi.Keyboard, replyTo int, sent func(message int)) (orchestrator.Notice, error)
	// Wake says that notices were stored.
	Wake()
}

// NewFinisher makes a Finisher of updates in the journal.
func NewFinisher(journal Journal, notices Notices, log *slog.Logger) *Finisher {
	return &Finisher{journal: journal, notices: notices, unfinished: &unfinished{}, log: log}
}

// unfinished are updates that could not be marked handled because of the disk, until it works again.
type unfinished struct {
	mu  sync.Mutex
	ids []int64
}

func (u *unfinished) add(ids []int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = append(u.ids, ids...)
}

// ofDisk says whether an error is the disk's. The diskGuard notifies the chats of those.
func ofDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFull) || errors.Is(err, orchestrator.ErrDiskFailed)
}

func (u *unfinished) take() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	ids := u.ids
	u.ids = nil
	return ids
}

// finishPatience bounds a write that goes on although its caller was cancelled: what was done is recorded as done.
const finishPatience = 10 * time.Second

// Finish marks updates handled. An update that cannot be marked stays in the journal and is handled again when a full
// disk has room, and after a restart.
func (f *Finisher) Finish(ctx context.Context, updates []int64, notices ...orchestrator.Notice) (done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishPatience)
	defer cancel()
	if err := f.journal.FinishUpdates(ctx, updates, notices...); err != nil {
		f.log.Error("updates could not be marked handled; they are taken up again later", "updates", updates, "err", err)
		if ofDisk(err) {
			f.unfinished.add(updates)
		}
		return false
	}
	if len(notices) > 0 {
		f.notices.Wake()
	}
	return true
}

// Forgetting is the Finisher of updates that hold a secret.
func (f *Finisher) Forgetting() *Finisher {
	return &Finisher{journal: secretJournal{f.journal}, notices: f.notices, unfinished: f.unfinished, log: f.log}
}

// secretJournal is a journal in which nothing is left of the updates that it finishes.
type secretJournal struct{ Journal }

func (s secretJournal) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Notice) error {
	return s.ForgetUpdates(ctx, ids, notices...)
}

// Answer finishes the update of a message with one notice to its sender. In groups it replies to the message.
func (f *Finisher) Answer(ctx context.Context, in *Message, text string, k tgapi.Keyboard) {
	f.answerMerged(ctx, in, in.Updates(), text, k)
}

// answerMerged is Answer for a message that others were merged into.
func (f *Finisher) answerMerged(ctx context.Context, in *Message, updates []int64, text string, k tgapi.Keyboard) {
	f.Tell(ctx, in.Conversation, in.Quote(), updates, text, k)
}

// AnswerFollowed is Answer with a notice whose message is to change; see Notices.ComposeFollowed.
func (f *Finisher) AnswerFollowed(ctx context.Context, in *Message, text string, k tgapi.Keyboard, sent func(message int)) {
	n, err := f.notices.ComposeFollowed(in.Conversation, text, k, in.Quote(), sent)
	f.finishWith(ctx, in.Updates(), n, err)
}

// broke notifies the user that a task panicked. What the task did before is unknown, so it does not run again.
func (f *Finisher) broke(t *task) {
	f.Tell(context.Background(), t.conv, 0, t.updates, "Something broke in ductor while it dealt with this; it may not have reached the agent. The log says what.", nil)
}

// Tell finishes updates with a notice, in reply to a message or, for 0, to none.
func (f *Finisher) Tell(ctx context.Context, id orchestrator.ConversationID, replyTo int, updates []int64, text string, k tgapi.Keyboard) {
	n, err := f.notices.Compose(id, text, k, replyTo)
	f.finishWith(ctx, updates, n, err)
}

// finishWith finishes updates with a notice that was composed.
func (f *Finisher) finishWith(ctx context.Context, updates []int64, n orchestrator.Notice, err error) {
	if err != nil {
		f.log.Error("compose a notice", "updates", updates, "err", err)
		f.Finish(ctx, updates)
		return
	}
	f.Finish(ctx, updates, n)
}
