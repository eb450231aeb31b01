package tgapi

import (
	"context"
	"errors"

	telegram "github.com/go-telegram/bot"

	"ductor/bot/render"
)

// topicNameLimit is how long the name of a topic may be.
const topicNameLimit = 128

// OpenTopic opens a topic of a chat and returns its number; NoTopics, NoTopicRight. Telegram allows several of one name. It is not idempotent.
func (c *Client) OpenTopic(ctx context.Context, chat int64, name string) (topic int, err error) {
	p := &telegram.CreateForumTopicParams{ChatID: chat, Name: render.Cut(c.scrub.String(name), topicNameLimit)}
	topic, err = c.send(ctx, "createForumTopic", func(ctx context.Context) error {
		_, err := c.api.CreateForumTopic(ctx, p)
		return err
	})
	if err == nil && topic == 0 {
		err = errors.New("telegram createForumTopic: the answer names no topic")
	}
	return topic, err
}
