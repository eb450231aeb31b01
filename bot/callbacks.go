package bot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"ductor/bot/agent"
	"ductor/bot/approval"
	"ductor/bot/card"
	"ductor/bot/changes"
	"ductor/bot/consult"
	"ductor/bot/cron"
	"ductor/bot/display"
	"ductor/bot/files"
	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/project"
	"ductor/bot/render"
	"ductor/bot/sessions"
	"ductor/bot/silence"
	"ductor/bot/steps"
	"ductor/bot/tables"
	"ductor/bot/tgapi"
	"ductor/bot/transcript"
	"ductor/bot/updates"
	"ductor/bot/usage"
	"ductor/bot/users"
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
	actUsers     = users.Action
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
	desk   Desk
	closer *updates.Finisher
	voice  voice
	lang   *lang.Choices
	log    *slog.Logger
	screens
}

// screens act on their own buttons.
type screens struct {
	approvals *approval.Screen
	restarts  *restarts
	queue     *queueCards
	heard     *transcript.Screen
	silence   *silence.Watcher
	pages
	steps   *steps.Screen
	tables  *tables.Screen
	display *display.Screen
}

// rightFor is the right that a button needs. Screens that show and change ask for more where they change.
func rightFor(act string) orchestrator.Right {
	switch act {
	case actCancel, actStop:
		return orchestrator.EndOwn
	case transcript.Action:
		return orchestrator.SendPrompts
	case steps.Action, changes.Action, sessions.Action, usage.Action:
		return orchestrator.Read
	case approval.Action:
		return orchestrator.DecideRequests
	case users.Action:
		return orchestrator.ManageUsers
	case cron.Action:
		return orchestrator.MakeSchedules
	case files.Action:
		return orchestrator.ReachFiles
	}
	return orchestrator.ChangeSettings
}

func (c *callbacks) handle(ctx context.Context, p updates.Press) {
	say := c.lang.Of(p.By.Conversation.Chat)
	act, what, _ := strings.Cut(p.Data, ":")
	var text string
	var notices []orchestrator.Message
	var err error
	if !p.By.May(rightFor(act)) {
		c.closer.Finish(ctx, p.By.Updates)
		c.voice.Answer(ctx, p.Query, say.Text(updates.Refusal(p.By.Role)))
		return
	}
	switch act {
	case actAgain, actFresh, actSummary, actCompact, actLater, actHandOff, actDrop, actLogIn, actLift:
		text, err = c.choose(ctx, p, chosen(act), cli.TurnID(what))
	case actShow:
		text, err = c.show(ctx, p, cli.TurnID(what))
	case actCancel:
		text, err = c.cancel(ctx, p, cli.TurnID(what))
	case actStop:
		text, err = c.stop(ctx, p, cli.TurnID(what))
	case menu.ModelAction, menu.PermissionAction, menu.RoleAction, menu.BusyAction, menu.NotifyAction, menu.ThinkAction, menu.DisplayAction, menu.JobModelAction, actLanguage:
		text, err = c.menu(ctx, p, act, what)
	case approval.Action:
		text, notices, err = c.decide(ctx, p, what)
	case cron.Action:
		text, notices, err = c.cron(ctx, p, what)
	case project.Action:
		text, err = c.project(ctx, p, what)
	case consult.Action:
		text, err = c.question(ctx, p, what)
	case steps.Action, changes.Action:
		text, notices, err = c.ofTurn(ctx, p, act, what)
	case sessions.Action:
		text, notices, err = c.session(ctx, p, what)
	case agent.Action, usage.Action, actUsers:
		text, err = c.ofAgent(ctx, p, act, what)
	case files.Action:
		text, notices, err = c.file(ctx, p, what)
	case tables.Action, silence.Action, display.Action, usage.PlotAction:
		text, notices, err = c.onTurn(ctx, p, act, what)
	case transcript.Action:
		text, err = c.transcript(ctx, p, what)
	case actSteer:
		text, err = c.steer(ctx, p, cli.TurnID(what))
	case actInterrupt:
		text, err = c.interrupt(ctx, p, cli.TurnID(what))
	case actRestart, actKeep:
		text, err = c.restart(ctx, p, act, cli.TurnID(what))
	default:
		text = say.Text("common.stale-button")
	}
	if errors.Is(err, orchestrator.ErrShutdown) {
		return // stays in the journal
	}
	if err != nil {
		text = c.refusal(p, err)
	}
	c.closer.Finish(ctx, p.By.Updates, notices...)
	c.voice.Answer(ctx, p.Query, text)
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
func (c *callbacks) decide(ctx context.Context, p updates.Press, what string) (string, []orchestrator.Message, error) {
	text, parts, err := c.approvals.Press(ctx, approval.Press{By: p.By, Name: p.Name, Message: p.Message}, what)
	var notices []orchestrator.Message
	for _, part := range parts {
		notices = append(notices, message.Compose(p.By.Conversation, message.Content{Text: part, ReplyTo: p.Message}))
	}
	return text, notices, err
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

func (c *callbacks) menu(ctx context.Context, p updates.Press, action, data string) (string, error) {
	if action == actLanguage {
		return c.language(ctx, p, data)
	}
	a, err := c.menus.Press(ctx, p.By, action, data)
	if a.Expired {
		c.voice.Unbutton(p.By.Conversation, p.Message)
	}
	c.edit(p, a.Edit)
	return a.Text, err
}

// language acts on a button of /language.
func (c *callbacks) language(ctx context.Context, p updates.Press, data string) (string, error) {
	code := lang.Language(data)
	if code != lang.AsTelegram && !slices.Contains(lang.Languages(), code) {
		return c.lang.Of(p.By.Conversation.Chat).Text("common.stale-button"), nil
	}
	text, page, err := language{c.lang}.choose(ctx, p.By, code)
	if err == nil {
		c.edit(p, page)
	}
	return text, err
}

func (c *callbacks) cron(ctx context.Context, p updates.Press, data string) (string, []orchestrator.Message, error) {
	a, err := c.jobs.Press(ctx, p.By, p.Message, data)
	if err != nil {
		return "", nil, err
	}
	c.edit(p, a.Edit)
	if a.New.Text == "" {
		return a.Text, nil, nil
	}
	answer := message.Content{Text: render.Plain(a.New.Text), Keyboard: a.New.Keyboard}
	return a.Text, []orchestrator.Message{message.Compose(p.By.Conversation, answer)}, nil
}

func (c *callbacks) project(ctx context.Context, p updates.Press, data string) (string, error) {
	a, err := c.projects.Press(ctx, p.By, data)
	if err == nil {
		c.edit(p, a.Edit)
	}
	return a.Text, err
}

func (c *callbacks) showSteps(ctx context.Context, p updates.Press, data string) (string, []orchestrator.Message, error) {
	a, err := c.steps.Press(ctx, p.By.Conversation, p.Message, data)
	if a.Shown.Text != "" {
		c.voice.EditRich(p.By.Conversation, p.Message, a.Shown, a.Keyboard)
	}
	return a.Text, a.Messages, err
}

// ofTurn acts on what a turn did.
func (c *callbacks) ofTurn(ctx context.Context, p updates.Press, act, data string) (string, []orchestrator.Message, error) {
	if act == steps.Action {
		return c.showSteps(ctx, p, data)
	}
	return c.change(ctx, p, data)
}

func (c *callbacks) change(ctx context.Context, p updates.Press, data string) (string, []orchestrator.Message, error) {
	a, err := c.changes.Press(ctx, p.By, p.Message, data)
	if err == nil {
		c.edit(p, a.Edit)
	}
	return a.Text, a.Messages, err
}

func (c *callbacks) session(ctx context.Context, p updates.Press, data string) (string, []orchestrator.Message, error) {
	a, err := c.sessions.Press(ctx, p.By, data)
	if err != nil {
		return "", nil, err
	}
	c.edit(p, a.Edit)
	if a.File.Name == "" {
		return a.Text, nil, nil
	}
	file := message.Content{Text: render.Plain(a.File.Caption), Files: []message.File{{Name: a.File.Name, Content: a.File.Content}}}
	return a.Text, []orchestrator.Message{message.Compose(p.By.Conversation, file)}, nil
}

func (c *callbacks) file(ctx context.Context, p updates.Press, data string) (string, []orchestrator.Message, error) {
	if c.files == nil {
		return c.lang.Of(p.By.Conversation.Chat).Text("common.stale-button"), nil, nil
	}
	a, err := c.files.Press(ctx, p.By, data)
	if err != nil {
		return "", nil, err
	}
	c.edit(p, a.Page)
	return render.Cut(a.Text, 190), a.Messages, nil
}

func (c *callbacks) ofUsage(ctx context.Context, p updates.Press, data string) (string, error) {
	page, err := c.usage.Press(ctx, p.By, data)
	if err == nil && page.Text == "" {
		return c.lang.Of(p.By.Conversation.Chat).Text("common.stale-button"), nil
	}
	c.edit(p, page)
	return "", err
}

func (c *callbacks) ofAgent(ctx context.Context, p updates.Press, act, data string) (string, error) {
	if act == actUsers {
		return c.user(ctx, p, data)
	}
	if act == usage.Action {
		return c.ofUsage(ctx, p, data)
	}
	a, err := c.agent.Press(ctx, p.By, data)
	c.edit(p, a.Page)
	return a.Text, err
}

// onTurn acts on buttons below answers and other messages that stay as they are.
func (c *callbacks) onTurn(ctx context.Context, p updates.Press, act, what string) (text string, notices []orchestrator.Message, err error) {
	if act == silence.Action {
		text, err = c.silence.Press(ctx, p.By.Conversation, p.Message, what)
		return text, nil, err
	}
	if act == display.Action {
		if text, err = c.display.Press(ctx, p.By.Conversation, what); err == nil {
			c.voice.Unbutton(p.By.Conversation, p.Message)
		}
		return text, nil, err
	}
	if act == usage.PlotAction {
		return c.usage.Plot(ctx, p.By, p.Message, what)
	}
	return c.tables.Press(ctx, p.By.Conversation, p.Message, what)
}

func (c *callbacks) transcript(ctx context.Context, p updates.Press, data string) (string, error) {
	text, page, err := c.heard.Press(ctx, p.By, data)
	c.edit(p, page)
	return text, err
}

// edit shows a page in the message of a press; a page without text leaves it as it is.
func (c *callbacks) edit(p updates.Press, page tgapi.Page) {
	if page.Text != "" {
		c.voice.Edit(p.By.Conversation, p.Message, page.Text, page.Keyboard)
	}
}

func (c *callbacks) user(ctx context.Context, p updates.Press, data string) (string, error) {
	if c.users.Directory == nil {
		return c.lang.Of(p.By.Conversation.Chat).Text("common.stale-button"), nil
	}
	a, err := c.users.Press(ctx, p.By, data)
	c.edit(p, a.Edit)
	return a.Text, err
}
