package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"time"

	"ductor/bot/agent"
	"ductor/bot/approval"
	"ductor/bot/changes"
	"ductor/bot/checks"
	"ductor/bot/consult"
	"ductor/bot/cron"
	"ductor/bot/display"
	"ductor/bot/edits"
	"ductor/bot/files"
	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/project"
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
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

type parts struct {
	opts     Options
	desk     Desk
	feedback feedback
	chat     *Chat
	tables   *tables.Screen
	topics   *topicOpener
	spool    *message.Spool // stores pictures; nil: no pictures are sent
}

// handlers implements updates.Handler.
type handlers struct {
	desk        Desk
	finisher    *updates.Finisher
	feedback    feedback
	commands    *commands
	callbacks   *callbacks
	approvals   *approval.Screen
	edits       *edits.Screen
	logins      *agent.Logins
	transcripts *transcript.Screen
	journal     orchestrator.Journal
	confirms    bool                            // users must confirm transcripts before the agent gets them
	spawn       func(func(ctx context.Context)) // updates.Router.Go
}

var _ updates.Handler = (*handlers)(nil)

// Command implements updates.Handler.
func (h *handlers) Command(name string) (updates.CommandSpec, bool) { return h.commands.find(name) }

// NewSession implements updates.Handler.
func (h *handlers) NewSession(ctx context.Context, in *updates.Message) error {
	return h.commands.endSession(ctx, in)
}

// Stop implements updates.Handler.
func (h *handlers) Stop(ctx context.Context, a updates.Abort) { h.commands.stop(ctx, a) }

func newHandlers(p parts, o updates.RouterOptions) *handlers {
	f := o.Finisher
	h := &handlers{
		desk: p.desk, finisher: f, feedback: p.feedback, approvals: p.chat.approvals, confirms: p.opts.Confirm,
		journal: p.opts.Journal, logins: agent.NewLogins(p.desk, o.Lang, o.Now),
	}
	h.transcripts = h.newTranscripts(p, o.Lang)
	spawn := func(f func(ctx context.Context)) { h.spawn(f) }
	menus := menu.New(menu.Options{
		Service: p.desk, Aliases: p.opts.Aliases, Offers: p.opts.Offers, Now: o.Now, Lang: o.Lang, Go: spawn,
		Edit: func(in orchestrator.ConversationID, message int, page tgapi.Page) {
			p.feedback.Edit(in, message, page.Text, page.Keyboard)
		},
	})
	h.edits = edits.New(edits.Options{
		Desk: p.desk, Prompts: p.chat.queue.edits, Waits: p.chat.queue.waits, Jobs: p.opts.Jobs, Finish: f.Finish,
		Lang: o.Lang,
	})
	jobs := cron.New(cron.Options{
		Jobs: p.opts.Jobs, Journal: p.opts.Journal, Models: menus, Now: o.Now, Lang: o.Lang, Log: o.Log,
	})
	books := sessions.New(sessions.Options{
		Status: p.desk.Status, Sessions: p.opts.Sessions, Journal: p.opts.Journal, SetAway: p.opts.SetAway,
		Now: o.Now, Lang: o.Lang,
		Files: sessionFiles(p.opts.Changes),
	})
	all := screens{
		menus: menus, jobs: jobs, sessions: books, files: files.NewScreen(p.chat.files), reload: p.opts.Reload,
		agent: &agent.Screen{Service: p.desk, Lang: o.Lang},
		users: &users.Screen{Directory: p.opts.Users, Bot: o.Me.Username, Lang: o.Lang},
		usage: &usage.Screen{Store: p.opts.Usage, Now: o.Now, Spool: p.spool, Names: p.chat.names, Lang: o.Lang},
		projects: project.New(project.Options{
			Projects: p.opts.Projects, Topics: newTopics{p.topics, menus, p.desk}, Lang: o.Lang,
			Status: p.desk.Status, Continue: books.ContinueButton,
		}),
		consults: consult.New(consult.Options{
			Consults: p.opts.Consults, Entries: p.opts.Sessions, Desk: p.desk, Models: menus, Group: p.opts.Group,
			Most: p.chat.cards.MaxMessages, Messages: p.chat.messages, Journal: p.opts.Journal, Finish: f.Finish,
			Beside: spawn, NewID: rand.Text, Lang: o.Lang, Log: o.Log, Now: o.Now,
		}),
		checks: checks.New(checks.Options{
			Examine: p.opts.Checks, Messages: p.chat.messages, Finish: f.Finish, Beside: spawn, Lang: o.Lang,
		}),
		changes: changes.New(changes.Options{
			Changes: p.opts.Changes, Store: p.opts.Journal, Journal: p.opts.Journal,
			Messages: p.chat.messages, Log: o.Log, Spool: p.spool, Names: p.chat.names, Lang: o.Lang,
			Session: sessions.OpenButton, Rebutton: p.feedback.Rebutton, Now: o.Now,
		}),
	}
	h.commands = &commands{
		desk: p.desk, finisher: f, feedback: p.feedback, messages: p.chat.messages, now: o.Now, lang: o.Lang,
		log: o.Log, screens: all, uploads: o.Uploads, journal: p.opts.Journal,
	}
	h.commands.table = commandTable(h.commands)
	h.callbacks = &callbacks{
		desk: p.desk, finisher: f, feedback: p.feedback, lang: o.Lang, log: o.Log, queue: p.chat.queue, menus: menus,
		store: p.opts.Journal, buttons: all.buttons(o.Lang),
	}
	h.callbacks.register(p, h.transcripts, h.edits)
	h.callbacks.buttons[tgapi.LogInAction] = button{orchestrator.ChangeSettings, onScreen(h.logins.Press)}
	return h
}

func (h *handlers) newTranscripts(p parts, l *lang.Choices) *transcript.Screen {
	return transcript.New(transcript.Options{
		Journal: p.opts.Journal, Submit: p.desk.Submit, Lang: l, Undo: h.undoText,
	})
}

// register adds the handlers of all buttons that belong to no screen.
func (c *callbacks) register(p parts, heard *transcript.Screen, e *edits.Screen) {
	maps.Copy(c.buttons, map[string]button{
		actShow:      {orchestrator.ChangeSettings, onTurn(c.show)},
		actCancel:    {orchestrator.EndOwn, onTurn(c.cancel)},
		actStop:      {orchestrator.EndOwn, onTurn(c.stop)},
		actSteer:     {orchestrator.ChangeSettings, onTurn(c.steer)},
		actInterrupt: {orchestrator.ChangeSettings, onTurn(c.interrupt)},
		actBoth:      {orchestrator.ChangeSettings, c.startOver},
		actLanguage:  {orchestrator.ChangeSettings, onScreen(language{c.lang}.press)},
		approval.Action: {orchestrator.DecideRequests,
			func(ctx context.Context, press updates.Press, what string) (tgapi.Answer, error) {
				return decide(ctx, p.chat.approvals, press, what)
			}},
		steps.Action:   {orchestrator.Read, inChat((&steps.Screen{Steps: p.opts.Steps, Lang: c.lang}).Press)},
		tables.Action:  {orchestrator.ChangeSettings, inChat(p.tables.Press)},
		silence.Action: {orchestrator.ChangeSettings, inChat(p.chat.silence.Press)},
		display.Action: {orchestrator.ChangeSettings,
			func(ctx context.Context, press updates.Press, what string) (tgapi.Answer, error) {
				return c.display(ctx, p.chat.display, press, what)
			}},
		transcript.Action:   {orchestrator.SendPrompts, onScreen(heard.Press)},
		edits.ActionRestart: {orchestrator.ChangeSettings, onScreen(e.Restart)},
		edits.ActionKeep:    {orchestrator.ChangeSettings, onScreen(e.Keep)},
	})
	c.buttons[actAccount] = button{orchestrator.ChangeSettings, c.pressAccount}
	c.buttons[actNotAt] = button{orchestrator.ChangeSettings, c.cancelLater}
	c.buttons[actMode] = button{orchestrator.ChangeSettings, c.pressMode}
	for act, what := range recoveries() {
		c.buttons[act] = button{orchestrator.ChangeSettings,
			func(ctx context.Context, p updates.Press, turn string) (tgapi.Answer, error) {
				return c.choose(ctx, p, what, cli.TurnID(turn))
			}}
	}
	for _, act := range menu.Actions() {
		c.buttons[act] = button{orchestrator.ChangeSettings,
			func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
				return c.menu(ctx, p, act, what)
			}}
	}
}

// Moved implements updates.Handler. The group with the new ID keeps its language, its open approvals and its queue
// cards.
func (h *handlers) Moved(ctx context.Context, from, to int64) error {
	err := h.desk.MoveChat(ctx, from, to)
	if err == nil {
		h.callbacks.queue.move(from, to)
	}
	if chosen := h.commands.lang.Chosen(from); err == nil && chosen != lang.AsTelegram {
		err = h.commands.lang.Choose(ctx, to, chosen)
	}
	h.approvals.MoveGroup(from)
	return err
}

// router returns a router that calls h. The caller must stop it.
func (h *handlers) router(o updates.RouterOptions) *updates.Router {
	o.Handler, o.Hide = h, h.logins.Take
	r := updates.NewRouter(o)
	h.spawn = r.Go
	return r
}

// Press implements updates.Handler.
func (h *handlers) Press(ctx context.Context, p updates.Press) { h.callbacks.handle(ctx, p) }

// Reply implements updates.Handler. It checks whether the message answers an approval, a question, or another message
// of the bot.
func (h *handlers) Reply(ctx context.Context, in *updates.Message) bool {
	if in.Secret() {
		h.feedback.Remove(in.Conversation, in.ID)
		h.finisher.Answer(ctx, in, h.logins.Paste(ctx, in.Press, in.Update()), nil)
		return true
	}
	if in.ReplyTo != 0 {
		h.awaitSent(ctx, in)
	}
	if expected, mayDecide := h.handleExpected(ctx, in); expected || mayDecide && h.handleDecision(ctx, in) {
		return true
	}
	if in.ReplyTo == 0 || len(in.Files) > 0 {
		return false
	}
	return h.handleCorrection(ctx, in) || h.handleText(ctx, in, in.ReplyTo) || h.handleCommitReply(ctx, in) ||
		h.handleConsultReply(ctx, in)
}

// Subject implements updates.Handler.
func (h *handlers) Subject(ctx context.Context, in *updates.Message) (s orchestrator.Subject) {
	h.awaitSent(ctx, in)
	m, err := h.journal.MessageAt(ctx, in.Conversation, in.ReplyTo)
	if err == nil && m.Turn != "" {
		s, err = h.desk.Subject(ctx, in.Conversation, m.Turn)
	}
	if err != nil && !errors.Is(err, orchestrator.ErrShutdown) {
		h.commands.log.Warn("look up what a message replies to", "update", in.Update(), "err", err)
	}
	return s
}

const sentWithin = 2 * time.Second

// awaitSent waits until ductor has stored the message to which the user replied. A user can reply to a message before
// Telegram has confirmed it to ductor.
func (h *handlers) awaitSent(ctx context.Context, in *updates.Message) {
	ctx, cancel := context.WithTimeout(ctx, sentWithin)
	defer cancel()
	if err := h.commands.messages.Await(ctx, in.Conversation, in.ReplyTo); err != nil {
		h.commands.log.Warn("find what a message replies to", "update", in.Update(), "err", err)
	}
}

// Named implements updates.Handler.
func (h *handlers) Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool) {
	c, ok := h.commands.screens.menus.Addressed(ctx, in, name)
	return wantsOf(c), ok
}

func wantsOf(c naming.Choice) orchestrator.Wants {
	return orchestrator.Wants{Agent: c.Agent, Model: c.Model, Effort: c.Effort}
}

// Edited implements updates.Handler. If the edited message was speech, Edited corrects the transcript. If it was the
// prompt of the running turn, Edited offers to restart the turn. If the prompt has ended, Edited tells the user.
func (h *handlers) Edited(ctx context.Context, in *updates.Message, message int, text string,
	named *orchestrator.Wants) bool {
	e := editOf(in, message, text)
	e.Wants = named
	if in.Role.May(orchestrator.ActAsChat) && (h.correctTranscript(ctx, in) || h.edits.Offer(ctx, e)) {
		return true
	}
	return h.edits.AnswerLate(ctx, e)
}

func editOf(in *updates.Message, prompt int, text string) edits.Edit {
	return edits.Edit{By: in.Press, Message: in.ID, Prompt: prompt, Text: text, Words: in.Text}
}

func (h *handlers) correctTranscript(ctx context.Context, in *updates.Message) bool {
	shown, page, ok, err := h.transcripts.Edited(ctx, in.Conversation, in.Person, in.ID, in.Text)
	if err != nil {
		h.commands.log.Error("correct a transcript", "update", in.Update(), "err", err)
	}
	switch {
	case ok && shown == 0: // the bot has not sent the question about the transcript yet
		h.finisher.Answer(ctx, in, page.Text, page.Keyboard)
	case ok:
		h.feedback.Edit(in.Conversation, shown, page.Text, page.Keyboard)
		h.finisher.Finish(ctx, in.Updates)
	}
	return ok
}

// EditedToCommand implements updates.Handler.
func (h *handlers) EditedToCommand(ctx context.Context, in *updates.Message, first int) bool {
	old, found := h.promptOf(ctx, in, first)
	if !found {
		return h.edits.AnswerLate(ctx, editOf(in, first, in.Text))
	}
	h.refuseEdit(ctx, in, old, "bot.edited-to-command")
	return true
}

// EditedToModel implements updates.Handler.
func (h *handlers) EditedToModel(ctx context.Context, in *updates.Message, first int, to orchestrator.Wants) bool {
	old, found := h.promptOf(ctx, in, first)
	is := old.wants
	if !found || is.Agent == to.Agent && is.Model == to.Model && is.Effort == to.Effort {
		return false
	}
	h.refuseEdit(ctx, in, old, "bot.edited-to-model")
	return true
}

// openPrompt is a prompt that waits or runs.
type openPrompt struct {
	waiting cli.TurnID // empty if the prompt runs
	wants   orchestrator.Wants
}

// promptOf returns the prompt from a message. It returns false if the prompt neither waits nor runs.
func (h *handlers) promptOf(ctx context.Context, in *updates.Message, message int) (openPrompt, bool) {
	if t, waits := h.callbacks.queue.waiting(in.Conversation, message); waits {
		return openPrompt{t.ID, t.Wants}, true
	}
	st, err := h.desk.Status(ctx, in.Conversation)
	if err != nil || st.Running == nil || st.Running.Message != message {
		return openPrompt{}, false
	}
	return openPrompt{wants: st.Running.Wants}, true
}

// refuseEdit replies to an edit that does not change the prompt. If the prompt still waits, the reply has a button to
// cancel it.
func (h *handlers) refuseEdit(ctx context.Context, in *updates.Message, old openPrompt, why lang.Key) {
	p := h.commands.lang.Of(in.Conversation.Chat)
	var k tgapi.Keyboard
	if old.waiting != "" {
		k = tgapi.Keyboard{{turnButtons{p}.Cancel(old.waiting)}}
	}
	h.finisher.Tell(ctx, in.Conversation, in.ID, in.Updates, p.Text(why), k)
}

// Heard implements updates.Handler. It asks the user to confirm the transcript if Options.Confirm is set.
func (h *handlers) Heard(ctx context.Context, in *updates.Message, p orchestrator.Prompt, w orchestrator.Wants) bool {
	if !h.confirms {
		return false
	}
	m, err := h.transcripts.Ask(ctx, p, w, in.Text)
	if err != nil {
		h.commands.log.Error("ask about a transcript", "updates", p.Updates, "err", err)
		h.finisher.Tell(ctx, in.Conversation, in.ID, p.Updates,
			h.commands.lang.Of(in.Conversation.Chat).Text("updates.not-stored"), nil)
		return true
	}
	h.finisher.Finish(ctx, p.Updates, m)
	return true
}

// handleCorrection corrects a transcript if the message replies to the question about it. It returns false for any
// other message.
func (h *handlers) handleCorrection(ctx context.Context, in *updates.Message) bool {
	page, ok, err := h.transcripts.Replied(ctx, in.Conversation, in.Person, in.ReplyTo, in.Text)
	if err != nil {
		h.commands.log.Error("correct a transcript", "update", in.Update(), "err", err)
	}
	if ok {
		h.feedback.Edit(in.Conversation, in.ReplyTo, page.Text, page.Keyboard)
		h.finisher.Finish(ctx, in.Updates)
	}
	return ok
}

// sessionFiles returns a function that creates the button for the restore points of a session. It returns nil if ductor
// does not record changes.
func sessionFiles(kept orchestrator.FileChanges) func(p lang.Printer, id orchestrator.SessionID) tgapi.Button {
	if kept == nil {
		return nil
	}
	return changes.SessionButton
}
