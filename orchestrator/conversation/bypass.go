package conversation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/turn"
)

// Bypass lets everything through in a conversation from the next turn on, for a while or until ductor is restarted. Then
// the conversation is in ask. ErrBadChoice for a time that is too long or none.
func (e *Engine) Bypass(ctx context.Context, id orchestrator.ConversationID, lasts time.Duration, by orchestrator.PersonID) error {
	if lasts <= 0 || lasts > orchestrator.MostBypass {
		return orchestrator.ErrBadChoice
	}
	until := e.now().Add(lasts)
	err := e.setMode(ctx, id, cli.Bypass, until, orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: fmt.Sprint(cli.Bypass, " ", lasts), By: by})
	if err == nil {
		e.opts.After(lasts, func() { e.bypassOver(context.WithoutCancel(ctx), id, until) })
		e.warm(ctx, id)
	}
	return err
}

// bypassed reports whether the conversation is in a bypass that was chosen in it, counts in an environment and lasts.
func (e *Engine) bypassed(c orchestrator.Conversation, in cli.Sandbox) bool {
	return c.Permission == cli.Bypass && c.GrantedIn == in && e.now().Before(c.BypassUntil)
}

// bypassOver is called when the bypass of a conversation that was to end at until has lasted its time, whatever the clock
// says. Another one may have been chosen since, or none.
func (e *Engine) bypassOver(ctx context.Context, id orchestrator.ConversationID, until time.Time) {
	c, err := e.conversation(id)
	if err != nil || !e.open() {
		return // the next start ends it
	}
	defer e.wg.Done()
	ended, turn, err := c.expire(ctx, until)
	if err != nil {
		e.log.Error("end a bypass", "chat", id.Chat, "topic", id.Topic, "err", err) // permissionOf knows that it is over
	}
	if turn != "" {
		c.leaveBypass(ctx, turn)
	}
	if ended { // and nothing runs in it any more
		e.notice(ctx, id, "turn.bypass-over")
	}
}

// expire ends the bypass that was to end at until, or one whose moment has passed, and names the turn that still runs in it.
func (c *conversation) expire(ctx context.Context, until time.Time) (ended bool, turn cli.TurnID, err error) {
	c.do(func() {
		conv, failed := c.e.opts.Store.Conversation(ctx, c.id)
		if err = failed; err == nil && c.e.bypassed(conv, conv.GrantedIn) && conv.BypassUntil.UnixMilli() != until.UnixMilli() {
			return
		}
		if r := c.running.Load(); r != nil && r.req != nil && !r.turn.Bypass.IsZero() {
			turn = r.turn.ID
		}
		if err != nil || conv.Permission != cli.Bypass {
			return
		}
		err = c.e.save(ctx, c.id, func(c *orchestrator.Conversation) { c.Permission, c.BypassUntil = cli.Ask, time.Time{} },
			orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: string(cli.Ask), Reason: "expired"})
		ended = err == nil
	})
	return ended, turn, err
}

// leaveBypass has the agent of a turn in bypass ask, or ends the turn where that cannot be.
func (c *conversation) leaveBypass(ctx context.Context, id cli.TurnID) {
	call, cancel := context.WithTimeout(ctx, steerWait)
	defer cancel()
	err := c.e.opts.Gateway.SetPermission(call, id, cli.Ask)
	if err == nil {
		c.e.approvals.SetMode(id, cli.Ask)
	}
	c.do(func() {
		r := c.running.Load()
		switch {
		case !r.is(id):
		case err != nil:
			c.e.log.Info("turn is ended with its bypass", "turn", id, "why", err)
			r.cancel(turn.ErrBypassOver)
		default:
			now := *r
			now.turn.Bypass = time.Time{}
			c.running.Store(&now)
		}
	})
}

// CaughtUp implements turn.Conversation: the agent of a turn that the previous process left in bypass asks from now on.
func (c *conversation) CaughtUp(ctx context.Context, t orchestrator.Turn) {
	if !t.Bypass.IsZero() {
		c.e.wg.Go(func() {
			c.leaveBypass(ctx, t.ID)
			c.e.notice(ctx, c.id, "turn.bypass-restarted")
		})
	}
}

// endBypasses ends every bypass that was chosen before a restart, and says so where no turn is left that runs in it. It
// marks those that do.
func (e *Engine) endBypasses(ctx context.Context, turns []orchestrator.Turn, remains map[cli.TurnID]cli.Remains) error {
	over, err := e.opts.Store.EndBypasses(ctx, e.now())
	if err != nil {
		return fmt.Errorf("end bypasses: %w", err)
	}
	for i, t := range turns {
		switch {
		case t.Bypass.IsZero():
		case t.State == orchestrator.TurnRunning && remains[t.ID] == cli.RemainsRun:
			turns[i].Bypass = e.now() // it is over, and the agent does not know
			over = slices.DeleteFunc(over, func(id orchestrator.ConversationID) bool { return id == t.Prompt.Conversation })
		default:
			turns[i].Bypass = time.Time{}
		}
	}
	for _, id := range over {
		e.notice(ctx, id, "turn.bypass-restarted")
	}
	return nil
}

func (e *Engine) notice(ctx context.Context, id orchestrator.ConversationID, text lang.Key) {
	if err := e.opts.Chat.Notice(ctx, id, e.opts.Lang.Of(id.Chat).Text(text)); err != nil {
		e.log.Error("tell a chat", "chat", id.Chat, "topic", id.Topic, "err", err)
	}
}
