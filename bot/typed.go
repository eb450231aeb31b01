package bot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/updates"
	"ductor/lang"
	"ductor/orchestrator"
)

// Errors of texts that the owner types in a terminal.
var (
	ErrNoCommand = errors.New("this is not a command of ductor; /help lists them")
	ErrNotReady  = errors.New("ductor has not reached Telegram yet, and commands need that")
	ErrIdle      = errors.New("nothing is running here")
)

// Typed is a text that the owner typed in a terminal. A text that comes again with the same ID has its effect once.
type Typed struct {
	By   orchestrator.Press
	ID   string
	Text string
}

// ShowTyped shows a text in its conversation as a message of the owner. The message precedes the answer. It has a long
// text as a file.
func (b *Bot) ShowTyped(ctx context.Context, t Typed) error {
	in, who := t.By.Conversation, lang.Key("bot.you-at-the-terminal")
	if in.Group() {
		who = "bot.owner-at-the-terminal"
	}
	head := render.Styled(render.Bold, b.opts.Lang.Of(in.Chat).Text(who))
	c := message.Content{Text: render.Concat(head, render.Plain("\n"+t.Text)), Silent: true}
	if render.Len(c.Text.Text) > render.MessageLimit {
		c.Text, c.Files = head, []message.File{{Name: "prompt.txt", Content: t.Text}}
	}
	if err := b.messages.PostTyped(ctx, in, t.ID, c); err != nil {
		return err
	}
	if b.chat.typing.Load() == nil { // Run sends it
		return nil
	}
	return b.messages.SendOwed(ctx)
}

// CommandTyped carries out a command that the owner typed. The chat shows its answer. It returns ErrNoCommand for another
// text.
func (b *Bot) CommandTyped(ctx context.Context, t Typed) error {
	h := b.chat.typing.Load()
	if h == nil {
		return ErrNotReady
	}
	command, is := updates.ParseCommand(strings.TrimSpace(t.Text))
	spec, known := h.Command(command.Name)
	switch {
	case !is, !known:
		return ErrNoCommand
	case !spec.Allows(t.By.Role):
		return orchestrator.ErrNotAllowed
	case spec.Do == nil:
		return b.AbortTyped(ctx, t)
	}
	update := orchestrator.Update{ID: updateOf(t.ID), Raw: []byte(t.Text)}
	if done, err := b.handledBefore(ctx, update); done || err != nil {
		return err
	}
	if err := b.ShowTyped(ctx, t); err != nil {
		return err
	}
	spec.Do(ctx, updates.Request{
		Command: command, In: updates.NewMessage(t.By, update.ID, t.Text),
		File: func(context.Context) (string, []byte, error) { return "", nil, updates.ErrNoFile },
	})
	return nil
}

// updateOf returns the number of an update that stands for a typed text. Telegram's numbers are positive.
func updateOf(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return -int64(binary.BigEndian.Uint64(sum[:8])&math.MaxInt64) - 1
}

// handledBefore stores an update, and reports whether it was handled before. An update that was stored and not handled
// is handled again: the previous process died over it.
func (b *Bot) handledBefore(ctx context.Context, u orchestrator.Update) (bool, error) {
	fresh, err := b.opts.Journal.AppendUpdates(ctx, []orchestrator.Update{u})
	if err != nil || len(fresh) > 0 {
		return false, err
	}
	pending, err := b.opts.Journal.PendingUpdates(ctx, u.ID-1, 1)
	return err == nil && (len(pending) == 0 || pending[0].ID != u.ID), err
}

// AbortTyped stops the running turn of a conversation and everything that waits there. It returns ErrIdle if nothing
// does.
func (b *Bot) AbortTyped(ctx context.Context, t Typed) error {
	h := b.chat.typing.Load()
	if h == nil {
		return ErrNotReady
	}
	report, err := h.desk.Stop(ctx, t.By, func(*orchestrator.Stopping) {},
		func(orchestrator.AbortReport) orchestrator.Handled { return orchestrator.Handled{} })
	if err != nil {
		return err
	}
	h.commands.withdraw(ctx, t.By.Conversation)
	if !report.Running && report.Dropped+report.Questions == 0 && report.Unshown == "" {
		return ErrIdle
	}
	return b.ShowTyped(ctx, Typed{By: t.By, ID: t.ID, Text: "/abort"})
}
