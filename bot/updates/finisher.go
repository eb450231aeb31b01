package updates

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Finisher finishes updates together with the notices that answer them.
type Finisher struct {
	journal    orchestrator.Inbox
	sender     Sender
	unfinished *unfinished
	log        *slog.Logger
}

// Sender sends messages that are stored; *message.Messages is one.
type Sender interface {
	// Follow calls arrived with the number of a message once it is in the chat, unless ductor is restarted before.
	Follow(key string, arrived func(id int))
	// Wake says that messages were stored.
	Wake()
}

// NewFinisher makes a Finisher of updates in the journal.
func NewFinisher(journal orchestrator.Inbox, sender Sender, log *slog.Logger) *Finisher {
	return &Finisher{journal: journal, sender: sender, unfinished: &unfinished{}, log: log}
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
	return errors.Is(err, orchestrator.ErrDiskFull) || errors.Is(err, orchestrator.ErrDiskFailed) || errors.Is(err, orchestrator.ErrDamaged)
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
func (f *Finisher) Finish(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool) {
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
		f.sender.Wake()
	}
	return true
}

// Forgetting is the Finisher of updates that hold a secret.
func (f *Finisher) Forgetting() *Finisher {
	return &Finisher{journal: secretJournal{f.journal}, sender: f.sender, unfinished: f.unfinished, log: f.log}
}

// secretJournal is a journal in which nothing is left of the updates that it finishes.
type secretJournal struct{ orchestrator.Inbox }

func (s secretJournal) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
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

// AnswerFollowed is Answer with a message that is to change: arrived is told its number; see Sender.Follow.
func (f *Finisher) AnswerFollowed(ctx context.Context, in *Message, text string, k tgapi.Keyboard, arrived func(id int)) {
	m := message.Compose(in.Conversation, message.Content{Text: render.Plain(text), Keyboard: k, ReplyTo: in.Quote()})
	f.sender.Follow(m.Key, arrived)
	f.Finish(ctx, in.Updates(), m)
}

// Tell finishes updates with a notice, in reply to a message or, for 0, to none.
func (f *Finisher) Tell(ctx context.Context, id orchestrator.ConversationID, replyTo int, updates []int64, text string, k tgapi.Keyboard) {
	f.Finish(ctx, updates, message.Compose(id, message.Content{Text: render.Plain(text), Keyboard: k, ReplyTo: replyTo}))
}
