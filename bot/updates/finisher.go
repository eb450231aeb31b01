package updates

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// Sender sends stored messages. *message.Messages implements it.
type Sender interface {
	// Follow calls arrived with the id of a message once the message is in the chat. After a restart of ductor, it
	// makes no call.
	Follow(key string, arrived func(id int))
	// Wake starts sending messages that were stored.
	Wake()
}

// NewFinisher returns a Finisher for updates in the journal.
func NewFinisher(journal orchestrator.Inbox, sender Sender, log *slog.Logger) *Finisher {
	return &Finisher{journal: journal, sender: sender, unfinished: &unfinished{}, log: log}
}

// unfinished contains updates that could not be marked as handled because of the disk. They stay here until the disk
// works again, or until an abort takes them over.
type unfinished struct {
	mu  sync.Mutex
	all []undone
}

// undone contains the updates of one prompt or other task.
type undone struct {
	updates []int64
	prompt  *Message // nil if the updates contain no prompt
}

func (u *unfinished) add(updates []int64, prompt *Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, undone{updates, prompt})
}

// drop removes the prompts for which unwanted returns true. It returns their updates and their number.
func (u *unfinished) drop(unwanted func(*Message) bool) (updates []int64, prompts int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = slices.DeleteFunc(u.all, func(w undone) bool {
		if w.prompt == nil || !unwanted(w.prompt) {
			return false
		}
		updates = append(updates, w.updates...)
		prompts++
		return true
	})
	return updates, prompts
}

// ofDisk reports whether the disk caused an error. diskGuard notifies the chats of such errors.
func ofDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFull) || errors.Is(err, orchestrator.ErrDiskFailed) ||
		errors.Is(err, orchestrator.ErrDamaged)
}

func (u *unfinished) take() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	var ids []int64
	for _, w := range u.all {
		ids = append(ids, w.updates...)
	}
	u.all = nil
	return ids
}

// finishPatience limits a write that continues after its caller was cancelled, so that completed work is recorded.
const finishPatience = 10 * time.Second

// Finish marks updates as handled and stores notices. If that fails, the updates stay in the journal. ductor handles
// them again when a full disk has room, or after a restart.
func (f *Finisher) Finish(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool) {
	return f.finish(ctx, nil, updates, notices...)
}

// finish is Finish for the updates of a prompt. prompt is nil for any other updates.
func (f *Finisher) finish(ctx context.Context, prompt *Message, updates []int64,
	notices ...orchestrator.Message) (done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishPatience)
	defer cancel()
	if err := f.journal.FinishUpdates(ctx, updates, notices...); err != nil {
		f.log.Error("updates could not be marked handled; they are taken up again later",
			"updates", updates, "err", err)
		if ofDisk(err) {
			f.unfinished.add(updates, prompt)
		}
		return false
	}
	if len(notices) > 0 {
		f.sender.Wake()
	}
	return true
}

// Forgetting returns a Finisher for updates that contain a secret.
func (f *Finisher) Forgetting() *Finisher {
	return &Finisher{journal: secretJournal{f.journal}, sender: f.sender, unfinished: f.unfinished, log: f.log}
}

// secretJournal is a journal that erases the content of the updates that it finishes.
type secretJournal struct{ orchestrator.Inbox }

func (s secretJournal) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return s.ForgetUpdates(ctx, ids, notices...)
}

// Answer finishes the update of a message with a notice to its sender. In a group, the notice replies to the message.
func (f *Finisher) Answer(ctx context.Context, in *Message, text string, k tgapi.Keyboard) {
	f.Tell(ctx, in.Conversation, in.Quote(), in.Updates(), text, k)
}

// answerPrompt is Answer for a prompt that does not run. updates are the updates of all its messages.
func (f *Finisher) answerPrompt(ctx context.Context, in *Message, updates []int64, text string) {
	f.finish(ctx, in, updates, refusal(in.Conversation, in.Quote(), text))
}

// refusal returns a notice that a user's message had no effect. The notice is a reply unless replyTo is 0. The chat
// may show it twice, which is better than never.
func refusal(to orchestrator.ConversationID, replyTo int, text string) orchestrator.Message {
	return message.Compose(to, message.Content{
		Text: render.Plain(text), ReplyTo: replyTo, Lifecycle: message.ResendIfUnknown,
	})
}

// AnswerFollowed is Answer for a notice that will change later. It calls arrived with the notice's id; see
// Sender.Follow.
func (f *Finisher) AnswerFollowed(ctx context.Context, in *Message, text string, k tgapi.Keyboard,
	arrived func(id int)) {
	m := message.Compose(in.Conversation, message.Content{Text: render.Plain(text), Keyboard: k, ReplyTo: in.Quote()})
	f.sender.Follow(m.Key, arrived)
	f.Finish(ctx, in.Updates(), m)
}

// Tell finishes updates with a notice, which replies to a message unless replyTo is 0.
func (f *Finisher) Tell(ctx context.Context, id orchestrator.ConversationID, replyTo int, updates []int64, text string,
	k tgapi.Keyboard) {
	f.Finish(ctx, updates, message.Compose(id, message.Content{
		Text: render.Plain(text), Keyboard: k, ReplyTo: replyTo,
	}))
}
