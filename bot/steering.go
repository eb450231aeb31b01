package bot

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// Steer returns a button that adds the waiting prompt to the running turn.
func (b turnButtons) Steer(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("bot.steer"), actSteer, turn)
}

// Interrupt returns a button that stops the running turn and runs the waiting one.
func (b turnButtons) Interrupt(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("bot.interrupt"), actInterrupt, turn)
}

// StartOver returns a button that stops the running turn, and then runs its prompt and the waiting prompt together.
func (b turnButtons) StartOver(waiting orchestrator.Turn) tgapi.Button {
	return tgapi.NewButton(b.lang.Text("bot.start-over-both"), actBoth,
		strconv.Itoa(waiting.Prompt.PartOf)+":"+string(waiting.ID))
}

func (c *callbacks) startOver(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	first, turn, _ := strings.Cut(what, ":")
	message, _ := strconv.Atoi(first) // 0 if first is not a number; no turn has this message
	err := c.desk.StartOver(ctx, message, cli.TurnID(turn), p.By)
	switch {
	case err == nil:
		c.queue.promote(p.By.Conversation, cli.TurnID(turn))
		return tgapi.Answer{Text: say.Text("bot.starting-over")}, nil
	case errors.Is(err, orchestrator.ErrNotWaiting):
		return tgapi.Answer{Text: say.Text("bot.too-late")}, nil
	}
	return tgapi.Answer{}, err
}

func (c *callbacks) steer(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	err := c.desk.Steer(ctx, turn, p.By)
	switch {
	case err == nil:
		return say.Text("bot.steered"), nil
	case errors.Is(err, orchestrator.ErrCannotSteer):
		c.queue.promote(p.By.Conversation, turn)
		return say.Text("bot.cannot-steer"), nil
	case errors.Is(err, orchestrator.ErrSteerUnknown):
		return say.Text("bot.steer-unknown"), nil
	case errors.Is(err, orchestrator.ErrNotWaiting):
		c.unbutton(p)
		return say.Text("bot.too-late"), nil
	}
	return "", err
}

func (c *callbacks) interrupt(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	err := c.desk.Interrupt(ctx, turn, p.By)
	switch {
	case err == nil:
		c.queue.promote(p.By.Conversation, turn)
		return say.Text("bot.interrupted"), nil
	case errors.Is(err, orchestrator.ErrNotWaiting):
		c.unbutton(p)
		return say.Text("bot.too-late"), nil
	}
	return "", err
}

func (c *callbacks) show(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	if err := c.desk.ShowAgain(ctx, turn, p.By); err != nil {
		return "", err
	}
	c.unbutton(p)
	return "", nil
}
