package bot

import (
	"context"
	"time"

	"ductor/bot/menu"
	"ductor/bot/outbox"
	"ductor/bot/project"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// topicPatience is the timeout for creating a topic.
const topicPatience = 30 * time.Second

// topicOpener creates topics in a group.
type topicOpener struct {
	out    *outbox.Outbox
	client *tgapi.Client
	icons  *project.Icons
}

func (o *topicOpener) OpenTopic(ctx context.Context, chat int64, name string) (topic int, err error) {
	ctx, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	err = o.out.Do(ctx, outbox.Call{
		Chat: outbox.ChatOf(chat), Priority: outbox.Awaited, Key: "topic",
		Run: func(ctx context.Context) (err error) {
			topic, err = o.client.OpenTopic(ctx, chat, name)
			return err
		},
	})
	if err == nil {
		err = o.icons.Opened(ctx, orchestrator.ConversationID{Chat: chat, Topic: topic})
	}
	return topic, err
}

// newTopics implements project.Topics for /newtopic.
type newTopics struct {
	*topicOpener
	menus *menu.Menus
	desk  Desk
}

var _ project.Topics = newTopics{}

func (t newTopics) Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool) {
	c, ok := t.menus.Named(ctx, in, name)
	return wantsOf(c), ok
}

func (t newTopics) SetModel(ctx context.Context, in orchestrator.ConversationID, w orchestrator.Wants) error {
	return t.desk.SetModel(ctx, in, w.Agent, w.Model, w.Effort)
}
