package bot

import (
	"context"
	"errors"

	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// Steer hands the waiting prompt to the turn that runs.
func (turnButtons) Steer(turn cli.TurnID) tgapi.Button {
	return turnButton("↪ Steer", actSteer, turn)
}

// Interrupt ends the turn that runs and runs the waiting one.
func (turnButtons) Interrupt(turn cli.TurnID) tgapi.Button {
	return turnButton("⚡ Interrupt", actInterrupt, turn)
}

const lateSentence = "Too late: it no longer waits."

func (c *callbacks) steer(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	err := c.desk.Steer(ctx, turn, p.By)
	switch {
	case err == nil:
		return "The agent has it.", nil
	case errors.Is(err, orchestrator.ErrCannotSteer):
		c.queue.promote(p.By.Conversation, turn)
		return "The agent takes no message while it works: this one runs next.", nil
	case errors.Is(err, orchestrator.ErrSteerUnknown):
		return "It is unknown whether it reached the agent.", nil
	case errors.Is(err, orchestrator.ErrNotWaiting):
		c.voice.Unbutton(p.By.Conversation, p.Message)
		return lateSentence, nil
	}
	return "", err
}

func (c *callbacks) interrupt(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	err := c.desk.Interrupt(ctx, turn, p.By)
	switch {
	case err == nil:
		c.queue.promote(p.By.Conversation, turn)
		return "The running turn is stopped; this one runs next.", nil
	case errors.Is(err, orchestrator.ErrNotWaiting):
		c.voice.Unbutton(p.By.Conversation, p.Message)
		return lateSentence, nil
	}
	return "", err
}
