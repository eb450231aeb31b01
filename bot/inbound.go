package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"ductor/bot/agent"
	"ductor/bot/approval"
	"ductor/bot/changes"
	"ductor/bot/checks"
	"ductor/bot/consult"
	"ductor/bot/cron"
	"ductor/bot/display"
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
	"ductor/lang"
	"ductor/orchestrator"
)

// parts are the dependencies of the handlers, besides the ones shared with the router.
type parts struct {
	Options
	desk   Desk
	voice  voice
	chat   *Chat
	tables *tables.Screen
	topics *topicOpener
	spool  *message.Spool // for pictures; nil: there are none
}

// handlers implements updates.Handler.
type handlers struct {
	*commands
	callbacks *callbacks
	approvals *approval.Screen
	restarts  *restarts
	jobs      *cron.Screen
	heard     *transcript.Screen
	journal   orchestrator.MessageStore
	confirms  bool                            // users confirm transcripts of their speech
	beside    func(func(ctx context.Context)) // the router's Beside
}

var _ updates.Handler = (*handlers)(nil)

func newHandlers(p parts, o updates.RouterOptions) *handlers {
	f := o.Finisher
	h := &handlers{approvals: p.chat.approvals, confirms: p.Confirm, journal: p.Journal}
	h.heard = transcript.New(transcript.Options{Journal: p.Journal, Submit: p.desk.Submit, Lang: o.Lang})
	beside := func(f func(ctx context.Context)) { h.beside(f) }
	menus := menu.New(menu.Options{
		Service: p.desk, Aliases: p.Aliases, Now: o.Now, Lang: o.Lang, Beside: beside,
		Edit: func(in orchestrator.ConversationID, message int, page tgapi.Page) {
			p.voice.Edit(in, message, page.Text, page.Keyboard)
		},
	})
	h.restarts = &restarts{desk: p.desk, journal: p.Journal, closer: f, voice: p.voice, lang: o.Lang}
	h.jobs = cron.New(cron.Options{Jobs: p.Jobs, Journal: p.Journal, Models: menus, Now: o.Now, Lang: o.Lang, Log: o.Log})
	all := pages{
		menus: menus, jobs: h.jobs, files: files.NewScreen(p.chat.files), reload: p.Reload, agent: &agent.Screen{Service: p.desk, Lang: o.Lang},
		users: &users.Screen{Directory: p.Users, Bot: o.Me.Username, Lang: o.Lang},
		usage: &usage.Screen{Store: p.Usage, Now: o.Now, Spool: p.spool, Names: p.chat.names, Lang: o.Lang},
		sessions: sessions.New(sessions.Options{
			Sessions: p.Sessions, Away: p.Away, Now: o.Now, Lang: o.Lang, Files: sessionFiles(p.Changes),
			Current: func(ctx context.Context, in orchestrator.ConversationID) (orchestrator.SessionID, error) {
				st, err := p.desk.Status(ctx, in)
				return st.Session.ID, err
			},
		}),
		projects: project.New(project.Options{
			Projects: p.Projects, Topics: newTopics{p.topics, h.Named, p.desk}, Lang: o.Lang,
			Status: p.desk.Status,
		}),
		consults: consult.New(consult.Options{
			Consults: p.Consults, Models: menus, Group: p.Group, Most: p.chat.cards.MaxMessages, Messages: p.chat.messages, Journal: p.Journal, Finish: f.Finish,
			Beside: beside, NewID: rand.Text, Lang: o.Lang, Log: o.Log, Now: o.Now,
		}),
		checks: checks.New(checks.Options{
			Examine: p.Checks, Messages: p.chat.messages, Finish: f.Finish, Beside: beside, Lang: o.Lang,
		}),
		changes: changes.New(changes.Options{Changes: p.Changes, Store: p.Journal, Spool: p.spool, Names: p.chat.names, Lang: o.Lang, Session: sessions.OpenButton}),
	}
	h.commands = &commands{
		desk: p.desk, closer: f, voice: p.voice, messages: p.chat.messages, now: o.Now, lang: o.Lang, log: o.Log,
		pages: all, uploads: o.Uploads,
	}
	h.commands.table = commandTable(h.commands)
	h.callbacks = &callbacks{desk: p.desk, closer: f, voice: p.voice, lang: o.Lang, log: o.Log, queue: p.chat.queue, menus: menus}
	h.callbacks.register(p, all, h.heard, h.restarts)
	return h
}

// register assigns the buttons of all screens to their actions.
func (c *callbacks) register(p parts, all pages, heard *transcript.Screen, r *restarts) {
	c.buttons = map[string]button{
		actShow:      {orchestrator.ChangeSettings, onTurn(c.show)},
		actCancel:    {orchestrator.EndOwn, onTurn(c.cancel)},
		actStop:      {orchestrator.EndOwn, onTurn(c.stop)},
		actSteer:     {orchestrator.ChangeSettings, onTurn(c.steer)},
		actInterrupt: {orchestrator.ChangeSettings, onTurn(c.interrupt)},
		actRestart:   {orchestrator.ChangeSettings, onTurn(r.press)},
		actBoth:      {orchestrator.ChangeSettings, c.startOver},
		actKeep:      {orchestrator.ChangeSettings, onTurn(r.keep)},
		actLanguage:  {orchestrator.ChangeSettings, onScreen(language{c.lang}.press)},
		approval.Action: {orchestrator.DecideRequests, func(ctx context.Context, press updates.Press, what string) (tgapi.Answer, error) {
			return decide(ctx, p.chat.approvals, press, what)
		}},
		cron.Action:      {orchestrator.MakeSchedules, onMessage(all.jobs.Press)},
		project.Action:   {orchestrator.ChangeSettings, onScreen(all.projects.Press)},
		consult.Action:   {orchestrator.ChangeSettings, onScreen(all.consults.Press)},
		steps.Action:     {orchestrator.Read, inChat((&steps.Screen{Steps: p.Steps, Lang: c.lang}).Press)},
		changes.Action:   {orchestrator.Read, onMessage(all.changes.Press)},
		sessions.Action:  {orchestrator.Read, onScreen(all.sessions.Press)},
		agent.Action:     {orchestrator.ChangeSettings, onScreen(all.agent.Press)},
		usage.Action:     {orchestrator.Read, onScreen(all.usage.Press)},
		usage.PlotAction: {orchestrator.ChangeSettings, onMessage(all.usage.Plot)},
		users.Action:     {orchestrator.ManageUsers, onScreen(all.users.Press)},
		files.Action:     {orchestrator.ReachFiles, onScreen(all.files.Press)},
		tables.Action:    {orchestrator.ChangeSettings, inChat(p.tables.Press)},
		silence.Action:   {orchestrator.ChangeSettings, inChat(p.chat.silence.Press)},
		display.Action: {orchestrator.ChangeSettings, func(ctx context.Context, press updates.Press, what string) (tgapi.Answer, error) {
			return c.display(ctx, p.chat.display, press, what)
		}},
		transcript.Action: {orchestrator.SendPrompts, onScreen(heard.Press)},
	}
	if all.files == nil {
		c.buttons[files.Action] = button{orchestrator.ReachFiles, func(_ context.Context, press updates.Press, _ string) (tgapi.Answer, error) {
			return tgapi.Stale(c.lang.Of(press.By.Conversation.Chat)), nil
		}}
	}
	for act, what := range recoveries() {
		c.buttons[act] = button{orchestrator.ChangeSettings, onTurn(func(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
			return c.choose(ctx, p, what, turn)
		})}
	}
	for _, act := range menu.Actions() {
		c.buttons[act] = button{orchestrator.ChangeSettings, func(ctx context.Context, p updates.Press, what string) (tgapi.Answer, error) {
			return c.menu(ctx, p, act, what)
		}}
	}
}

// Moved moves everything of a group to its new id, including its language and its open approvals.
func (h *handlers) Moved(ctx context.Context, from, to int64) error {
	err := h.desk.MoveChat(ctx, from, to)
	if chosen := h.lang.Chosen(from); err == nil && chosen != lang.AsTelegram {
		err = h.lang.Choose(ctx, to, chosen)
	}
	h.approvals.Moved(from)
	return err
}

// router returns a router that calls h. The caller stops it at the end.
func (h *handlers) router(o updates.RouterOptions) *updates.Router {
	o.Handler = h
	r := updates.NewRouter(o)
	h.beside = r.Beside
	return r
}

// Press answers a press of a button.
func (h *handlers) Press(ctx context.Context, p updates.Press) { h.callbacks.handle(ctx, p) }

// Reply passes a message to the approval, question or job that it answers. It returns false if the message is a prompt.
func (h *handlers) Reply(ctx context.Context, in *updates.Message) bool {
	if in.ReplyTo != 0 {
		h.awaitSent(ctx, in)
	}
	if h.handleDecision(ctx, in) {
		return true
	}
	if in.ReplyTo == 0 || len(in.Files) > 0 {
		return false
	}
	return h.handleCorrection(ctx, in) || h.handleJobReply(ctx, in) ||
		h.handleCommitReply(ctx, in) || h.handleConsultReply(ctx, in)
}

// Subject describes the bot's message that in replies to. For the zero Subject the receiver quotes the message itself.
func (h *handlers) Subject(ctx context.Context, in *updates.Message) (s orchestrator.Subject) {
	h.awaitSent(ctx, in)
	m, err := h.journal.MessageAt(ctx, in.Conversation, in.ReplyTo)
	if err == nil && m.Turn != "" {
		s, err = h.desk.Subject(ctx, in.Conversation, m.Turn)
	}
	if err != nil && !errors.Is(err, orchestrator.ErrShutdown) {
		h.commands.log.Warn("look up what a message replies to", "update", in.Update, "err", err)
	}
	return s
}

// sentWithin is how long a reply waits for the number of the message that it replies to.
const sentWithin = 2 * time.Second

// awaitSent waits until it is known which message in replies to: a user may see a message and reply before ductor has
// Telegram's answer.
func (h *handlers) awaitSent(ctx context.Context, in *updates.Message) {
	ctx, cancel := context.WithTimeout(ctx, sentWithin)
	defer cancel()
	if err := h.messages.Await(ctx, in.Conversation, in.ReplyTo); err != nil {
		h.commands.log.Warn("find what a message replies to", "update", in.Update, "err", err)
	}
}

// handleCommitReply handles a reply that is a commit message. It reports whether the message was one, and finishes it
// then.
func (h *handlers) handleCommitReply(ctx context.Context, in *updates.Message) bool {
	p := h.commands.lang.Of(in.Conversation.Chat)
	answer, ok, err := h.commands.changes.Replied(ctx, in.By(), in.ReplyTo, in.Text)
	if err != nil {
		h.commands.log.Error("commit what a turn changed", "update", in.Update, "err", err)
		answer = p.Text("bot.log-says", p.Text("bot.not-done"))
	}
	if ok {
		h.closer.Answer(ctx, in, answer, nil)
	}
	return ok
}

// handleDecision passes a message to the approval or question that it answers. It returns false if there is none.
func (h *handlers) handleDecision(ctx context.Context, in *updates.Message) bool {
	said := approval.Message{
		Conversation: in.Conversation, User: in.User, Role: in.Role, ReplyTo: in.ReplyTo, Text: in.Text, Plain: in.Plain, Updates: in.Updates(),
		Files: in.Files, Private: in.Private, Arrived: in.Arrived(),
	}
	o := h.approvals.Reply(ctx, said)
	f := h.closer
	if o.Secret {
		h.voice.Remove(in.Conversation, in.ID)
		f = f.Forgetting()
	}
	switch {
	case o.Fate == approval.Prompt:
		in.Context = cmp.Or(o.Text, in.Context)
		return false
	case o.Fate == approval.Finish && o.Text != "":
		f.Answer(ctx, in, o.Text, nil)
	case o.Guessed && o.Fate == approval.Leave:
		h.offerPrompt(ctx, in, nil)
	case o.Guessed:
		h.offerPrompt(ctx, in, in.Updates())
	case o.Fate == approval.Finish:
		f.Finish(ctx, in.Updates())
	}
	return true
}

// offerPrompt finishes updates with a notice that a message became the answer to a question. A button on the notice makes
// the message a prompt.
func (h *handlers) offerPrompt(ctx context.Context, in *updates.Message, finish []int64) {
	m, err := h.heard.Answered(ctx, orchestrator.Prompt{
		Conversation: in.Conversation, Person: in.User, Text: in.Context + in.Text, Message: in.ID, Rights: orchestrator.Rights{Of: in.Role.OfTurns()}, Arrived: in.Arrived(),
	})
	if err != nil {
		h.commands.log.Error("offer to make a prompt of an answer", "update", in.Update, "err", err)
		h.closer.Finish(ctx, finish)
		return
	}
	h.closer.Finish(ctx, finish, m)
}

// handleJobReply handles a reply that changes a job. It reports whether the message was one, and finishes it then.
func (h *handlers) handleJobReply(ctx context.Context, in *updates.Message) bool {
	state := h.jobs.Reply(ctx, cron.Reply{By: in.By(), To: in.ReplyTo, Text: in.Text}, func(p tgapi.Page) { h.closer.Answer(ctx, in, p.Text, p.Keyboard) })
	if state == cron.Done {
		h.voice.Unbutton(in.Conversation, in.ReplyTo)
	}
	return state != cron.Prompt
}

// Named returns the choice that a name before a prompt means, or false if the name is ordinary text.
func (h *handlers) Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool) {
	c, ok := h.menus.Named(ctx, in, name)
	return orchestrator.Wants{Agent: c.Agent, Model: c.Model, Effort: c.Effort}, ok
}

// Edited offers to start the running turn over, if the edited message was its prompt.
func (h *handlers) Edited(ctx context.Context, in *updates.Message, message int, text string) bool {
	shown, page, ok, err := h.heard.Edited(ctx, in.Conversation, in.User, in.ID, in.Text)
	if err != nil {
		h.commands.log.Error("correct a transcript", "update", in.Update, "err", err)
	}
	switch {
	case ok && shown == 0: // the offer is not in the chat yet
		h.closer.Answer(ctx, in, page.Text, page.Keyboard)
		return true
	case ok:
		h.voice.Edit(in.Conversation, shown, page.Text, page.Keyboard)
		h.closer.Finish(ctx, in.Updates())
		return true
	}
	return h.restarts.offer(ctx, in, message, text)
}

// Heard asks the sender of a spoken prompt to confirm the transcript, if the owner configured that.
func (h *handlers) Heard(ctx context.Context, in *updates.Message, p orchestrator.Prompt) bool {
	if !h.confirms {
		return false
	}
	m, err := h.heard.Ask(ctx, p, in.Text)
	if err != nil {
		h.commands.log.Error("ask about a transcript", "updates", p.Updates, "err", err)
		h.closer.Tell(ctx, in.Conversation, in.ID, p.Updates, h.commands.lang.Of(in.Conversation.Chat).Text("updates.not-stored"), nil)
		return true
	}
	h.closer.Finish(ctx, p.Updates, m)
	return true
}

// handleCorrection handles a reply that corrects a transcript. It reports whether the message was one, and finishes it
// then.
func (h *handlers) handleCorrection(ctx context.Context, in *updates.Message) bool {
	page, ok, err := h.heard.Replied(ctx, in.Conversation, in.User, in.ReplyTo, in.Text)
	if err != nil {
		h.commands.log.Error("correct a transcript", "update", in.Update, "err", err)
	}
	if ok {
		h.voice.Edit(in.Conversation, in.ReplyTo, page.Text, page.Keyboard)
		h.closer.Finish(ctx, in.Updates())
	}
	return ok
}

// sessionFiles returns a function for the button on a session's page that leads to the changes of its turns. It returns
// nil if changes are not recorded.
func sessionFiles(kept orchestrator.FileChanges) func(p lang.Printer, id orchestrator.SessionID) tgapi.Button {
	if kept == nil {
		return nil
	}
	return changes.SessionButton
}
