package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ductor/bot/cron"
	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// commands answers what begins with a slash. Every handler finishes the update of the message, with its answer
// as a notice, in one transaction; so an answer is never lost, and a command is done again at most when
// ductor dies between the two, where doing it again changes nothing.
type commands struct {
	desk     Desk
	closer   *updates.Finisher
	voice    voice
	messages *message.Messages
	now      func() time.Time
	log      *slog.Logger

	menus *menu.Menus
	jobs  *cron.Screen
}

// menuItem is one line of the command menu.
type menuItem struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// commandMenu is what clients offer; setMyCommands publishes it.
func commandMenu() []menuItem {
	return []menuItem{
		{"new", "begin a new session"},
		{"model", "choose agent, model and effort"},
		{"permissions", "choose what the agent may do without asking"},
		{"role", "choose the role the agent plays"},
		{"queue", "choose what becomes of messages while the agent works"},
		{"cron", "jobs that run on a schedule: list, add, change"},
		{"abort", "stop what runs and empty the queue"},
		{"status", "what is set and what runs"},
		{"sessions", "go on with an earlier session"},
		{"cwd", "show or change the working directory"},
		{"help", "what I can do"},
	}
}

// Command gives the handler of a command. For an unknown one it gives a handler that says so.
func (c *commands) Command(name string) (do updates.CommandFunc, known bool) {
	switch name {
	case "start":
		return c.start, true
	case "help":
		return c.help, true
	case "new":
		return c.fresh, true
	case "model":
		return c.model, true
	case "permissions":
		return c.page(c.menus.Permissions), true
	case "role":
		return c.page(c.menus.Role), true
	case "queue":
		return c.page(c.menus.Busy), true
	case "cron":
		return c.page(c.jobs.Command), true
	case "status":
		return c.status, true
	case "sessions":
		return c.sessions, true
	case "cwd":
		return c.cwd, true
	}
	return c.unknown, false
}

func (c *commands) answer(ctx context.Context, r updates.Request, text string) {
	c.closer.Answer(ctx, r.In, text, nil)
}

// fail tells that a command did not do what it says. At the end of ductor it tells nothing: the command
// stays in the journal.
func (c *commands) fail(ctx context.Context, r updates.Request, text string, err error) {
	if errors.Is(err, orchestrator.ErrShutdown) {
		return
	}
	c.log.Error("command failed", "command", r.Name, "update", r.In.Update, "err", err)
	c.answer(ctx, r, text+" The log says what is wrong.")
}

func (c *commands) start(ctx context.Context, r updates.Request) {
	c.answer(ctx, r, "Hello. Write to me what the agent on your machine should do; its answer appears here while it works.\n\n"+
		"/model chooses who answers, /cwd where it works, /help tells the rest.")
}

func (c *commands) help(ctx context.Context, r updates.Request) {
	var b strings.Builder
	b.WriteString("Send text, photos or files: they go to the agent. What you send while it works waits its turn, unless you steer or interrupt; edit a waiting message to change it.\n\n")
	for _, m := range commandMenu() {
		fmt.Fprintf(&b, "/%s: %s\n", m.Command, m.Description)
	}
	b.WriteString("\n/model opus, /permissions plan, /queue steer and /role followed by a name choose at once. Two slashes, as in //todo, send the agent a text that begins with a slash.")
	c.answer(ctx, r, b.String())
}

func (c *commands) unknown(ctx context.Context, r updates.Request) {
	c.answer(ctx, r, fmt.Sprintf("I do not know /%s; /help lists what I know. To send it to the agent, begin with two slashes: //%s", r.Name, r.Name))
}

func (c *commands) fresh(ctx context.Context, r updates.Request) {
	if err := c.desk.New(ctx, r.In.Conversation); err != nil {
		c.fail(ctx, r, "I could not begin a new session.", err)
		return
	}
	c.answer(ctx, r, "New session: your next message begins it. /sessions leads back.")
}

// page makes a handler of a command that a screen answers with a page.
func (c *commands) page(command func(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error)) updates.CommandFunc {
	return func(ctx context.Context, r updates.Request) {
		page, err := command(ctx, r.In.By(), r.Args)
		if err != nil {
			c.fail(ctx, r, nothingChanged, err)
			return
		}
		c.closer.Answer(ctx, r.In, page.Text, page.Keyboard)
	}
}

func (c *commands) model(ctx context.Context, r updates.Request) {
	page, sent, err := c.menus.Model(ctx, r.In.By(), r.Args)
	switch {
	case err != nil:
		c.fail(ctx, r, nothingChanged, err)
	case sent != nil:
		c.closer.AnswerFollowed(ctx, r.In, page.Text, page.Keyboard, sent)
	default:
		c.closer.Answer(ctx, r.In, page.Text, page.Keyboard)
	}
}

const nothingChanged = "I could not do that; nothing was changed."

func (c *commands) cwd(ctx context.Context, r updates.Request) {
	if r.Args == "" {
		st, err := c.desk.Status(ctx, r.In.Conversation)
		if err != nil {
			c.fail(ctx, r, "I could not look it up.", err)
			return
		}
		c.answer(ctx, r, "The agent works in "+st.Dir+"\n/cwd followed by a directory changes it.")
		return
	}
	dir, err := c.desk.SetDir(ctx, r.In.Conversation, r.Args, r.In.User)
	switch {
	case errors.Is(err, orchestrator.ErrOutsideRoot):
		c.answer(ctx, r, "That directory is outside the places ductor may work in (projects.roots in config.toml).")
	case errors.Is(err, orchestrator.ErrNotADir):
		c.answer(ctx, r, "There is no such directory: "+render.Cut(r.Args, 200))
	case err != nil:
		c.fail(ctx, r, "I could not change the directory.", err)
	default:
		c.answer(ctx, r, "From now on the agent works in "+dir+", in a session of its own.")
	}
}
