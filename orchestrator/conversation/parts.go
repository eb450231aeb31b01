package conversation

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// If a user forwards messages and adds a comment, Telegram delivers the comment before the forwarded messages, in
// separate updates. ductor adds the forwarded messages to the prompt with the comment, while the turn of that prompt
// waits or runs. See orchestrator.Prompt.PartOf.

// join merges a waiting turn into the turn to which its prompt belongs (Prompt.PartOf), if that turn is waiting, too.
func (c *conversation) join(ctx context.Context, t orchestrator.Turn) (joined bool, err error) {
	c.do(func(c *conversation) {
		of, i := c.ofMessage(t.Prompt.PartOf), c.find(t.ID)
		if of < 0 || i < 0 {
			return
		}
		if joined, err = c.mergePrompts(ctx, of, c.queue[of].turn.Prompt, t.Prompt); joined {
			c.drop(i)
		}
	})
	return joined, err
}

// mergePrompts combines two prompts into one prompt for a waiting turn. i is the index of this turn in the queue.
// mergePrompts returns false if the turn no longer waits.
func (c *conversation) mergePrompts(ctx context.Context, i int, first, second orchestrator.Prompt) (bool, error) {
	return c.updatePrompt(ctx, i, first.Text+"\n"+second.Text, slices.Concat(first.Attachments, second.Attachments))
}

// PromptSent implements turn.Conversation. It sends the agent the messages that belong to the turn's prompt
// (Prompt.PartOf) and arrived before the turn started.
func (c *conversation) PromptSent(ctx context.Context, t orchestrator.Turn) {
	if t.Prompt.Message == 0 {
		return
	}
	c.e.spawn(func() {
		var parts []orchestrator.Turn
		c.do(func(c *conversation) {
			for _, w := range c.queue {
				if w.turn.Prompt.PartOf == t.Prompt.Message {
					parts = append(parts, w.turn)
				}
			}
		})
		for _, p := range parts {
			by := orchestrator.Press{Conversation: c.id(), Person: p.Prompt.Person, Role: orchestrator.RoleUser}
			if err := c.e.Steer(ctx, p.ID, by); err != nil && !errors.Is(err, orchestrator.ErrCannotSteer) &&
				!errors.Is(err, orchestrator.ErrNotWaiting) {
				c.e.log.Warn("steer a part of a prompt", "turn", p.ID, "err", err)
			}
		}
	})
}

// StartOver implements bot.Desk.
func (e *Engine) StartOver(ctx context.Context, message int, waiting cli.TurnID, by orchestrator.Press) error {
	return e.do(by.Conversation, func(c *conversation) error {
		r, i := c.active.first(), c.find(waiting)
		if r == nil || r.turn.Prompt.Message != message || i < 0 {
			return orchestrator.ErrNotWaiting
		}
		if ok, err := c.mergePrompts(ctx, i, r.turn.Prompt, c.queue[i].turn.Prompt); !ok {
			return cmp.Or(err, orchestrator.ErrNotWaiting)
		}
		if err := c.promote(ctx, waiting); err != nil {
			return err
		}
		return c.replaceRunning(ctx)
	})
}
