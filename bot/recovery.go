package bot

import (
	"context"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// Actions of the buttons that ductor offers after a turn failed or was interrupted.
const (
	actAgain   = "r"
	actFresh   = "f"
	actSummary = "y"
	actCompact = "m"
	actLater   = "l"
	actHandOff = "g"
	actDrop    = "d"
	actLift    = "lb"
)

// perRow is the number of buttons in one row of an offer.
const perRow = 2

// Offer implements card.Buttons.
func (b turnButtons) Offer(turn cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard {
	var k tgapi.Keyboard
	for i, what := range r.Offer {
		if i%perRow == 0 {
			k = append(k, nil)
		}
		k[len(k)-1] = append(k[len(k)-1], b.choice(turn, what, r))
	}
	return k
}

func (b turnButtons) choice(turn cli.TurnID, what orchestrator.Action, r orchestrator.Recovery) tgapi.Button {
	p := b.lang
	switch what {
	case orchestrator.ActionFresh:
		return turnButton(p.Text("bot.start-fresh"), actFresh, turn)
	case orchestrator.ActionSummary:
		return turnButton(p.Text("bot.start-summary"), actSummary, turn)
	case orchestrator.ActionCompact:
		return turnButton(p.Text("bot.compact"), actCompact, turn)
	case orchestrator.ActionLater:
		return turnButton(p.Text("bot.run-at", p.Clock(r.At.Local(), time.Now())), actLater, turn)
	case orchestrator.ActionHandOff:
		return turnButton(p.Text("bot.hand-off", render.AgentName(p, r.Other)), actHandOff, turn)
	case orchestrator.ActionLogIn:
		return tgapi.LogInButton(p, r.Who)
	case orchestrator.ActionLift:
		return turnButton(p.Text("bot.lift"), actLift, turn)
	case orchestrator.ActionDrop:
		return turnButton(p.Text("common.cancel"), actDrop, turn)
	}
	return turnButton(p.Text("bot.run-again"), actAgain, turn)
}

// EndRetries returns a button that cancels the next retry of a turn.
func (b turnButtons) EndRetries(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("common.cancel"), actDrop, turn)
}

// choose carries out a user's choice after a turn.
func (c *callbacks) choose(ctx context.Context, p updates.Press, what orchestrator.Action,
	turn cli.TurnID) (string, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	receipt, err := c.desk.Choose(ctx, turn, what, p.By)
	if err != nil {
		return "", err
	}
	if receipt.Full {
		return say.Text("bot.queue-full"), nil
	}
	// If the turn has ended since the press, its message may already have new buttons. So remove the buttons only if
	// the choice created another turn.
	if receipt.Turn != turn {
		c.feedback.Unbutton(p.By.Conversation, p.Message)
	}
	switch {
	case what == orchestrator.ActionDrop:
		return say.Text("bot.nothing-more"), nil
	case !receipt.At.IsZero():
		return say.Text("bot.runs-at", say.Clock(receipt.At.Local(), time.Now())), nil
	case receipt.Ahead > 0:
		return say.Text("bot.again-queued", receipt.Ahead), nil
	}
	return say.Text("bot.again-runs"), nil
}

// recoveries maps the actions of buttons to choices after a turn.
func recoveries() map[string]orchestrator.Action {
	return map[string]orchestrator.Action{
		actAgain: orchestrator.ActionAgain, actFresh: orchestrator.ActionFresh, actSummary: orchestrator.ActionSummary,
		actCompact: orchestrator.ActionCompact, actLater: orchestrator.ActionLater,
		actHandOff: orchestrator.ActionHandOff,
		actDrop:    orchestrator.ActionDrop, actLift: orchestrator.ActionLift,
	}
}

func turnButton(text, act string, turn cli.TurnID) tgapi.Button {
	return tgapi.NewButton(text, act, string(turn))
}
