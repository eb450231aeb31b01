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

// Bypass implements menu.Service.
func (e *Engine) Bypass(ctx context.Context, id orchestrator.ConversationID, lasts time.Duration,
	by orchestrator.PersonID) error {
	if lasts <= 0 || lasts > orchestrator.MostBypass {
		return orchestrator.ErrBadChoice
	}
	until := e.now().Add(lasts)
	err := e.setMode(ctx, id, cli.Bypass, until, orchestrator.ModeAudit(fmt.Sprint(cli.Bypass, " ", lasts), by))
	if err == nil {
		e.opts.After(lasts, func() { e.bypassOver(context.WithoutCancel(ctx), id, until) })
	}
	return err
}

// bypassed reports whether the permission mode bypass is active for a conversation. It is active only in the
// environment for which a user chose it, and only until BypassUntil.
func (e *Engine) bypassed(c orchestrator.Conversation, in cli.Sandbox) bool {
	return c.Permission == cli.Bypass && c.GrantedIn == in && e.now().Before(c.BypassUntil)
}

// bypassOver ends a bypass when the timer of the bypass fires. until is the BypassUntil of this bypass: if a user has
// started another bypass in the meantime, bypassOver does nothing. It does not compare until with the wall clock, which
// a user may have changed.
func (e *Engine) bypassOver(ctx context.Context, id orchestrator.ConversationID, until time.Time) {
	c, err := e.conversation(id)
	if err != nil || !e.open() {
		return // ductor is ending; the next process ends the bypass
	}
	defer e.wg.Done()
	ended, turns, err := c.expire(ctx, until)
	if err != nil {
		// Only log the error: even without this write, permissionOf ignores a bypass after its BypassUntil.
		e.log.Error("end a bypass", "chat", id.Chat, "topic", id.Topic, "err", err)
	}
	for _, id := range turns {
		c.leaveBypass(ctx, id)
	}
	if ended {
		e.notice(ctx, id, "turn.bypass-over")
	}
}

// expire ends the conversation's bypass. It does nothing if a user has started another bypass, which ends at another
// time. It returns the running turns that use a bypass.
func (c *conversation) expire(ctx context.Context, end time.Time) (ended bool, turns []cli.TurnID, err error) {
	c.do(func(c *conversation) {
		conv, failed := c.e.opts.Store.Conversation(ctx, c.id())
		if err = failed; err == nil && c.e.bypassed(conv, conv.GrantedIn) &&
			conv.BypassUntil.UnixMilli() != end.UnixMilli() {
			return
		}
		for _, r := range c.active.turns() {
			if r.req != nil && !r.turn.Bypass.IsZero() {
				turns = append(turns, r.turn.ID)
			}
		}
		if err != nil || conv.Permission != cli.Bypass {
			return
		}
		err = c.e.save(ctx, c.id(), func(c *orchestrator.Conversation) {
			c.Permission, c.BypassUntil = cli.Ask, time.Time{}
		},
			orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: string(cli.Ask), Reason: "expired"})
		ended = err == nil
	})
	return ended, turns, err
}

// leaveBypass switches the agent of a running turn from the mode bypass to ask. If the agent cannot switch, leaveBypass
// ends the turn.
func (c *conversation) leaveBypass(ctx context.Context, id cli.TurnID) {
	call, cancel := context.WithTimeout(ctx, steerWait)
	defer cancel()
	err := c.e.opts.Gateway.SetPermission(call, id, cli.Ask)
	if err == nil {
		c.e.approvals.SetMode(id, cli.Ask)
	}
	c.do(func(c *conversation) {
		switch r := c.active.turn(id); {
		case r == nil:
		case err != nil:
			c.e.log.Info("turn is ended with its bypass", "turn", id, "why", err)
			r.cancel(turn.ErrBypassOver)
		default:
			now := *r
			now.turn.Bypass = time.Time{}
			c.active.replace(r, &now)
		}
	})
}

// CaughtUp implements turn.Conversation. It switches agents from the mode bypass to ask, because a bypass does not
// survive a restart. Afterwards it notifies the chat.
func (c *conversation) CaughtUp(ctx context.Context, t orchestrator.Turn) {
	if !t.Bypass.IsZero() {
		c.e.wg.Go(func() {
			c.leaveBypass(ctx, t.ID)
			c.e.notice(ctx, c.id(), "turn.bypass-restarted")
		})
	}
}

// endBypasses ends every bypass after a restart of ductor, and notifies the conversations. If the disk is full, it
// stores the change later. Until then, the store ignores every bypass from before the restart.
//
// A running agent may still be in the mode bypass. endBypasses sets Turn.Bypass of its turn, so that CaughtUp switches
// the agent to another mode and notifies the chat.
func (e *Engine) endBypasses(ctx context.Context, turns []orchestrator.Turn, remains map[cli.TurnID]cli.Remains) error {
	over, err := e.opts.Store.EndedBypasses(ctx)
	if err != nil {
		return fmt.Errorf("list ended bypasses: %w", err)
	}
	at, notify := e.now(), slices.Clone(over)
	for i, t := range turns {
		switch {
		case t.Bypass.IsZero():
		case t.State == orchestrator.TurnRunning && remains[t.ID] == cli.RemainsRun:
			turns[i].Bypass = at
			notify = slices.DeleteFunc(notify,
				func(in orchestrator.ConversationID) bool { return in == t.Prompt.Conversation })
		default:
			turns[i].Bypass = time.Time{}
		}
	}
	_, err = e.retrier().Record(context.WithoutCancel(ctx), e.log, func(ctx context.Context) error {
		if len(over) > 0 {
			if err := e.opts.Store.EndBypasses(ctx, over, at); err != nil {
				return err
			}
			over = nil
		}
		for ; len(notify) > 0; notify = notify[1:] {
			text := e.opts.Lang.Of(notify[0].Chat).Text("turn.bypass-restarted")
			if err := e.opts.Chat.Notice(ctx, notify[0], text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // a full disk, for example, must not prevent the start
		e.log.Error("record the end of bypasses", "err", err)
	}
	return nil
}

// notice sends a message to a chat. It logs errors, and reports whether it succeeded.
func (e *Engine) notice(ctx context.Context, id orchestrator.ConversationID, text lang.Key) bool {
	err := e.opts.Chat.Notice(ctx, id, e.opts.Lang.Of(id.Chat).Text(text))
	if err != nil {
		e.log.Error("notify a chat", "chat", id.Chat, "topic", id.Topic, "text", text, "err", err)
	}
	return err == nil
}
