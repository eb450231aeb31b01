package bot

import (
	"context"
	"strings"
	"time"

	"ductor/bot/agent"
	"ductor/bot/cron"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/sessions"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// status answers /status.
func (c *commands) status(ctx context.Context, r updates.Request) {
	p := c.lang.Of(r.In.Conversation.Chat)
	st, err := c.desk.Status(ctx, r.In.Conversation)
	if err != nil {
		c.fail(ctx, r, "bot.not-found", err)
		return
	}
	later := c.screens.jobs.LaterLines(ctx, r.In.Conversation)
	c.answer(ctx, r, statusText(p, st, c.now(), later)+slowedLine(p, c.feedback.Slowed(r.In.Conversation.Chat)))
}

// ofAgent returns a CommandFunc for a command that the agent handles, such as /compact. If the command starts a turn,
// the turn's card is the answer.
func (c *commands) ofAgent(
	do func(ctx context.Context, args string, p orchestrator.Prompt) (agent.Answer, error),
) updates.CommandFunc {
	return func(ctx context.Context, r updates.Request) {
		a, err := do(ctx, r.Args, orchestrator.Prompt{
			Conversation: r.In.Conversation, Person: r.In.Person, Message: r.In.ID, Updates: r.In.Updates,
		})
		if err != nil || !a.Handled {
			c.reply(ctx, r, a.Answer, err)
		}
	}
}

// statusText returns the answer to /status. later contains the result of cron.Screen.LaterLines.
func statusText(p lang.Printer, st orchestrator.Status, now time.Time, later []string) string {
	who := render.ChoiceText(p, st.Agent, st.Model, st.Effort)
	if account := st.Settings.Accounts[st.Agent]; account != "" {
		who = p.Text("limit.with", who, string(account))
	}
	lines := []string{cli.LimitLines(p, st.Live.Limits, now) + who}
	if r := st.Running; r != nil {
		lines = append(lines, p.Text("status.running", p.Rounded(now.Sub(r.Started)), sessions.Title(p, r.Title)))
		lines = append(lines, cron.OriginLines(p, r.Rights)...)
		if r.Approvals > 0 {
			lines = append(lines, p.Text("status.asks", r.Approvals))
		}
	} else {
		lines = append(lines, p.Text("status.nothing-runs"))
	}
	if len(st.Queue) > 0 {
		lines = append(lines, p.Text("status.waiting", len(st.Queue)))
	}
	lines = append(lines, later...)
	if s := st.Session; s.ID != "" {
		line := p.Text("status.session-first", sessions.Title(p, s.Title))
		if counts := sessions.Counts(p, s); counts != "" {
			line = p.Text("status.session", sessions.Title(p, s.Title), counts)
		}
		lines = append(lines, line)
	} else {
		lines = append(lines, p.Text("status.session-begins"))
	}
	lines = append(lines, p.Text("status.directory", st.Dir))
	if st.Sandbox != "" {
		lines = append(lines, sandboxLines(p, st.Sandbox)...)
	}
	lines = append(lines, p.Text("status.permissions", render.WithBypassLeft(p, st.Permission, st.BypassUntil, now)))
	if st.Settings.Busy != "" && st.Settings.Busy != orchestrator.BusyQueue {
		lines = append(lines, p.Text("status.busy", st.Settings.Busy))
	}
	if st.Role != "" {
		lines = append(lines, p.Text("status.role", st.Role))
	}
	return strings.Join(append(lines, livingLines(p, st.Conversation, st.Live)...), "\n")
}

// slowedLine describes how Telegram currently limits messages to the chat. It returns "" if there is no limit.
func slowedLine(p lang.Printer, s outbox.Slowdown) string {
	switch {
	case s.Silence > 0:
		return "\n" + p.Text("status.silent", p.Rounded(s.Silence+time.Second-1))
	case s.Every > 0:
		return "\n" + p.Text("status.slowed", p.Elapsed(s.Every))
	}
	return ""
}

// sandboxLines returns lines with the name of the sandbox, and whether other conversations use the same sandbox.
func sandboxLines(p lang.Printer, in cli.Sandbox) []string {
	if in.Alone() != "" {
		return []string{p.Text("status.sandbox-alone", in.Name())}
	}
	return []string{p.Text("status.sandbox", in.Name()), p.Text("status.sandbox-shared")}
}

// reloadConfig answers /reload. The answer contains no values from the configuration, because all members of a group
// can read it.
func (c *commands) reloadConfig(ctx context.Context, r updates.Request) {
	c.answer(ctx, r, c.screens.reload(ctx, r.In.Press))
}

func (c *commands) doctor(ctx context.Context, r updates.Request) {
	c.screens.checks.Doctor(ctx, r.In.Press, r.In.Quote())
}
