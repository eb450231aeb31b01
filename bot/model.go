package bot

import (
	"context"
	"crypto/rand"
	"sync/atomic"

	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// modelCommand handles /model.
type modelCommand struct {
	menus    *menu.Menus
	messages *message.Messages
	finisher *updates.Finisher
	reply    func(ctx context.Context, r updates.Request, a tgapi.Answer, err error) // sends the answer to the command
}

func (c modelCommand) do(ctx context.Context, r updates.Request) {
	if r.Args != "" {
		c.byName(ctx, r)
		return
	}
	defer c.offer(r)
	page, sent, err := c.menus.Model(ctx, r.In.Press)
	if err == nil && sent != nil {
		c.finisher.AnswerFollowed(ctx, r.In, page.Text, page.Keyboard, sent)
		return
	}
	c.reply(ctx, r, tgapi.Answer{Edit: page}, err)
}

// offer sends messages that offer to add newly found agents, if there are any.
func (c modelCommand) offer(r updates.Request) {
	c.menus.Offer(r.In.Press, func(ctx context.Context, page tgapi.Page) error {
		return c.messages.Keep(ctx, message.Compose(r.In.Conversation, message.Content{
			Text: render.Plain(page.Text), Keyboard: page.Keyboard, Silent: true,
		}))
	})
}

// byName selects the model with the name that the user wrote. While agents are still listing their models, byName first
// sends a message that asks the user to wait, and later edits this message to show the result. It marks the update as
// handled only after the edit. The user's next messages wait until then. If ductor stops before the edit, the next
// process runs the command again.
func (c modelCommand) byName(ctx context.Context, r updates.Request) {
	page, later, err := c.menus.ModelByName(ctx, r.In.Press, r.Args)
	if err != nil || later == nil {
		c.reply(ctx, r, tgapi.Answer{Edit: page}, err)
		return
	}
	var shown atomic.Pointer[message.Content]
	show := func(page tgapi.Page, lifecycle message.Lifecycle) message.Content {
		content := message.Content{
			Text: render.Plain(page.Text), Keyboard: page.Keyboard, ReplyTo: r.In.Quote(), Lifecycle: lifecycle,
		}
		shown.Store(&content)
		return content
	}
	show(page, message.Growing)
	m := c.messages.Early(message.Spec{
		Key: "model/" + rand.Text(), To: r.In.Conversation, Content: func(context.Context) (message.Content, error) {
			return *shown.Load(), nil
		},
	})
	if page, err = later(ctx); err != nil {
		m.Kept(false)
		c.reply(ctx, r, tgapi.Answer{}, err)
		return
	}
	var rows []orchestrator.Message
	last := show(page, message.Keep)
	m.Announce(last)
	row, owed := m.Keep(last)
	if owed {
		rows = append(rows, row)
	}
	stored := c.finisher.Finish(ctx, r.In.Updates, rows...)
	if owed {
		m.Kept(stored)
	}
}
