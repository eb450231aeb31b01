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

// Finisher marks updates as handled ("finishes" them) in the database. In the same transaction, it can store a message
// that answers the update.
type Finisher struct {
	journal    orchestrator.Inbox
	sender     Sender
	unfinished *unfinished
	log        *slog.Logger
}

// Sender sends messages from the database. *message.Messages implements it.
type Sender interface {
	// Follow calls arrived with the ID of the message that has the given key, as soon as this message is in the chat.
	// After a restart of ductor, arrived is not called any more.
	Follow(key string, arrived func(id int))
	// Wake starts to send messages that were just stored.
	Wake()
}

func NewFinisher(journal orchestrator.Inbox, sender Sender, log *slog.Logger) *Finisher {
	return &Finisher{journal: journal, sender: sender, unfinished: &unfinished{}, log: log}
}

// unfinished contains updates that could not be marked as handled because the disk was full or failed. The poller
// handles them again when the disk works.
type unfinished struct {
	mu      sync.Mutex
	updates []int64
}

func (u *unfinished) add(updates []int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.updates = append(u.updates, updates...)
}

// take removes and returns all updates.
func (u *unfinished) take() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	updates := u.updates
	u.updates = nil
	return updates
}

// ofDisk reports whether err is a problem with the disk. diskGuard already notifies users of such problems.
func ofDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFull) || errors.Is(err, orchestrator.ErrDiskFailed) ||
		errors.Is(err, orchestrator.ErrDamaged)
}

// finishPatience is the timeout for marking updates as handled. The write continues even if its context is cancelled,
// so that finished work is recorded.
const finishPatience = 10 * time.Second

// Finish marks updates as handled and stores notices, in one transaction. If the transaction fails, Finish returns
// false. ductor then handles the updates again after a restart, or when a full disk has space again.
func (f *Finisher) Finish(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool) {
	err := f.finish(ctx, updates, notices...)
	if ofDisk(err) {
		f.unfinished.add(updates)
	}
	return err == nil
}

// finish is like Finish, but returns the error. After an error of the disk (see ofDisk), the caller must call finish
// again.
func (f *Finisher) finish(ctx context.Context, updates []int64, notices ...orchestrator.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishPatience)
	defer cancel()
	if err := f.journal.FinishUpdates(ctx, updates, notices...); err != nil {
		f.log.Error("updates could not be marked handled; they are taken up again later",
			"updates", updates, "err", err)
		return err
	}
	if len(notices) > 0 {
		f.sender.Wake()
	}
	return nil
}

// Forgetting returns a Finisher for updates that contain a secret. This Finisher erases the content of finished updates
// from the database.
func (f *Finisher) Forgetting() *Finisher {
	return &Finisher{journal: secretJournal{f.journal}, sender: f.sender, unfinished: f.unfinished, log: f.log}
}

// secretJournal is an Inbox that erases the content of updates when they are marked as handled.
type secretJournal struct{ orchestrator.Inbox }

func (s secretJournal) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return s.ForgetUpdates(ctx, ids, notices...)
}

// Answer marks the update of a message as handled and sends an answer. In a group, the answer is a reply to the
// message. Answer returns what Finish returns.
func (f *Finisher) Answer(ctx context.Context, in *Message, text string, k tgapi.Keyboard) (done bool) {
	return f.Tell(ctx, in.Conversation, in.Quote(), in.Updates, text, k)
}

// Refuse marks the update of a message as handled and answers that the message had no effect. The answer is a reply in
// every chat, because other messages may have come in between.
func (f *Finisher) Refuse(ctx context.Context, in *Message, text string) {
	f.Finish(ctx, in.Updates, refusal(in.Conversation, in.ID, text))
}

// refusal returns a notice that the user's message had no effect. The notice replies to the message with the ID
// replyTo, unless replyTo is 0. The notice must not get lost, so it may appear twice in the chat after a crash.
func refusal(to orchestrator.ConversationID, replyTo int, text string) orchestrator.Message {
	return message.Compose(to, message.Content{
		Text: render.Plain(text), ReplyTo: replyTo, Lifecycle: message.ResendIfUnknown,
	})
}

// AnswerFollowed is like Answer, but also calls arrived with the message ID of the answer; see Sender.Follow. The
// caller can use this ID to edit the answer later.
func (f *Finisher) AnswerFollowed(ctx context.Context, in *Message, text string, k tgapi.Keyboard,
	arrived func(id int)) {
	m := message.Compose(in.Conversation, message.Content{Text: render.Plain(text), Keyboard: k, ReplyTo: in.Quote()})
	f.sender.Follow(m.Key, arrived)
	f.Finish(ctx, in.Updates, m)
}

// Tell marks updates as handled and sends a message to a conversation. The message replies to the message with the ID
// replyTo, unless replyTo is 0. Tell returns what Finish returns.
func (f *Finisher) Tell(ctx context.Context, id orchestrator.ConversationID, replyTo int, updates []int64, text string,
	k tgapi.Keyboard) (done bool) {
	return f.Finish(ctx, updates, message.Compose(id, message.Content{
		Text: render.Plain(text), Keyboard: k, ReplyTo: replyTo,
	}))
}
