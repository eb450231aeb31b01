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

// Errors about texts that the owner types in a terminal.
var (
	ErrNoCommand = errors.New("this is not a command of ductor; /help lists them")
	ErrNotReady  = errors.New("ductor has not reached Telegram yet, and commands need that")
	ErrIdle      = errors.New("nothing is running here")
)

// typing passes text that users type in terminals to the handlers of messages and commands.
type typing struct {
	handlers atomic.Pointer[handlers] // nil before Run can handle it
	ready    chan struct{}            // closed when handlers is set
	begin    func()                   // closes ready, once
}

func newTyping() *typing {
	ready := make(chan struct{})
	return &typing{ready: ready, begin: sync.OnceFunc(func() { close(ready) })}
}

func (t *typing) start(h *handlers) {
	t.handlers.Store(h)
	t.begin()
}

// readyWait limits how long a command waits for Run. Terminals repeat their commands when ductor runs again.
const readyWait = 20 * time.Second

// await returns the handlers once Run can handle a command, or ErrNotReady if that takes too long.
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

// ShowTyped implements attach.Chat. It sends a long text as a file.
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
	if b.chat.typing.handlers.Load() == nil { // Run will send it
		return nil
	}
	return b.messages.SendOwed(ctx)
}

// atTheTerminal returns the head of a text that the owner typed in a terminal.
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

// updateOf returns the number of the update for a typed text. It is negative, because Telegram's numbers are
// positive.
func updateOf(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return -int64(binary.BigEndian.Uint64(sum[:8])&math.MaxInt64) - 1
}

// handledBefore stores an update, and reports whether the update was handled before. If the previous process stored
// the update and died while handling it, handledBefore returns false.
func (b *Bot) handledBefore(ctx context.Context, u orchestrator.Update) (bool, error) {
	fresh, err := b.opts.Journal.AppendUpdates(ctx, []orchestrator.Update{u})
	if err != nil || len(fresh) > 0 {
		return false, err
	}
	pending, err := b.opts.Journal.PendingUpdates(ctx, u.ID-1, 1)
	return err == nil && (len(pending) == 0 || pending[0].ID != u.ID), err
}

// AbortTyped implements attach.Chat. It returns ErrIdle if nothing runs or waits.
func (b *Bot) AbortTyped(ctx context.Context, by orchestrator.Press, id string) error {
	h, err := b.chat.typing.await(ctx)
	if err != nil {
		return err
	}
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

// abortNotice returns the notice about what an abort in a terminal ended besides the running turn. The notice offers an
// answer that the abort cut off. abortNotice returns nil if the abort ended nothing else.
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
