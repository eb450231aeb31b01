package bot

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// feedback makes requests that users can do without: edits, reactions and similar hints. The requests are not stored,
// so they may get lost. All methods except Answer return before the request is made. Edit, EditRich, Unbutton and
// Rebutton do nothing if the message is 0.
type feedback interface {
	// React adds an emoji reaction to a user's message after a delay. It adds none if the bot sends something else to
	// the chat during the delay.
	React(id orchestrator.ConversationID, message int, emoji string, delay time.Duration)
	// Answer ends the loading animation of the button that the user pressed, and shows a short text, unless it is
	// empty. query is the ID of the press. Answer waits until the request is made.
	Answer(ctx context.Context, query, text string)
	// Edit changes a message of the bot. If several edits of the message are waiting, only the newest is made.
	Edit(id orchestrator.ConversationID, message int, text string, k tgapi.Keyboard)
	// EditRich is like Edit, but for text with formatting.
	EditRich(id orchestrator.ConversationID, message int, t render.Text, k tgapi.Keyboard)
	// Unbutton removes the buttons from a message of the bot.
	Unbutton(id orchestrator.ConversationID, message int)
	// Rebutton replaces the buttons of a message of the bot.
	Rebutton(id orchestrator.ConversationID, message int, k tgapi.Keyboard)
	// Remove deletes a user's message that contains a secret. If the bot has no right to delete it, Remove asks the
	// user to delete it.
	Remove(id orchestrator.ConversationID, message int)
	// Tidy deletes a message that users no longer need, if the bot has the right to do so.
	Tidy(chat int64, message int)
	// Say sends a text.
	Say(id orchestrator.ConversationID, text string)
	// Slowed returns how Telegram currently limits messages to the chat.
	Slowed(chat int64) outbox.Slowdown
}

// feedbackClient contains the methods of tgapi.Client that outboxFeedback needs.
type feedbackClient interface {
	React(ctx context.Context, chat int64, message int, emoji string) error
	AnswerCallback(ctx context.Context, query, text string) error
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	EditKeyboard(ctx context.Context, chat int64, message int, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
	Send(ctx context.Context, m tgapi.Message) (int, error)
}

// outboxFeedback implements feedback with an outbox. The requests do not use the caller's context: a reaction may be
// sent after the update has been handled, when the context of the update has ended.
type outboxFeedback struct {
	out    *outbox.Outbox
	client feedbackClient
	lang   *lang.Choices
	log    *slog.Logger
}

func (v *outboxFeedback) React(id orchestrator.ConversationID, message int, emoji string, delay time.Duration) {
	v.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(id.Chat), Delivery: outbox.Optional, Priority: outbox.Indicator, Idempotent: true,
		Delay: delay,
		Run:   func(ctx context.Context) error { return v.client.React(ctx, id.Chat, message, emoji) },
	}, v.missed("reaction", id))
}

// answerPatience is how long the answer to a button press may wait in the outbox. Telegram apps do not wait much
// longer.
const answerPatience = 15 * time.Second

// maxAnswer is the maximum length of the answer to a button press, in characters.
const maxAnswer = 200

func (v *outboxFeedback) Answer(ctx context.Context, query, text string) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	err := v.out.Do(ctx, outbox.Call{
		Priority: outbox.Awaited, Idempotent: true,
		Run: func(ctx context.Context) error {
			return v.client.AnswerCallback(ctx, query, render.ShortenPlain(text, maxAnswer))
		},
	})
	v.missed("answer", orchestrator.ConversationID{})(err)
}

func (v *outboxFeedback) Edit(id orchestrator.ConversationID, message int, text string, k tgapi.Keyboard) {
	v.EditRich(id, message, render.Unchanged(text), k)
}

func (v *outboxFeedback) EditRich(id orchestrator.ConversationID, message int, t render.Text, k tgapi.Keyboard) {
	if message == 0 {
		return
	}
	// This edit sets the buttons too, so a waiting request to remove them is no longer needed.
	v.out.Retract(outbox.ChatOf(id.Chat), unbuttonKey(message))
	v.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(id.Chat), Delivery: outbox.Newest, Priority: outbox.Awaited, Idempotent: true,
		Key: "own/" + strconv.Itoa(message),
		Run: func(ctx context.Context) error {
			return v.client.Edit(ctx, id.Chat, message, t, k)
		},
	}, v.missed("edit", id))
}

func (v *outboxFeedback) Unbutton(id orchestrator.ConversationID, message int) {
	v.Rebutton(id, message, nil)
}

func (v *outboxFeedback) Rebutton(id orchestrator.ConversationID, message int, k tgapi.Keyboard) {
	if message == 0 {
		return
	}
	v.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(id.Chat), Delivery: outbox.Newest, Priority: outbox.Awaited, Idempotent: true,
		Key: unbuttonKey(message),
		Run: func(ctx context.Context) error { return v.client.EditKeyboard(ctx, id.Chat, message, k) },
	}, v.missed("buttons", id))
}

func unbuttonKey(message int) string { return "unbutton/" + strconv.Itoa(message) }

func (v *outboxFeedback) Remove(id orchestrator.ConversationID, message int) {
	post := func(idempotent bool, run func(context.Context) error, done func(error)) {
		v.out.Go(context.Background(), outbox.Call{
			Chat: outbox.ChatOf(id.Chat), Priority: outbox.Awaited, Key: "remove/" + strconv.Itoa(message),
			Idempotent: idempotent, Run: run,
		}, done)
	}
	post(true, func(ctx context.Context) error { return v.client.Delete(ctx, id.Chat, message) }, func(err error) {
		if err == nil || errors.Is(err, outbox.ErrClosed) {
			return
		}
		v.log.Warn("a secret answer could not be deleted from the chat", "chat", id.Chat, "topic", id.Topic, "err", err)
		post(false, func(ctx context.Context) error {
			_, err := v.client.Send(ctx, tgapi.Message{
				To: id, ReplyTo: message, Text: render.Unchanged(v.lang.Of(id.Chat).Text("bot.delete-secret")),
			})
			return err
		}, v.missed("deletion", id))
	})
}

func (v *outboxFeedback) Tidy(chat int64, message int) {
	v.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(chat), Priority: outbox.Housekeeping, Key: "tidy/" + strconv.Itoa(message),
		Idempotent: true,
		Run:        func(ctx context.Context) error { return v.client.Delete(ctx, chat, message) },
	}, v.missed("deletion", orchestrator.ConversationID{Chat: chat}))
}

func (v *outboxFeedback) Say(id orchestrator.ConversationID, text string) {
	v.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(id.Chat), Priority: outbox.Awaited, Key: "say",
		Run: func(ctx context.Context) error {
			_, err := v.client.Send(ctx, tgapi.Message{To: id, Text: render.Unchanged(text)})
			return err
		},
	}, v.missed("message", id))
}

func (v *outboxFeedback) Slowed(chat int64) outbox.Slowdown { return v.out.Slowed(chat) }

// missed returns a function that logs a failed request. It uses a low log level, because users can do without these
// requests.
func (v *outboxFeedback) missed(what string, id orchestrator.ConversationID) func(error) {
	return func(err error) {
		if err != nil && !errors.Is(err, outbox.ErrDropped) && !errors.Is(err, outbox.ErrReplaced) {
			v.log.Debug("a sign was not shown", "what", what, "chat", id.Chat, "topic", id.Topic, "err", err)
		}
	}
}
