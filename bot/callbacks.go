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

// The actions of buttons. All but those of menus name what they act on, so they work after a restart too;
// the domain says whether it can still be done. Those of menus carry a nonce.
const (
	actShow      = "v"
	actCancel    = "c"
	actStop      = "h"
	actSteer     = "t"
	actInterrupt = "i"
	actRestart   = "e"
	actBoth      = "B" // start over with a message that came after
	actKeep      = "k" // below the offer to restart: do not
)

// turnButtons makes the buttons of cards and notices.
type turnButtons struct{ lang lang.Printer }

// ShowAgain asks for the turn's outcome as new messages.
func (b turnButtons) ShowAgain(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("bot.show-again"), actShow, turn)
}

// Steps lists what the agent did.
func (b turnButtons) Steps(turn cli.TurnID) tgapi.Button { return steps.Button(b.lang, turn) }

// Tables draw the tables of an answer.
func (b turnButtons) Tables(turn cli.TurnID, answer string) []tgapi.Button {
	return tables.Row(b.lang, turn, answer)
}

// Changes show, undo and commit what the turn changed.
func (b turnButtons) Changes(turn cli.TurnID, c orchestrator.Changed) []tgapi.Button {
	return changes.Buttons(b.lang, string(turn), c)
}

// Stop ends the turn, which runs.
func (b turnButtons) Stop(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("bot.stop"), actStop, turn)
}

// Cancel takes the turn out of the queue.
func (b turnButtons) Cancel(turn cli.TurnID) tgapi.Button {
	return turnButton(b.lang.Text("common.cancel"), actCancel, turn)
}

// callbacks answers pressed buttons. Every press gets an answer, and one that comes too late or from
// elsewhere changes nothing.
type callbacks struct {
	desk    Desk
	closer  *updates.Finisher
	voice   voice
	lang    *lang.Choices
	log     *slog.Logger
	queue   *queueCards
	menus   *menu.Menus
	buttons map[string]button // by their actions
}

// button is what buttons of one action do, and the right that they need. Screens that show and change ask for more where they change.
type button struct {
	right orchestrator.Right
	act   func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error)
}

// onTurn is for buttons that name a turn and have a short answer.
func onTurn(act func(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error)) func(context.Context, updates.Press, string) (tgapi.Answer, error) {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		text, err := act(ctx, p, cli.TurnID(what))
		return tgapi.Answer{Text: text}, err
	}
}

// onScreen is for buttons of screens that need no more than who pressed.
func onScreen(press func(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error)) func(context.Context, updates.Press, string) (tgapi.Answer, error) {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		return press(ctx, p.By, what)
	}
}

// onMessage is for buttons of screens that answer to the message.
func onMessage(press func(ctx context.Context, by orchestrator.Press, message int, data string) (tgapi.Answer, error)) func(context.Context, updates.Press, string) (tgapi.Answer, error) {
	return func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
		return press(ctx, p.By, p.Message, what)
	}
}

// inChat is for buttons that do the same for each user of a chat.
func inChat(press func(ctx context.Context, in orchestrator.ConversationID, message int, data string) (tgapi.Answer, error)) func(context.Context, updates.Press, string) (tgapi.Answer, error) {
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
		c.closer.Finish(ctx, p.By.Updates)
		c.voice.Answer(ctx, p.Query, say.Text(updates.Refusal(p.By.Role)))
		return
	}
	a, err := tgapi.Stale(say), error(nil)
	if known {
		a, err = b.act(ctx, p, what)
	}
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return // stays in the journal
	case err != nil:
		a.Text = c.refusal(p, err)
	case a.Formatted.Text != "":
		c.voice.EditRich(p.By.Conversation, p.Message, a.Formatted, a.Edit.Keyboard)
	default:
		c.edit(p, a.Edit)
	}
	if a.Instead != nil {
		c.replace(p, *a.Instead)
	}
	c.closer.Finish(ctx, p.By.Updates, a.Messages...)
	c.voice.Answer(ctx, p.Query, a.Text)
}

// replace puts a button in the place of the pressed one.
func (c *callbacks) replace(p updates.Press, by tgapi.Button) {
	for _, row := range p.Buttons {
		for i := range row {
			if row[i].Data == p.Data {
				row[i] = by
				c.voice.Rebutton(p.By.Conversation, p.Message, p.Buttons)
			}
		}
	}
}

// refusal says why a press changed nothing.
func (c *callbacks) refusal(p updates.Press, err error) string {
	say := c.lang.Of(p.By.Conversation.Chat)
	switch {
	case errors.Is(err, orchestrator.ErrRepeated):
		c.voice.Unbutton(p.By.Conversation, p.Message)
		return say.Text("bot.again-already")
	case errors.Is(err, orchestrator.ErrJobsFull):
		return say.Text("bot.jobs-full")
	case errors.Is(err, orchestrator.ErrBadChoice), errors.Is(err, orchestrator.ErrElsewhere), errors.Is(err, orchestrator.ErrNoTurn), errors.Is(err, orchestrator.ErrNoSession):
		return say.Text("common.stale-button")
	case errors.Is(err, orchestrator.ErrNotOwner):
		return say.Text("bot.not-owner")
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return say.Text(updates.Refusal(p.By.Role))
	case errors.Is(err, orchestrator.ErrStillOpen):
		return say.Text("bot.still-open")
	case errors.Is(err, card.ErrBusy): // and the button stays
		return say.Text("bot.busy")
	}
	c.log.Error("button failed", "data", p.Data, "updates", p.By.Updates, "err", err)
	return say.Text("common.failed")
}

// decide passes a press to the approval or the question that it is for.
func decide(ctx context.Context, s *approval.Screen, p updates.Press, what string) (a tgapi.Answer, err error) {
	text, full, err := s.Press(ctx, approval.Press{By: p.By, Name: p.Name, Message: p.Message}, what)
	for _, part := range full {
		a.Messages = append(a.Messages, message.Compose(p.By.Conversation, message.Content{Text: part, ReplyTo: p.Message}))
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
	c.voice.Unbutton(p.By.Conversation, p.Message)
	return say.Text("bot.cancel-too-late"), nil
}

// stop ends the turn of a card, if it still runs.
func (c *callbacks) stop(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := c.lang.Of(p.By.Conversation.Chat)
	err := c.desk.StopTurn(ctx, turn, p.By)
	if errors.Is(err, orchestrator.ErrNoTurn) {
		return say.Text("bot.too-late-ended"), nil
	}
	return say.Text("bot.stopping"), err
}

// menu acts on a button of a menu. What is not stored, the message says too.
func (c *callbacks) menu(ctx context.Context, p updates.Press, action, data string) (tgapi.Answer, error) {
	a, err := c.menus.Press(ctx, p.By, action, data)
	if a.Expired {
		c.voice.Unbutton(p.By.Conversation, p.Message)
	}
	if err != nil {
		c.edit(p, a.Edit)
	}
	return a.Answer, err
}

// display takes the answer to the question what a chat sees, which is asked once.
func (c *callbacks) display(ctx context.Context, s *display.Screen, p updates.Press, what string) (tgapi.Answer, error) {
	text, err := s.Press(ctx, p.By.Conversation, what)
	if err == nil {
		c.voice.Unbutton(p.By.Conversation, p.Message)
	}
	return tgapi.Answer{Text: text}, err
}

// edit shows a page in the message of a press; a page without text leaves it as it is.
func (c *callbacks) edit(p updates.Press, page tgapi.Page) {
	if page.Text != "" {
		c.voice.Edit(p.By.Conversation, p.Message, page.Text, page.Keyboard)
	}
}
