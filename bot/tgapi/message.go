package tgapi

import (
	"context"
	"net/http"

	telegram "github.com/go-telegram/bot"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// Message is a message to send.
type Message struct {
	To       orchestrator.ConversationID
	Text     render.Text    // at most 4096 UTF-16 units
	Rich     []render.Block // instead of Text; nil for a message that is not rich
	Keyboard Keyboard
	ReplyTo  int  // a message to answer to; sent all the same when that one is gone. 0 for none
	Silent   bool // no sound on the other side
}

// Send sends m and returns the id of the new message. It is not idempotent.
func (c *Client) Send(ctx context.Context, m Message) (int, error) {
	if m.Rich != nil {
		return c.sendRich(ctx, m)
	}
	text := c.scrub.Text(m.Text)
	p := &telegram.SendMessageParams{
		ChatID: m.To.Chat, MessageThreadID: thread(m.To.Topic),
		Text: text.Text, Entities: entities(text.Entities), LinkPreviewOptions: noPreview(),
		DisableNotification: m.Silent, ReplyParameters: replyTo(m.ReplyTo), ReplyMarkup: markup(m.Keyboard),
	}
	return send(ctx, c, "sendMessage", c.api.SendMessage, p)
}

// sendRich sends a rich message. A server that does not know them gives the fault NoMethod.
func (c *Client) sendRich(ctx context.Context, m Message) (int, error) {
	p := &telegram.SendRichMessageParams{
		ChatID: m.To.Chat, MessageThreadID: thread(m.To.Topic), RichMessage: c.rich(m.Rich),
		DisableNotification: m.Silent, ReplyParameters: replyTo(m.ReplyTo), ReplyMarkup: markup(m.Keyboard),
	}
	id, err := send(ctx, c, "sendRichMessage", c.api.SendRichMessage, p)
	return id, missing(err)
}

// missing is err, with NoMethod for its kind if Telegram said that there is no such method: the token is good, since other
// calls succeed with it.
func missing(err error) error {
	call, ok := err.(*CallError)
	if !ok || call.Fault.Code != http.StatusNotFound {
		return err
	}
	noMethod := *call
	noMethod.Fault.Kind = NoMethod
	return &noMethod
}

// EditRich gives a message a rich content and a keyboard, whatever it showed before; see Edit.
func (c *Client) EditRich(ctx context.Context, chat int64, message int, blocks []render.Block, k Keyboard) error {
	content := c.rich(blocks)
	p := &telegram.EditMessageTextParams{ChatID: chat, MessageID: message, RichMessage: &content, ReplyMarkup: markup(k)}
	return unchanged(call(ctx, c, "editMessageText", c.api.EditMessageText, p))
}
