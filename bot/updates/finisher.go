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

// unfinished contains updates that could not be marked as handled because the disk was full or failed, and prompts that
// wait because an earlier prompt of their conversation is in the list. The poller handles these updates and prompts
// again when the disk works, unless an abort has removed them.
type unfinished struct {
	mu  sync.Mutex
	all []undone
}

// undone contains the updates of one task, for example all messages of one prompt.
type undone struct {
	updates []int64
	prompt  *Message // nil if the task is not a prompt
	taken   bool     // true while the poller is dispatching the updates
}

func (u *unfinished) add(updates []int64, prompt *Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, undone{updates: updates, prompt: prompt})
}

// addBehind adds a prompt if an earlier prompt of its conversation is unfinished. Otherwise it returns false. If both
// are taken, the queue of the conversation keeps their order, and addBehind returns false.
func (u *unfinished) addBehind(updates []int64, prompt *Message) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := slices.ContainsFunc(u.all, func(w undone) bool {
		return w.taken && slices.Contains(w.updates, updates[0])
	})
	earlier := slices.ContainsFunc(u.all, func(w undone) bool {
		return w.prompt != nil && w.prompt.Conversation == prompt.Conversation && w.updates[0] < updates[0] &&
			!(taken && w.taken)
	})
	if earlier {
		u.all = append(u.all, undone{updates: updates, prompt: prompt})
	}
	return earlier
}

// drop removes the prompts for which unwanted returns true. It returns the number of removed prompts, and the IDs of
// their updates.
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

// ofDisk reports whether err is a problem with the disk. diskGuard already notifies users of such problems.
func ofDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFull) || errors.Is(err, orchestrator.ErrDiskFailed) ||
		errors.Is(err, orchestrator.ErrDamaged)
}

// take marks all entries as taken. It returns false if there are none. The caller must dispatch these updates in order,
// and then call dispatched. Until then, later prompts still wait behind them.
func (u *unfinished) take() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.all {
		u.all[i].taken = true
	}
	return len(u.all) > 0
}

// isTaken reports whether an update is taken and was not removed by an abort.
func (u *unfinished) isTaken(update orchestrator.Update) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.all, func(w undone) bool { return w.taken && slices.Contains(w.updates, update.ID) })
}

// dispatched removes all taken entries.
func (u *unfinished) dispatched() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = slices.DeleteFunc(u.all, func(w undone) bool { return w.taken })
}

// finishPatience is the timeout for marking updates as handled. The write continues even if its context is cancelled,
// so that finished work is recorded.
const finishPatience = 10 * time.Second

// Finish marks updates as handled and stores notices, in one transaction. If the transaction fails, Finish returns
// false. ductor then handles the updates again after a restart, or when a full disk has space again.
func (f *Finisher) Finish(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool) {
	return f.finish(ctx, nil, updates, notices...)
}

// finish implements Finish. prompt is nil if the updates are not the messages of a prompt.
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
// message.
func (f *Finisher) Answer(ctx context.Context, in *Message, text string, k tgapi.Keyboard) {
	f.Tell(ctx, in.Conversation, in.Quote(), in.Updates(), text, k)
}

// answerPrompt is like Answer, but for a prompt that will not run. updateIDs are the updates of all messages of the
// prompt.
func (f *Finisher) answerPrompt(ctx context.Context, in *Message, updateIDs []int64, text string) {
	f.finish(ctx, in, updateIDs, refusal(in.Conversation, in.ID, text))
}

// Refuse marks the update of a message as handled and answers that the message had no effect. The answer is a reply in
// every chat, because other messages may have come in between.
func (f *Finisher) Refuse(ctx context.Context, in *Message, text string) {
	f.Tell(ctx, in.Conversation, in.ID, in.Updates(), text, nil)
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
	f.Finish(ctx, in.Updates(), m)
}

// Tell marks updates as handled and sends a message to a conversation. The message replies to the message with the ID
// replyTo, unless replyTo is 0.
func (f *Finisher) Tell(ctx context.Context, id orchestrator.ConversationID, replyTo int, updates []int64, text string,
	k tgapi.Keyboard) {
	f.Finish(ctx, updates, message.Compose(id, message.Content{
		Text: render.Plain(text), Keyboard: k, ReplyTo: replyTo,
	}))
}
