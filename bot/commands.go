package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/project"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/internal/nearest"
	"ductor/lang"
	"ductor/orchestrator"
)

// commands implements the bot's commands. Each handler marks the update of its command as handled, and stores the
// answer in the same transaction, so that no answer is lost. If ductor crashes before this transaction, the next
// process runs the command again. Therefore, every command must be safe to repeat.
type commands struct {
	desk     Desk
	finisher *updates.Finisher
	feedback feedback
	messages *message.Messages
	journal  message.Journal
	now      func() time.Time
	lang     *lang.Choices
	log      *slog.Logger

	screens screens
	uploads *updates.Uploads
	table   []updates.CommandSpec
}

// menuItem describes a command in the Bot API format for command menus.
type menuItem struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// menu returns all commands for the menu in Telegram apps.
func (c *commands) menu(p lang.Printer) []menuItem {
	return menuOf(c.table, p, func(updates.CommandSpec) bool { return true })
}

// menuFor returns the commands that users with this role may use.
func (c *commands) menuFor(p lang.Printer, role orchestrator.UserRole) []menuItem {
	return menuOf(c.table, p, func(s updates.CommandSpec) bool { return s.Allows(role) })
}

func menuOf(table []updates.CommandSpec, p lang.Printer, offers func(updates.CommandSpec) bool) []menuItem {
	var items []menuItem
	for _, s := range table {
		if s.Help != "" && !s.Absent && offers(s) {
			items = append(items, menuItem{s.Name, p.Text(s.Help)})
		}
	}
	return items
}

// find returns the command with the given name. If there is none, find returns false and a command that answers
// "unknown command".
func (c *commands) find(name string) (updates.CommandSpec, bool) {
	for _, s := range c.table {
		if !s.Absent && s.Named(name) {
			return c.endsWait(c.announced(s)), true
		}
	}
	return c.endsWait(c.announced(updates.CommandSpec{Right: orchestrator.ChangeSettings, Do: c.unknown})), false
}

// endsWait wraps a command. If the bot asked the user for a text before the command, the user's next message after the
// command no longer counts as this text.
func (c *commands) endsWait(s updates.CommandSpec) updates.CommandSpec {
	do := s.Do
	if do == nil {
		return s
	}
	s.Do = func(ctx context.Context, r updates.Request) {
		c.endWait(ctx, r.In.Press)
		do(ctx, r)
	}
	return s
}

func (c *commands) endWait(ctx context.Context, by orchestrator.Press) {
	if err := message.End(ctx, c.journal, by); err != nil {
		c.log.Warn("end what the bot asked before a command", "err", err)
	}
}

// announced returns a command that passes its text to messages.Noticed before it runs. Attached terminals then show
// this text.
func (c *commands) announced(s updates.CommandSpec) updates.CommandSpec {
	do := s.Do
	if do == nil || c.messages.Noticed == nil {
		return s
	}
	s.Do = func(ctx context.Context, r updates.Request) {
		in, head := r.In.Conversation, lang.Key("bot.in-the-chat")
		if r.In.Update() < 0 {
			head = atTheTerminal(in)
		}
		c.messages.Noticed(in, fmt.Sprint("command/", r.In.Update()), c.lang.Of(in.Chat).Text(head)+"\n"+r.In.Text)
		do(ctx, r)
	}
	return s
}

func (c *commands) answer(ctx context.Context, r updates.Request, text string) {
	c.finisher.Answer(ctx, r.In, text, nil)
}

// fail tells the user that a command failed. It does nothing if ductor is stopping, because the next process then runs
// the command again.
func (c *commands) fail(ctx context.Context, r updates.Request, what lang.Key, err error) {
	p := c.lang.Of(r.In.Conversation.Chat)
	if errors.Is(err, orchestrator.ErrShutdown) {
		return
	}
	c.log.Error("command failed", "command", r.Name, "update", r.In.Update(), "err", err)
	c.answer(ctx, r, p.Text("bot.log-says", p.Text(what)))
}

func (c *commands) start(ctx context.Context, r updates.Request) {
	greeting := lang.Key("bot.hello")
	if !r.In.Role.May(orchestrator.SendPrompts) {
		greeting = "bot.hello-viewer"
	}
	hello := message.Content{
		Text: render.Plain(c.lang.Of(r.In.Conversation.Chat).Text(greeting)), ReplyTo: r.In.Quote(),
	}
	notices, greeted, err := c.screens.users.Greeting(ctx, r.In.Person)
	if err != nil {
		c.fail(ctx, r, "bot.not-found", err)
		return
	}
	if c.finisher.Finish(ctx, r.In.Updates, append(notices, message.Compose(r.In.Conversation, hello))...) &&
		greeted != nil {
		if err := greeted(ctx); err != nil {
			c.log.Error("record that a user was greeted", "user", r.In.Person, "err", err)
		}
	}
}

func (c *commands) help(ctx context.Context, r updates.Request) {
	p := c.lang.Of(r.In.Conversation.Chat)
	var b strings.Builder
	sends := r.In.Role.May(orchestrator.SendPrompts)
	if sends {
		b.WriteString(p.Text("bot.help") + "\n\n")
	}
	for _, m := range c.menuFor(p, r.In.Role) {
		fmt.Fprintf(&b, "/%s: %s\n", m.Command, m.Description)
	}
	if sends {
		b.WriteString("\n" + p.Text("bot.help-more"))
	}
	c.answer(ctx, r, b.String())
}

func (c *commands) unknown(ctx context.Context, r updates.Request) {
	p := c.lang.Of(r.In.Conversation.Chat)
	var names []string
	for _, m := range c.menuFor(p, r.In.Role) {
		names = append(names, m.Command)
	}
	text := p.Text("bot.unknown-command", r.Name)
	if meant := meantCommand(r.Name, names); meant != "" {
		text = p.Text("bot.mistyped-command", r.Name, meant)
	}
	switch r.Name { // users may expect these commands; the texts explain where ductor has buttons for them
	case "export":
		text = p.Text("bot.export-is-a-button")
	case "login":
		text = p.Text("bot.login-is-a-button")
	}
	c.answer(ctx, r, text)
}

// foreignCommands maps commands of other programs to the command of ductor that does the same. The value is "" if
// ductor has no such command. Users then get no suggestion, even if a command of ductor has a similar name.
func foreignCommands() map[string]string {
	return map[string]string{
		"cancel": "abort", "kill": "abort", "quit": "abort", "exit": "abort",
		"clear": "new", "reset": "new", "history": "sessions", "resume": "sessions", "continue": "sessions",
		"cost": "usage", "costs": "usage", "limits": "usage", "stats": "usage", "tokens": "usage",
		"agent": "model", "agents": "model", "models": "model",
		"mode": "permissions", "plan": "permissions", "approvals": "permissions",
		"undo": "checkpoint", "rewind": "checkpoint", "cd": "cwd", "pwd": "cwd", "ls": "files",
		"jobs": "cron", "schedule": "cron",
		"config": "", "settings": "", "logout": "", "mcp": "", "init": "", "git": "", "push": "",
	}
}

// meantCommand returns the command that a user probably meant by an unknown one, or "".
func meantCommand(unknown string, names []string) string {
	if same, foreign := foreignCommands()[unknown]; foreign {
		if slices.Contains(names, same) {
			return same
		}
		return ""
	}
	near, _ := nearest.Of(unknown, names)
	return near
}

// removedCommand returns the handler of a command that no longer exists. The handler sends a text that names the
// command to use instead.
func (c *commands) removedCommand(replacement lang.Key) updates.CommandFunc {
	return func(ctx context.Context, r updates.Request) {
		c.answer(ctx, r, c.lang.Of(r.In.Conversation.Chat).Text(replacement))
	}
}

// endSession ends the session of a conversation. It also withdraws the agent's unsent messages. If the bot asked the
// user for a text before, the user's next message no longer counts as this text.
func (c *commands) endSession(ctx context.Context, in *updates.Message) error {
	if err := c.desk.New(ctx, in.Conversation); err != nil {
		return err
	}
	c.withdraw(ctx, in.Conversation)
	if err := message.Clear(ctx, c.journal, in.Press); err != nil {
		c.log.Warn("end what the bot asked before a new session", "err", err)
	}
	return nil
}

// newSession answers "/new". If a prompt follows the command, this prompt starts the new session at once.
func (c *commands) newSession(ctx context.Context, r updates.Request) {
	if err := c.endSession(ctx, r.In); err != nil {
		c.fail(ctx, r, "bot.not-begun", err)
		return
	}
	p := c.lang.Of(r.In.Conversation.Chat)
	if r.Args == "" {
		c.answer(ctx, r, p.Text("bot.new-session"))
		return
	}
	text, wants := r.Args, orchestrator.Wants{}
	if name, rest, ok := updates.SplitName(text); ok {
		if model, named := c.screens.menus.Addressed(ctx, r.In.Conversation, name); named {
			text, wants = rest, wantsOf(model)
		}
	}
	receipt, err := c.desk.Submit(ctx, orchestrator.Prompt{
		Conversation: r.In.Conversation, Person: r.In.Person, Text: r.In.Context + text, Message: r.In.ID,
		Updates: r.In.Updates, Rights: orchestrator.Rights{Of: r.In.Role.OfTurns()}, Arrived: r.In.Arrived,
	}, wants)
	switch {
	case err != nil:
		c.fail(ctx, r, "bot.not-begun", err)
	case receipt.Full:
		c.finisher.Refuse(ctx, r.In, p.Text("updates.queue-full"))
	}
}

// page converts a function that returns a page to a CommandFunc that sends the page.
func (c *commands) page(
	command func(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error),
) updates.CommandFunc {
	return func(ctx context.Context, r updates.Request) {
		page, err := command(ctx, r.In.Press, r.Args)
		c.reply(ctx, r, tgapi.Answer{Edit: page}, err)
	}
}

// reply sends the answer to a command and marks its update as handled. An empty answer means that the handler of the
// command has already marked the update.
func (c *commands) reply(ctx context.Context, r updates.Request, a tgapi.Answer, err error) {
	switch {
	case err != nil:
		c.fail(ctx, r, "bot.not-done", err)
	case len(a.Messages) > 0:
		c.finisher.Finish(ctx, r.In.Updates, a.Messages...)
	case a.Edit.Text != "":
		c.finisher.Answer(ctx, r.In, a.Edit.Text, a.Edit.Keyboard)
	case a.Text != "":
		c.answer(ctx, r, a.Text)
	}
}

// listSessions answers /sessions. For "/sessions import", which older versions had, it explains the replacement.
func (c *commands) listSessions(ctx context.Context, r updates.Request) {
	if r.Args == "import" {
		c.removedCommand("sessions.import-is-gone")(ctx, r)
		return
	}
	c.page(c.screens.sessions.Command)(ctx, r)
}

func (c *commands) terminal(ctx context.Context, r updates.Request) {
	text, err := c.screens.sessions.Terminal(ctx, r.In.Press, r.Args)
	if err != nil {
		c.fail(ctx, r, "bot.not-done", err)
		return
	}
	answer := message.Content{Text: text, ReplyTo: r.In.Quote()}
	c.finisher.Finish(ctx, r.In.Updates, message.Compose(r.In.Conversation, answer))
}

func (c *commands) cwd(ctx context.Context, r updates.Request) {
	p := c.lang.Of(r.In.Conversation.Chat)
	if r.Args == "" {
		st, err := c.desk.Status(ctx, r.In.Conversation)
		if err != nil {
			c.fail(ctx, r, "bot.not-found", err)
			return
		}
		c.answer(ctx, r, p.Text("bot.cwd", st.Dir)+"\n"+p.Text("bot.cwd-help"))
		return
	}
	before, errBefore := c.desk.Status(ctx, r.In.Conversation)
	dir, err := c.desk.SetDir(ctx, r.In.Conversation, r.Args, r.In.Person)
	switch {
	case errors.Is(err, orchestrator.ErrOutsideRoot):
		c.answer(ctx, r, p.Text("common.outside-roots", render.Cut(r.Args, 200)))
	case errors.Is(err, orchestrator.ErrNotADir):
		c.answer(ctx, r, p.Text("common.no-directory", render.Cut(r.Args, 200)))
	case err != nil:
		c.fail(ctx, r, "bot.dir-not-changed", err)
	default:
		text := p.Text("project.opened", dir)
		// The directory is set even if one of the calls of Status failed. The answer then contains fewer details.
		if now, err := c.desk.Status(ctx, r.In.Conversation); errors.Join(err, errBefore) == nil {
			text = project.ChosenDir(p, before, now)
		}
		c.answer(ctx, r, text)
	}
}

// newTopic answers /newtopic. It is not safe to repeat: if ductor crashes before newTopic returns, the next process
// creates a second topic.
func (c *commands) newTopic(ctx context.Context, r updates.Request) {
	o, err := c.screens.projects.NewTopic(ctx, r.In.Press, r.Args)
	if err != nil {
		c.fail(ctx, r, "bot.not-done", err)
		return
	}
	answers := []orchestrator.Message{
		message.Compose(r.In.Conversation, message.Content{Text: render.Plain(o.Text), ReplyTo: r.In.Quote()}),
	}
	if o.First != "" {
		answers = append(answers, message.Compose(o.In, message.Content{Text: render.Plain(o.First)}))
	}
	c.finisher.Finish(ctx, r.In.Updates, answers...)
}

func (c *commands) diff(ctx context.Context, r updates.Request) {
	a, err := c.screens.changes.Diff(ctx, r.In.Press, r.Args)
	c.reply(ctx, r, a, err)
}

func (c *commands) onFiles(
	do func(ctx context.Context, r updates.Request, path string) (tgapi.Answer, error),
) updates.CommandFunc {
	return func(ctx context.Context, r updates.Request) {
		a, err := do(ctx, r, unquoted(r.Args))
		c.reply(ctx, r, a, err)
	}
}

func (c *commands) browse(ctx context.Context, r updates.Request, path string) (tgapi.Answer, error) {
	return c.screens.files.Browse(ctx, r.In.Press, path)
}

func (c *commands) get(ctx context.Context, r updates.Request, path string) (tgapi.Answer, error) {
	return c.screens.files.Get(ctx, r.In.Press, path)
}

// put stores the file of a command, or all files of an album. The answer has a line for each file.
func (c *commands) put(ctx context.Context, r updates.Request, path string) (tgapi.Answer, error) {
	var lines []string
	for _, file := range append([]updates.FileFunc{r.File}, r.Others...) {
		a, err := c.putOne(ctx, r, path, file)
		if err != nil {
			return a, err
		}
		lines = append(lines, a.Text)
	}
	return tgapi.Answer{Text: strings.Join(lines, "\n")}, nil
}

func (c *commands) putOne(ctx context.Context, r updates.Request, path string,
	file updates.FileFunc) (tgapi.Answer, error) {
	p := c.lang.Of(r.In.Conversation.Chat)
	name, content, err := file(ctx)
	switch {
	case errors.Is(err, updates.ErrNoFile):
		return tgapi.Answer{Text: p.Text("files.how-to-put")}, nil
	case err != nil:
		c.log.Warn("fetch a file", "update", r.In.Update(), "err", err)
		return tgapi.Answer{Text: c.uploads.Sentence(p, err)}, nil
	}
	return c.screens.files.Put(ctx, r.In.Press, path, name, content)
}

// unquoted removes quotes around a path, which users write as in a shell if it contains spaces.
func unquoted(path string) string {
	for _, quote := range []string{`"`, "'"} {
		if inner, is := strings.CutPrefix(path, quote); is && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return path
}
