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
	Rich     []render.Block // instead of Text; nil for an ordinary message
	Keyboard Keyboard
	ReplyTo  int  // the message to reply to; 0 for none; Telegram sends the reply even if that message is gone
	Silent   bool // send without a sound
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

// sendRich sends a rich message. If the server does not support them, the fault is NoMethod.
func (c *Client) sendRich(ctx context.Context, m Message) (int, error) {
	p := &telegram.SendRichMessageParams{
		ChatID: m.To.Chat, MessageThreadID: thread(m.To.Topic), RichMessage: c.rich(m.Rich),
		DisableNotification: m.Silent, ReplyParameters: replyTo(m.ReplyTo), ReplyMarkup: markup(m.Keyboard),
	}
	id, err := send(ctx, c, "sendRichMessage", c.api.SendRichMessage, p)
	return id, missing(err)
}

// missing replaces the error by NoMethod if Telegram does not know the method. The token must be valid: other calls
// succeed.
func missing(err error) error {
	call, ok := err.(*CallError)
	if !ok || call.Fault.Code != http.StatusNotFound {
		return err
	}
	noMethod := *call
	noMethod.Fault.Kind = NoMethod
	return &noMethod
}

// EditRich replaces the content of a message by rich content and a keyboard; see Edit. The message may have shown any
// content.
func (c *Client) EditRich(ctx context.Context, chat int64, message int, blocks []render.Block, k Keyboard) error {
	content := c.rich(blocks)
	p := &telegram.EditMessageTextParams{
		ChatID: chat, MessageID: message, RichMessage: &content, ReplyMarkup: markup(k),
	}
	return unchanged(call(ctx, c, "editMessageText", c.api.EditMessageText, p))
}
