package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ductor/bot/cron"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// status says in a few lines what is set and what runs.
func (c *commands) status(ctx context.Context, r updates.Request) {
	st, err := c.desk.Status(ctx, r.In.Conversation)
	if err != nil {
		c.fail(ctx, r, "I could not look it up.", err)
		return
	}
	c.answer(ctx, r, statusText(st, c.now())+slowedLine(c.voice.Slowed(r.In.Conversation.Chat)))
}

func statusText(st orchestrator.Status, now time.Time) string {
	lines := []string{render.ChoiceText(lang.Printer{}, st.Agent, st.Model, st.Effort)}
	if r := st.Running; r != nil {
		lines = append(lines, fmt.Sprintf("Running for %s: %s", (lang.Printer{}).Rounded(now.Sub(r.Started)), orSomething(r.Title)))
		switch r.Rights.Of {
		case orchestrator.RightsOfJob:
			lines = append(lines, "It is the run of a job. "+cron.RightsLine(lang.Printer{}, r.Rights))
		case orchestrator.RightsOfMember:
			lines = append(lines, "It runs for a member who is not listed. "+cron.RightsLine(lang.Printer{}, r.Rights))
		}
		if r.Approvals > 0 {
			lines = append(lines, "The agent waits for an answer to "+render.Count(r.Approvals, "thing", "things")+" it asked above")
		}
	} else {
		lines = append(lines, "Nothing is running")
	}
	if st.Queue > 0 {
		lines = append(lines, "Waiting: "+render.Count(st.Queue, "message", "messages"))
	}
	if s := st.Session; s.ID != "" {
		lines = append(lines, "Session: "+orSomething(s.Title)+" ("+counters(s)+")")
	} else {
		lines = append(lines, "Session: begins with your next message")
	}
	lines = append(lines, "Directory: "+st.Dir)
	if st.Sandbox != "" {
		lines = append(lines, sandboxLines(st.Sandbox)...)
	}
	lines = append(lines, "Permissions: "+render.WithBypassLeft(lang.Printer{}, st.Permission, st.BypassUntil, now))
	if st.Busy != "" && st.Busy != orchestrator.BusyQueue {
		lines = append(lines, "While the agent works: "+string(st.Busy))
	}
	if st.Role != "" {
		lines = append(lines, "Role: "+st.Role)
	}
	return strings.Join(append(lines, livingLines(st.Conversation, st.Live)...), "\n")
}

// slowedLine says how Telegram slows the chat down, on a line of its own; empty where it does not.
func slowedLine(s outbox.Slowdown) string {
	switch {
	case s.Silence > 0:
		return "\nSlowed by Telegram: silent for " + (lang.Printer{}).Rounded(s.Silence+time.Second-1)
	case s.Every > 0:
		return "\nSlowed by Telegram: a message or an edit every " + (lang.Printer{}).Elapsed(s.Every)
	}
	return ""
}

// sandboxLines say where agents run, and who is not kept from whom there.
func sandboxLines(in cli.Sandbox) []string {
	where := fmt.Sprintf("Runs in the sandbox %s (docker)", in.Name())
	if in.Alone() != "" {
		return []string{where + ", in a container for this chat alone"}
	}
	return []string{where, "Sessions in one sandbox can read each other's homes and answer for each other"}
}

func counters(s orchestrator.Session) string {
	parts := []string{render.Count(s.Messages, "message", "messages")}
	if s.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", s.CostUSD))
	}
	if s.Tokens > 0 {
		parts = append(parts, thousands(s.Tokens)+" tokens")
	}
	return strings.Join(parts, ", ")
}

func thousands(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

func orSomething(title string) string {
	if title == "" {
		return "(without words)"
	}
	return title
}

// sessionsShown is how many sessions get a button.
const sessionsShown = 10

// sessions lists earlier sessions, each with a button that makes it the current one.
func (c *commands) sessions(ctx context.Context, r updates.Request) {
	list, err := c.desk.Sessions(ctx, r.In.Conversation)
	if err != nil {
		c.fail(ctx, r, "I could not look them up.", err)
		return
	}
	st, err := c.desk.Status(ctx, r.In.Conversation)
	if err != nil {
		c.fail(ctx, r, "I could not look them up.", err)
		return
	}
	if len(list) == 0 {
		c.answer(ctx, r, "There are no sessions here yet; your next message begins one.")
		return
	}
	text, keyboard := sessionList(list, st.Session.ID, c.now())
	c.closer.Answer(ctx, r.In, text, keyboard)
}

func sessionList(list []orchestrator.Session, current orchestrator.SessionID, now time.Time) (string, tgapi.Keyboard) {
	var b strings.Builder
	b.WriteString("Sessions of this chat, the last used first. A button goes on with one.\n")
	var keyboard tgapi.Keyboard
	for i, s := range list[:min(len(list), sessionsShown)] {
		mark := ""
		if s.ID == current {
			mark = " ✓"
		}
		used := s.Used
		if used.IsZero() {
			used = s.Created
		}
		fmt.Fprintf(&b, "\n%d. %s%s\n    %s ago, %s, %s", i+1, orSomething(s.Title), mark, (lang.Printer{}).Rounded(now.Sub(used)), counters(s), s.Dir)
		if data, ok := tgapi.ButtonData(actResume, string(s.ID)); ok {
			keyboard = append(keyboard, []tgapi.Button{{Text: fmt.Sprintf("%d. %s%s", i+1, render.Cut(orSomething(s.Title), 40), mark), Data: data}})
		}
	}
	return b.String(), keyboard
}
