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
	// Follow calls arrived with the message's number once it is in the chat, unless ductor restarts first.
	Follow(key string, arrived func(id int))
	// Wake reports that messages were stored.
	Wake()
}

// NewFinisher returns a Finisher for updates in the journal.
func NewFinisher(journal orchestrator.Inbox, sender Sender, log *slog.Logger) *Finisher {
	return &Finisher{journal: journal, sender: sender, unfinished: &unfinished{}, log: log}
}

// unfinished are updates that could not be marked as handled because of the disk. They stay here until the disk works
// again, or until an abort takes them over.
type unfinished struct {
	mu  sync.Mutex
	all []undone
}

// undone is work that could not be marked as handled.
type undone struct {
	updates []int64
	prompt  *Message // nil if it is no prompt
}

func (u *unfinished) add(updates []int64, prompt *Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, undone{updates, prompt})
}

// drop removes the prompts that unwanted accepts. It returns their updates and their number.
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

// ofDisk reports whether the disk caused an error. The diskGuard notifies the chats of such errors.
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

// finishPatience bounds a write that continues although its caller was cancelled, so that completed work is recorded.
const finishPatience = 10 * time.Second

// Finish marks updates as handled. If that fails, an update stays in the journal and is handled again when a full disk
// has room, or after a restart.
func (f *Finisher) Finish(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool) {
	return f.finish(ctx, nil, updates, notices...)
}

// finish is Finish for the updates of a prompt, or of something else if prompt is nil.
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

// secretJournal is a journal that erases the updates that it finishes.
type secretJournal struct{ orchestrator.Inbox }

func (s secretJournal) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return s.ForgetUpdates(ctx, ids, notices...)
}

// Answer finishes the update of a message with a notice to its sender. In groups the notice replies to the message.
func (f *Finisher) Answer(ctx context.Context, in *Message, text string, k tgapi.Keyboard) {
	f.Tell(ctx, in.Conversation, in.Quote(), in.Updates(), text, k)
}

// answerPrompt is Answer for a prompt that does not run. It may contain other messages.
func (f *Finisher) answerPrompt(ctx context.Context, in *Message, updates []int64, text string) {
	f.finish(ctx, in, updates, refusal(in.Conversation, in.Quote(), text))
}

// refusal composes the message that a user's message has no effect. It is a reply unless replyTo is 0. The chat may
// show it twice. That is better than never, because the user would wait in vain.
func refusal(to orchestrator.ConversationID, replyTo int, text string) orchestrator.Message {
	return message.Compose(to, message.Content{
		Text: render.Plain(text), ReplyTo: replyTo, Lifecycle: message.ResendIfUnknown,
	})
}

// AnswerFollowed is Answer for a message that will change later. It calls arrived with the message's number; see
// Sender.Follow.
func (f *Finisher) AnswerFollowed(ctx context.Context, in *Message, text string, k tgapi.Keyboard,
	arrived func(id int)) {
	m := message.Compose(in.Conversation, message.Content{Text: render.Plain(text), Keyboard: k, ReplyTo: in.Quote()})
	f.sender.Follow(m.Key, arrived)
	f.Finish(ctx, in.Updates(), m)
}

// Tell finishes updates with a notice. The notice replies to a message, unless replyTo is 0.
func (f *Finisher) Tell(ctx context.Context, id orchestrator.ConversationID, replyTo int, updates []int64, text string,
	k tgapi.Keyboard) {
	f.Finish(ctx, updates, message.Compose(id, message.Content{
		Text: render.Plain(text), Keyboard: k, ReplyTo: replyTo,
	}))
}
