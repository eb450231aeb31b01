package tgapi

import (
	"context"

	telegram "github.com/go-telegram/bot"
)

// Pin pins a message without a sound. Idempotent, but each call adds a message to the chat that says so.
func (c *Client) Pin(ctx context.Context, chat int64, message int) error {
	return unchanged(call(ctx, c, "pinChatMessage", c.api.PinChatMessage, &telegram.PinChatMessageParams{ChatID: chat, MessageID: message, DisableNotification: true}))
}

// Unpin undoes Pin. Idempotent.
func (c *Client) Unpin(ctx context.Context, chat int64, message int) error {
	return call(ctx, c, "unpinChatMessage", c.api.UnpinChatMessage, &telegram.UnpinChatMessageParams{ChatID: chat, MessageID: message})
}
