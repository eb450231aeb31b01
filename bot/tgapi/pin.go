package tgapi

import (
	"context"

	telegram "github.com/go-telegram/bot"
)

// Pin pins a message without a sound. Idempotent, but each call adds a message to the chat that says so.
func (c *Client) Pin(ctx context.Context, chat int64, message int) error {
	return unchanged(c.call(ctx, "pinChatMessage", func(ctx context.Context) error {
		_, err := c.api.PinChatMessage(ctx, &telegram.PinChatMessageParams{ChatID: chat, MessageID: message, DisableNotification: true})
		return err
	}))
}

// Unpin undoes Pin. Idempotent.
func (c *Client) Unpin(ctx context.Context, chat int64, message int) error {
	return c.call(ctx, "unpinChatMessage", func(ctx context.Context) error {
		_, err := c.api.UnpinChatMessage(ctx, &telegram.UnpinChatMessageParams{ChatID: chat, MessageID: message})
		return err
	})
}
