package bot

import (
	"cmp"
	"context"
	"strconv"

	"ductor/bot/approval"
	"ductor/bot/card"
	"ductor/bot/cron"
	"ductor/bot/display"
	"ductor/bot/files"
	"ductor/bot/message"
	"ductor/bot/project"
	"ductor/bot/render"
	"ductor/bot/sessions"
	"ductor/bot/silence"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Chat implements the interfaces through which the orchestrator writes to Telegram: cards, waiting prompts, notices,
// approvals and questions. It can be used from New until Close, and is safe for concurrent use.
type Chat struct {
	cards     *card.Cards
	queue     *queueCards
	messages  *message.Messages
	files     *files.Sender // nil if no files of projects are sent
	silence   *silence.Watcher
	icons     *project.Icons
	approvals *approval.Screen
	display   *display.Screen
	lost      *lostAnswers
	names     *tgapi.ChatNames
	lang      *lang.Choices
	typing    *typing
}

var (
	_ orchestrator.Chat           = (*Chat)(nil)
	_ orchestrator.ApprovalScreen = (*Chat)(nil)
	_ orchestrator.FileSender     = (*Chat)(nil)
)

// ShowApproval shows the current state of an approval or a question. Before Run starts, ShowApproval only stores the
// state in memory, and Run sends it later.
func (c *Chat) ShowApproval(a orchestrator.Approval, isNew bool) {
	c.approvals.Show(a, isNew)
	if a.State != orchestrator.ApprovalOpen && !c.approvals.HasOpen(a.Conversation) {
		c.queue.removeHints(a.Conversation)
	}
}

// Card implements orchestrator.Chat.
func (c *Chat) Card(t orchestrator.Turn) orchestrator.Card {
	return c.turnCard(t, c.cards.Open(t))
}

// Reopen implements orchestrator.Chat.
func (c *Chat) Reopen(ctx context.Context, t orchestrator.Turn) orchestrator.Card {
	c.silence.Forget(t.ID, t.Prompt.Conversation)
	return c.turnCard(t, c.cards.Reopen(ctx, t))
}

// Queued implements orchestrator.Chat.
func (c *Chat) Queued(t orchestrator.Turn, ahead int) {
	c.queue.queued(t, ahead, func() string {
		return c.approvals.WaitingHint(t.Prompt.Conversation, t.Prompt.Person)
	})
}

// Unqueued implements orchestrator.Chat. It also changes a message that a previous process sent.
func (c *Chat) Unqueued(t orchestrator.Turn) { c.queue.unqueued(t) }

// Redeliver implements orchestrator.Chat.
func (c *Chat) Redeliver(ctx context.Context, t orchestrator.Turn) error {
	c.silence.Forget(t.ID, t.Prompt.Conversation)
	c.icons.Ended(t.Prompt.Conversation, t.Outcome)
	c.queue.edits.Ended(ctx, t, t.Outcome)
	if err := c.cards.Redeliver(ctx, t); err != nil {
		return err
	}
	return c.files.Deliver(ctx, t, t.Outcome)
}

// SendFiles implements orchestrator.FileSender.
func (c *Chat) SendFiles(ctx context.Context, to orchestrator.ConversationID, at orchestrator.FilePlace, key string,
	files []orchestrator.OutFile) ([]*orchestrator.FileError, error) {
	return c.files.SendFiles(ctx, to, at, key, files)
}

// ShowAgain implements orchestrator.Chat. It also sends files again that Telegram rejected.
func (c *Chat) ShowAgain(ctx context.Context, t orchestrator.Turn) error {
	if err := c.cards.ShowAgain(ctx, t); err != nil {
		return err
	}
	return c.files.Deliver(ctx, t, t.Outcome)
}

// Extend implements orchestrator.Chat.
func (c *Chat) Extend(ctx context.Context, t orchestrator.Turn) error { return c.cards.Extend(ctx, t) }

// Remark adds a line below the result of a turn, without a notification; see card.Cards.Remark.
func (c *Chat) Remark(ctx context.Context, t orchestrator.Turn, line string) error {
	return c.cards.Remark(ctx, t, line)
}

// Say sends a message about a scheduled job whose turn never ran; see card.Cards.Say.
func (c *Chat) Say(ctx context.Context, t orchestrator.Turn, text string, job orchestrator.JobID) error {
	return c.cards.Say(ctx, t, text, tgapi.Keyboard{
		{cron.ShowButton(c.lang.Of(t.Prompt.Conversation.Chat), job)},
	})
}

// Composed returns a notice. The caller stores the notice and then calls Wake to send it. If logIn is not empty, the
// notice has a button to log in to that account.
func (c *Chat) Composed(id orchestrator.ConversationID, text string,
	logIn orchestrator.LogInID) *orchestrator.Message {
	content := message.Content{Text: render.Markdown(text)}
	if logIn != "" {
		content.Keyboard = tgapi.Keyboard{{tgapi.LogInButton(c.lang.Of(id.Chat), logIn)}}
	}
	m := message.Compose(id, content)
	return &m
}

// Report sends Markdown about an agent's session in a terminal. If session is not empty, the message has a button to
// continue that session in the chat.
func (c *Chat) Report(ctx context.Context, to orchestrator.ConversationID, text string, agent cli.Agent,
	session cli.AgentSessionID) error {
	content := message.Content{Text: render.Markdown(text)}
	if b, ok := sessions.TakeOver(c.lang.Of(to.Chat), agent, session); ok && session != "" {
		content.Keyboard = tgapi.Keyboard{{b}}
	}
	return c.messages.Keep(ctx, message.Compose(to, content))
}

// Wake starts to send notices that other packages have stored.
func (c *Chat) Wake() { c.messages.Wake() }

// SendFor implements mcp.Chat.
func (c *Chat) SendFor(ctx context.Context, t orchestrator.Turn, text string) error {
	return c.messages.PostAside(ctx, t.Prompt.Conversation, t.ID, text)
}

// Withdraw implements orchestrator.Chat.
func (c *Chat) Withdraw(ctx context.Context, t orchestrator.Turn) error {
	return c.messages.Withdraw(ctx, t.Prompt.Conversation, message.AsidesOf(t.ID))
}

// Notice implements orchestrator.Chat. The text is Markdown.
func (c *Chat) Notice(ctx context.Context, id orchestrator.ConversationID, text string) error {
	return c.messages.Post(ctx, id, text)
}

// UserName returns the name of a user, or the user's ID if the name is unknown.
func (c *Chat) UserName(id orchestrator.PersonID) string {
	return cmp.Or(c.names.User(id), strconv.FormatInt(int64(id), 10))
}

// turnCard shows a turn in the chat. Besides the card, it updates the icon of the topic. It sends a notice if the agent
// is silent for long, and sends the files that the answer names. Show must not be called concurrently.
type turnCard struct {
	orchestrator.Card
	chat    *Chat
	turn    orchestrator.Turn
	silence *silence.Turn
	topic   *project.TopicTurn
}

func (c *Chat) turnCard(t orchestrator.Turn, card orchestrator.Card) orchestrator.Card {
	return turnCard{Card: card, chat: c, turn: t, silence: c.silence.Follow(t), topic: c.icons.Follow(t)}
}

// Show implements orchestrator.Card.
func (c turnCard) Show(ev cli.Event) {
	c.silence.Observe(ev)
	c.topic.Observe(ev)
	c.Card.Show(ev)
}

// Finish implements orchestrator.Card.
func (c turnCard) Finish(ctx context.Context, o orchestrator.Outcome) error {
	c.chat.icons.Ended(c.turn.Prompt.Conversation, o)
	c.silence.Ended()
	c.chat.queue.edits.Ended(ctx, c.turn, o)
	if err := c.Card.Finish(ctx, o); err != nil {
		return err
	}
	return c.chat.files.Deliver(ctx, c.turn, o)
}

// Leave implements orchestrator.Card.
func (c turnCard) Leave(ctx context.Context) {
	c.silence.Left()
	c.Card.Leave(ctx)
}
