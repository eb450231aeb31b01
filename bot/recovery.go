package bot

import (
	"context"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// Actions of the buttons below a turn that failed or was interrupted.
const (
	actAgain   = "r"
	actFresh   = "f"
	actSummary = "y"
	actCompact = "m"
	actLater   = "l"
	actHandOff = "g"
	actDrop    = "d"
	actLift    = "lb"
	actAccount = "ac"
	actMode    = "mo"
	actNotAt   = "na" // cancels a planned run of the prompt; in the message that announces this run
)

// perRow is the number of buttons in one row.
const perRow = 2

// Offer implements card.Buttons.
func (b turnButtons) Offer(turn cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard {
	var k tgapi.Keyboard
	for _, what := range r.Offer {
		button := b.choice(turn, what, r)
		if len(button.Data) > tgapi.DataLimit { // omit the button if the account name is too long
			continue
		}
		if len(k) == 0 || len(k[len(k)-1]) == perRow {
			k = append(k, nil)
		}
		k[len(k)-1] = append(k[len(k)-1], button)
	}
	return k
}

func (b turnButtons) choice(turn cli.TurnID, what orchestrator.Action, r orchestrator.Recovery) tgapi.Button {
	p := b.lang
	if account, ok := what.Account(); ok {
		return tgapi.NewButton(p.Text("bot.hand-off", account.Label(p)), actAccount, string(account)+"@"+string(turn))
	}
	if mode, ok := what.Mode(); ok {
		return tgapi.NewButton(p.Text("bot.run-in-mode", mode), actMode, string(mode)+"@"+string(turn))
	}
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

// choose handles a button below a turn that failed or was interrupted.
func (c *callbacks) choose(ctx context.Context, p updates.Press, what orchestrator.Action,
	turn cli.TurnID) (a tgapi.Answer, err error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	receipt, err := c.desk.Choose(ctx, turn, what, p.By)
	if err != nil {
		return a, err
	}
	if receipt.Full {
		return tgapi.Answer{Text: say.Text("bot.queue-full")}, nil
	}
	// Remove the buttons only if the action created a new turn. If the action runs the old turn again, this turn may
	// already have ended again, and its message may have new buttons.
	if receipt.Turn != turn {
		c.feedback.Unbutton(p.By.Conversation, p.Message)
	}
	switch {
	case what == orchestrator.ActionDrop:
		a.Text = say.Text("bot.nothing-more")
	case !receipt.At.IsZero():
		a.Text = say.Text("bot.runs-at", say.Clock(receipt.At.Local(), time.Now()))
		a.Messages = []orchestrator.Message{message.Compose(p.By.Conversation, message.Content{
			Text: render.Plain("⏰ " + a.Text), ReplyTo: p.Message,
			Keyboard: tgapi.Keyboard{{turnButton(say.Text("common.cancel"), actNotAt, turn)}},
		})}
	case receipt.Ahead > 0:
		a.Text = say.Text("bot.again-queued", receipt.Ahead)
	default:
		a.Text = say.Text("bot.again-runs")
	}
	return a, nil
}

// cancelLater handles the button that cancels a planned run of a prompt. The message then offers to run the prompt now.
func (c *callbacks) cancelLater(ctx context.Context, p updates.Press, turn string) (tgapi.Answer, error) {
	if _, err := c.desk.Choose(ctx, cli.TurnID(turn), orchestrator.ActionDrop, p.By); err != nil {
		return tgapi.Answer{}, err
	}
	say := c.lang.Of(p.By.Conversation.Chat)
	return tgapi.Answer{Text: say.Text("bot.nothing-more"), Edit: tgapi.Page{
		Text:     say.Text("common.cancelled"),
		Keyboard: tgapi.Keyboard{{turnButton(say.Text("bot.run-again"), actAgain, cli.TurnID(turn))}},
	}}, nil
}

// pressAccount handles a button that runs the prompt again with another account.
func (c *callbacks) pressAccount(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
	account, turn, _ := strings.Cut(what, "@")
	return c.choose(ctx, p, orchestrator.ActionAccount(cli.Account(account)), cli.TurnID(turn))
}

// pressMode handles a button that runs the prompt again in another permission mode.
func (c *callbacks) pressMode(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
	mode, turn, _ := strings.Cut(what, "@")
	return c.choose(ctx, p, orchestrator.ActionMode(cli.PermissionMode(mode)), cli.TurnID(turn))
}

// recoveries maps the actions of the buttons below a failed turn to the orchestrator's actions.
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
