package bot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/lang"
	"ductor/orchestrator"
)

// Errors for input that the bot's owner types in a terminal.
var (
	ErrNoCommand = errors.New("this is not a command of ductor; /help lists them")
	ErrNotReady  = errors.New("ductor has not reached Telegram yet, and commands need that")
	ErrIdle      = errors.New("nothing is running here")
)

// typing passes input from terminals to the handlers of commands.
type typing struct {
	handlers atomic.Pointer[handlers] // nil until Run is ready for input
	ready    chan struct{}            // closed when handlers is set
	begin    func()                   // closes ready; may be called repeatedly
}

func newTyping() *typing {
	ready := make(chan struct{})
	return &typing{ready: ready, begin: sync.OnceFunc(func() { close(ready) })}
}

func (t *typing) start(h *handlers) {
	t.handlers.Store(h)
	t.begin()
}

// readyWait is the timeout of await. It must be longer than the start of ductor. If ductor stops during this time, the
// terminal sends the command again to the next process.
const readyWait = 20 * time.Second

// await waits until Run is ready for input and returns the handlers. It returns ErrNotReady if that takes too long.
func (t *typing) await(ctx context.Context) (*handlers, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	select {
	case <-t.ready:
		return t.handlers.Load(), nil
	case <-ctx.Done():
		return nil, ErrNotReady
	}
}

// ShowTyped implements attach.Chat. It sends the text to the chat, as a file if it is long.
func (b *Bot) ShowTyped(ctx context.Context, by orchestrator.Press, id, text string) error {
	in := by.Conversation
	head := render.Styled(render.Bold, b.opts.Lang.Of(in.Chat).Text(atTheTerminal(in)))
	c := message.Content{Text: render.Concat(head, render.Plain("\n"+text)), Silent: true}
	if render.Len(c.Text.Text) > render.MessageLimit {
		c.Text, c.Files = head, []message.File{{Name: "prompt.txt", Content: text}}
	}
	if err := b.messages.PostTyped(ctx, in, id, c); err != nil {
		return err
	}
	if b.chat.typing.handlers.Load() == nil { // Bot.Run is not ready yet; it will send all stored messages
		return nil
	}
	return b.messages.SendOwed(ctx)
}

// atTheTerminal returns the heading of a message that shows input from a terminal.
func atTheTerminal(in orchestrator.ConversationID) lang.Key {
	if in.Group() {
		return "bot.owner-at-the-terminal"
	}
	return "bot.you-at-the-terminal"
}

// CommandTyped implements attach.Chat. It returns ErrNoCommand if the text is not a command.
func (b *Bot) CommandTyped(ctx context.Context, by orchestrator.Press, id, text string) error {
	h, err := b.chat.typing.await(ctx)
	if err != nil {
		return err
	}
	command, is := updates.ParseCommand(strings.TrimSpace(text))
	spec, known := h.Command(command.Name)
	switch {
	case !is, !known:
		return ErrNoCommand
	case !spec.Allows(by.Role):
		return orchestrator.ErrNotAllowed
	case spec.Do == nil:
		return b.AbortTyped(ctx, by, id)
	}
	update := orchestrator.Update{ID: updateOf(id), Raw: []byte(text)}
	if done, err := b.handledBefore(ctx, update); done || err != nil {
		return err
	}
	if err := b.ShowTyped(ctx, by, id, text); err != nil {
		return err
	}
	spec.Do(ctx, updates.Request{
		Command: command, In: updates.NewMessage(by, update.ID, text),
		File: func(context.Context) (string, []byte, error) { return "", nil, updates.ErrNoFile },
	})
	return nil
}

// updateOf returns the update ID of a text that was typed in a terminal. It is negative, so that it differs from all of
// Telegram's IDs.
func updateOf(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return -int64(binary.BigEndian.Uint64(sum[:8])&math.MaxInt64) - 1
}

// handledBefore stores an update. It reports whether an update with the same ID was already handled.
func (b *Bot) handledBefore(ctx context.Context, u orchestrator.Update) (bool, error) {
	fresh, err := b.opts.Journal.AppendUpdates(ctx, []orchestrator.Update{u})
	if err != nil || len(fresh) > 0 {
		return false, err
	}
	pending, err := b.opts.Journal.PendingUpdates(ctx, u.ID-1, 1)
	return err == nil && (len(pending) == 0 || pending[0].ID != u.ID), err
}

// AbortTyped implements attach.Chat. It returns ErrIdle if nothing was running or waiting.
func (b *Bot) AbortTyped(ctx context.Context, by orchestrator.Press, id string) error {
	h, err := b.chat.typing.await(ctx)
	if err != nil {
		return err
	}
	h.commands.endWait(ctx, by)
	report, err := h.desk.Stop(ctx, by, func(*orchestrator.Stopping) {},
		func(r orchestrator.AbortReport) orchestrator.Handled {
			return orchestrator.Handled{Notices: abortNotice(b.opts.Lang.Of(by.Conversation.Chat),
				by.Conversation, r)}
		})
	if err != nil {
		return err
	}
	h.commands.withdraw(ctx, by.Conversation)
	if !report.Running && report.Dropped+report.Questions == 0 && report.Unshown == "" {
		return ErrIdle
	}
	return b.ShowTyped(ctx, by, id, "/abort")
}

// abortNotice returns a notice about everything that an abort from a terminal stopped, except the running turn. It
// returns nil if the abort stopped nothing else. If the abort interrupted the delivery of an answer, the notice has a
// button that shows the answer.
func abortNotice(p lang.Printer, in orchestrator.ConversationID, r orchestrator.AbortReport) []orchestrator.Message {
	details := abortDetails(p, r)
	if len(details) == 0 {
		return nil
	}
	c := message.Content{Text: render.Plain(strings.Join(details, " "))}
	if r.Unshown != "" {
		c.Keyboard = tgapi.Keyboard{{turnButtons{p}.ShowAgain(r.Unshown)}}
	}
	return []orchestrator.Message{message.Compose(in, c)}
}
