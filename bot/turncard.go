package bot

import (
	"context"

	"ductor/bot/project"
	"ductor/bot/silence"
	"ductor/cli"
	"ductor/orchestrator"
)

// turnCard shows a turn: in its card, in the icon of its topic, in a notice if its agent is silent, and with the files that its answer names.
// Its caller serializes Show.
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
