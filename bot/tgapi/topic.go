package tgapi

import (
	"context"
	"errors"
	"strings"

	telegram "github.com/go-telegram/bot"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// topicNameLimit is the maximum length of the name of a topic, in characters.
const topicNameLimit = 128

// OpenTopic creates a topic in a chat and returns its ID. Possible faults include NoTopics and NoTopicRight. A chat can
// have several topics with the same name. Not idempotent.
func (c *Client) OpenTopic(ctx context.Context, chat int64, name string) (topic int, err error) {
	p := &telegram.CreateForumTopicParams{ChatID: chat, Name: render.ShortenPlain(c.scrub.String(name), topicNameLimit)}
	topic, err = send(ctx, c, "createForumTopic", c.api.CreateForumTopic, p)
	if err == nil && topic == 0 {
		err = errors.New("telegram createForumTopic: the answer names no topic")
	}
	return topic, err
}

// TopicIcons returns the IDs of the icons that a topic can have. The keys are emoji, without variation selectors.
func (a *API) TopicIcons(ctx context.Context) (map[string]string, error) {
	var all []struct {
		Emoji string `json:"emoji"`
		ID    string `json:"custom_emoji_id"`
	}
	if err := a.Call(ctx, "getForumTopicIconStickers", struct{}{}, &all); err != nil {
		return nil, err
	}
	icons := map[string]string{}
	for _, s := range all {
		icons[strings.ReplaceAll(s.Emoji, "\ufe0f", "")] = s.ID
	}
	return icons, nil
}

// SetTopicIcon changes the icon of a topic. Idempotent, except that each change adds a service message to the topic.
func (c *Client) SetTopicIcon(ctx context.Context, in orchestrator.ConversationID, icon string) error {
	p := &telegram.EditForumTopicParams{ChatID: in.Chat, MessageThreadID: in.Topic, IconCustomEmojiID: icon}
	return unchanged(call(ctx, c, "editForumTopic", c.api.EditForumTopic, p))
}
