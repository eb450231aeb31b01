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
	Text     render.Text    // content of a plain message; at most 4096 UTF-16 units
	Rich     []render.Block // content of a rich message, instead of Text; nil for a plain message
	Keyboard Keyboard
	ReplyTo  int  // ID of the message to which this message replies, unless it was deleted; 0: no reply
	Silent   bool // true if users get no notification
}

// Send sends a message and returns its ID. Not idempotent.
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

// sendRich sends a rich message. If the server does not support rich messages, the fault is NoMethod.
func (c *Client) sendRich(ctx context.Context, m Message) (int, error) {
	p := &telegram.SendRichMessageParams{
		ChatID: m.To.Chat, MessageThreadID: thread(m.To.Topic), RichMessage: c.rich(m.Rich),
		DisableNotification: m.Silent, ReplyParameters: replyTo(m.ReplyTo), ReplyMarkup: markup(m.Keyboard),
	}
	id, err := send(ctx, c, "sendRichMessage", c.api.SendRichMessage, p)
	return id, missing(err)
}

// missing sets the kind of an error "404 Not Found" to NoMethod. Telegram also returns this error for an invalid token,
// but earlier requests have shown that the token is valid.
func missing(err error) error {
	call, ok := err.(*CallError)
	if !ok || call.Fault.Code != http.StatusNotFound {
		return err
	}
	noMethod := *call
	noMethod.Fault.Kind = NoMethod
	return &noMethod
}

// EditRich replaces a message by a rich message with the given blocks and buttons; see Edit.
func (c *Client) EditRich(ctx context.Context, chat int64, message int, blocks []render.Block, k Keyboard) error {
	content := c.rich(blocks)
	p := &telegram.EditMessageTextParams{
		ChatID: chat, MessageID: message, RichMessage: &content, ReplyMarkup: markup(k),
	}
	return unchanged(call(ctx, c, "editMessageText", c.api.EditMessageText, p))
}
