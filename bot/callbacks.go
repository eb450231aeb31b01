package bot

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"ductor/bot/approval"
	"ductor/bot/card"
	"ductor/bot/changes"
	"ductor/bot/display"
	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/steps"
	"ductor/bot/tables"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Actions of buttons. The data of a button starts with its action. Most buttons also contain the ID of a turn, an
// approval or a job, so that they work after a restart. The buttons of a menu contain a random number. ductor stores
// this number only in memory, so these buttons do not work after a restart.
const (
	actShow      = "v"
	actCancel    = "c"
	actStop      = "h"
	actSteer     = "t"
	actInterrupt = "i"
	actBoth      = "B" // restart the running turn with its own prompt and the waiting prompt
)

// turnButtons creates buttons that concern a turn.
type turnButtons struct{ lang lang.Printer }

// ShowAgain returns a button that sends the result of the turn again.
func (b turnButtons) ShowAgain(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("bot.show-again"), actShow, turn)
}

// Steps implements card.Buttons.
func (b turnButtons) Steps(turn cli.TurnID) tgapi.Button { return steps.Button(b.lang, turn) }

// Tables implements card.Buttons.
func (b turnButtons) Tables(turn cli.TurnID, answer string) []tgapi.Button {
	return tables.Row(b.lang, turn, answer)
}

// Changes implements card.Buttons.
func (b turnButtons) Changes(turn cli.TurnID, c orchestrator.Changed) []tgapi.Button {
	return changes.Buttons(b.lang, string(turn), c)
}

// Stop returns a button that stops the running turn.
func (b turnButtons) Stop(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("bot.stop"), actStop, turn)
}

// Cancel returns a button that removes the turn from the queue.
func (b turnButtons) Cancel(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("common.cancel"), actCancel, turn)
}

// callbacks handles button presses. A press that comes too late or from another chat changes nothing.
type callbacks struct {
	desk     Desk
	finisher *updates.Finisher
	feedback feedback
	lang     *lang.Choices
	log      *slog.Logger
	queue    *queueCards
	menus    *menu.Menus
	store    orchestrator.MessageStore
	buttons  map[string]button // buttons by their action
}

// button contains the handler for all buttons with the same action, and the right that users need to press them. If the
// handler changes something, it checks further rights.
type button struct {
	right orchestrator.Right
	act   pressFunc
}

type pressFunc func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error)

// onTurn returns a pressFunc for buttons that contain the ID of a turn. The function act handles the press, and returns
// a short notice for the user.
func onTurn(act func(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error)) pressFunc {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		text, err := act(ctx, p, cli.TurnID(what))
		return tgapi.Answer{Text: text}, err
	}
}

// onScreen returns a pressFunc for a handler that needs the user and the button's data.
func onScreen(press func(context.Context, orchestrator.Press, string) (tgapi.Answer, error)) pressFunc {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		return press(ctx, p.By, what)
	}
}

// onMessage is like onScreen, for a handler that also needs the ID of the message with the button.
func onMessage(
	press func(ctx context.Context, by orchestrator.Press, message int, data string) (tgapi.Answer, error),
) pressFunc {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		return press(ctx, p.By, p.Message, what)
	}
}

// pressChanges handles a button of package changes.
func (s screens) pressChanges(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
	return s.changes.Press(ctx, p.By, tgapi.Pressed{Message: p.Editable, Buttons: p.Buttons}, what)
}

// inChat returns a pressFunc for a handler that does not need the user, because all users of a chat have the same
// rights.
func inChat(
	press func(ctx context.Context, in orchestrator.ConversationID, message int, data string) (tgapi.Answer, error),
) pressFunc {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		return press(ctx, p.By.Conversation, p.Message, what)
	}
}

func (c *callbacks) handle(ctx context.Context, p updates.Press) {
	say := c.lang.Of(p.By.Conversation.Chat)
	act, what, _ := strings.Cut(p.Data, ":")
	b, known := c.buttons[act]
	if !known {
		b.right = orchestrator.ChangeSettings
	}
	if !p.By.May(b.right) {
		c.finisher.Finish(ctx, p.By.Updates)
		c.feedback.Answer(ctx, p.Query, say.Text(updates.Refusal(p.By.Role)))
		return
	}
	a, err := tgapi.Stale(say), error(nil)
	if known && (p.Buttons == nil || p.Buttons.Has(p.Data)) {
		p.Editable, err = card.Editable(ctx, c.store, p.By, p.Pressed(), what)
		if err == nil {
			a, err = b.act(ctx, p, what)
		}
	}
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return // the update is still stored, so the next process handles it
	case err != nil:
		a.Text = c.refusal(p, err)
	case a.Shown().Text == "":
	case p.Editable != 0:
		c.feedback.EditRich(p.By.Conversation, p.Editable, a.Shown(), a.Edit.Keyboard)
	case a.Text == "" || len(a.Edit.Keyboard) > 0: // without a new message, the user would see no effect, or no buttons
		a.Messages = append(a.Messages, message.ComposePage(p.By.Conversation, a))
	}
	if a.Instead != nil {
		c.replace(p, *a.Instead)
	}
	c.finisher.Finish(ctx, p.By.Updates, a.Messages...)
	c.feedback.Answer(ctx, p.Query, a.Text)
}

func (c *callbacks) unbutton(p updates.Press) { c.feedback.Unbutton(p.By.Conversation, p.Editable) }

// replace replaces the pressed button by another one, or removes it.
func (c *callbacks) replace(p updates.Press, by tgapi.Button) {
	if p.Buttons != nil {
		c.feedback.Rebutton(p.By.Conversation, p.Editable, p.Buttons.Replaced(p.Data, by))
	}
}

// refusal returns the short text that explains why a button had no effect.
func (c *callbacks) refusal(p updates.Press, err error) string {
	say := c.lang.Of(p.By.Conversation.Chat)
	switch {
	case errors.Is(err, orchestrator.ErrRepeated):
		c.unbutton(p)
		return say.Text("bot.again-already")
	case errors.Is(err, orchestrator.ErrJobsFull):
		return say.Text("bot.jobs-full")
	case errors.Is(err, orchestrator.ErrBadChoice), errors.Is(err, orchestrator.ErrElsewhere),
		errors.Is(err, orchestrator.ErrNoTurn), errors.Is(err, orchestrator.ErrNoSession):
		return say.Text("common.stale-button")
	case errors.Is(err, orchestrator.ErrNotOwner):
		return say.Text("bot.not-owner")
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return say.Text(updates.Refusal(p.By.Role))
	case errors.Is(err, orchestrator.ErrStillOpen):
		return say.Text("bot.still-open")
	case errors.Is(err, card.ErrBusy):
		return say.Text("bot.busy")
	}
	c.log.Error("button failed", "data", p.Data, "updates", p.By.Updates, "err", err)
	return say.Text("common.failed")
}

// decide handles a button below an approval or a question.
func decide(ctx context.Context, s *approval.Screen, p updates.Press, what string) (a tgapi.Answer, err error) {
	text, full, err := s.Press(ctx, approval.Press{By: p.By, Message: p.Editable}, what)
	for _, part := range full {
		a.Messages = append(a.Messages, message.Compose(p.By.Conversation, message.Content{
			Text: part, ReplyTo: p.Message,
		}))
	}
	a.Text = text
	return a, err
}

func (c *callbacks) cancel(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	cancelled, err := c.desk.CancelQueued(ctx, turn, p.By)
	switch {
	case err != nil:
		return "", err
	case cancelled:
		return say.Text("common.cancelled"), nil
	}
	c.unbutton(p)
	return say.Text("bot.cancel-too-late"), nil
}

// stop handles the Stop button of a card.
func (c *callbacks) stop(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	err := c.desk.StopTurn(ctx, turn, p.By)
	if errors.Is(err, orchestrator.ErrNoTurn) {
		return say.Text("bot.too-late-ended"), nil
	}
	return say.Text("bot.stopping"), err
}

// menu handles a button of a menu. If the user's choice cannot be stored, the menu's message shows an error.
func (c *callbacks) menu(ctx context.Context, p updates.Press, action, data string) (tgapi.Answer, error) {
	a, err := c.menus.Press(ctx, p.By, action, data)
	if a.Expired {
		c.unbutton(p)
	}
	if err != nil && a.Edit.Text != "" {
		c.feedback.Edit(p.By.Conversation, p.Editable, a.Edit.Text, a.Edit.Keyboard)
	}
	return a.Answer, err
}

// display handles an answer to the question "Can you see rich messages?".
func (c *callbacks) display(ctx context.Context, s *display.Screen, p updates.Press,
	what string) (tgapi.Answer, error) {
	text, err := s.Press(ctx, p.By.Conversation, what)
	if err == nil {
		c.unbutton(p)
	}
	return tgapi.Answer{Text: text}, err
}
