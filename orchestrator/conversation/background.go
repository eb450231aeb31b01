package conversation

import (
	"context"
	"errors"
	"strings"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Background shows text that an agent wrote while no turn was running, for example when a background command ended.
func (e *Engine) Background(key cli.Conversation, r cli.BackgroundResult) {
	id, err := orchestrator.ParseKey(key)
	if err != nil {
		return
	}
	e.opts.Budgets.Count(e.life, orchestrator.Spent{ID: e.opts.NewID(), Conversation: id, Agent: "claude",
		Model: r.Model, Usage: r.Consumed.Usage, CostUSD: r.Consumed.CostUSD})
	text := r.Text
	if text == "" && r.Task == "" {
		return
	}
	if r.Task != "" {
		text = strings.TrimSpace(e.opts.Lang.Of(id.Chat).Text("turn.background",
			"`"+strings.ReplaceAll(r.Task, "`", "'")+"`") + "\n\n" + text)
	}
	e.spawn(func() {
		text := e.withoutSecrets(id, text)
		if r.Of != "" && e.extend(id, r.Of, text) {
			return
		}
		if err := e.opts.Chat.Notice(e.life, id, text); err != nil {
			e.log.Error("show background output of the agent", "chat", id.Chat, "err", err)
		}
	})
}

const lateWait = 10 * time.Second

// extend adds text to the answer and the card of a turn that has ended. It returns false if the card has no space for
// the text.
func (e *Engine) extend(in orchestrator.ConversationID, turn cli.TurnID, text string) bool {
	ctx, cancel := context.WithTimeout(e.life, lateWait)
	defer cancel()
	c, err := e.conversation(in)
	if err != nil {
		return false
	}
	if r := c.active.turn(turn); r != nil {
		select {
		case <-r.over:
		case <-ctx.Done():
		}
	}
	t, err := e.opts.Store.ExtendAnswer(ctx, turn, text)
	if err == nil && t.Outcome.Short == "" {
		err = e.opts.Chat.Extend(ctx, t)
	}
	if err != nil && !errors.Is(err, orchestrator.ErrCannotAmend) {
		e.log.Error("extend the answer of a turn", "turn", turn, "err", err)
	}
	return err == nil && t.Outcome.Short == ""
}

func (e *Engine) withoutSecrets(id orchestrator.ConversationID, text string) string {
	_, session, _, err := e.next(e.life, id)
	if err != nil {
		e.log.Error("load the secrets of a project", "chat", id.Chat, "err", err)
	}
	return e.secretsOf(cli.Request{Dir: session.Dir}).String(text)
}

// secretsOf returns the secrets that a request could expose: ductor's, the project's, and the MCP servers'.
func (e *Engine) secretsOf(req cli.Request) *secrets.Set {
	var set *secrets.Set
	if e.opts.Secrets != nil {
		set = e.opts.Secrets(req.Dir)
	}
	for _, s := range req.Servers {
		set = set.With(secrets.OfEnvironment(s.Environ())...)
	}
	return set
}
