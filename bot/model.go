package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// model does /model.
func (c *commands) model(ctx context.Context, r updates.Request) {
	if r.Args != "" {
		page, later, err := c.menus.ModelByName(ctx, r.In.By(), r.Args)
		if err == nil && later != nil {
			c.answerTwice(ctx, r, page, later)
			return
		}
		c.reply(ctx, r, tgapi.Answer{Edit: page}, err)
		return
	}
	page, sent, err := c.menus.Model(ctx, r.In.By())
	if err == nil && sent != nil {
		c.closer.AnswerFollowed(ctx, r.In, page.Text, page.Keyboard, sent)
		return
	}
	c.reply(ctx, r, tgapi.Answer{Edit: page}, err)
}

// answerTwice shows a page at once, and then the one that later gives in its place. Only that finishes the command: the next process does
// it again if ductor ends before, and what the user sends meanwhile comes after it.
func (c *commands) answerTwice(ctx context.Context, r updates.Request, now tgapi.Page, later func(context.Context) (tgapi.Page, error)) {
	var shown atomic.Pointer[message.Content]
	show := func(page tgapi.Page) message.Content {
		content := message.Content{Text: render.Plain(page.Text), Keyboard: page.Keyboard, ReplyTo: r.In.Quote(), Life: message.Changes}
		shown.Store(&content)
		return content
	}
	show(now)
	m := c.messages.Early(message.Spec{
		Key: "answer/" + rand.Text(), To: r.In.Conversation, Content: func(context.Context) (message.Content, error) { return *shown.Load(), nil },
	})
	page, err := later(ctx)
	if errors.Is(err, orchestrator.ErrShutdown) {
		return
	}
	if err != nil {
		p := c.lang.Of(r.In.Conversation.Chat)
		c.log.Error("command failed", "command", r.Name, "update", r.In.Update, "err", err)
		page = tgapi.Page{Text: p.Text("bot.log-says", p.Text("bot.not-done"))}
	}
	if row, owed := m.Keep(show(page)); owed {
		m.Kept(c.closer.Finish(ctx, r.In.Updates(), row))
		return
	}
	c.closer.Finish(ctx, r.In.Updates())
}
