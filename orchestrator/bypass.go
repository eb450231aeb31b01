package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
)

// How long a bypass lasts that was chosen in a chat.
const (
	DefaultBypass = time.Hour
	MostBypass    = 24 * time.Hour
)

// errBypassOver ends a turn whose agent cannot be told to ask while it works.
var errBypassOver = errors.New("bypass is over")

// Sentences that chats are told.
const (
	bypassOverNotice    = "🔒 Bypass is over. What writes or runs is asked for again."
	bypassRestartNotice = "🔒 Bypass is over: ductor was restarted. What writes or runs is asked for again."
	bypassOverSentence  = "Bypass ended while this ran, and the agent cannot be told to ask in the middle of its work, " +
		"so it was stopped. What it did until then stands."
)

// Bypass lets everything through in a conversation from the next turn on, for a while or until ductor is restarted. Then
// the conversation is in ask. ErrBadChoice for a time that is too long or none.
func (o *Orchestrator) Bypass(ctx context.Context, id ConversationID, lasts time.Duration, by PersonID) error {
	if lasts <= 0 || lasts > MostBypass {
		return ErrBadChoice
	}
	until := o.now().Add(lasts)
	err := o.change(ctx, id, func(c *Conversation) { c.Permission, c.BypassUntil = cli.Bypass, until },
		AuditEntry{What: AuditMode, Title: fmt.Sprintf("bypass for %s", lasts), By: by})
	if err == nil {
		o.opts.After(lasts, func() { o.bypassOver(context.WithoutCancel(ctx), id) })
		o.warm(ctx, id)
	}
	return err
}

// bypassed says whether the conversation is in a bypass that was chosen in it and lasts.
func (o *Orchestrator) bypassed(c Conversation) bool {
	return c.Permission == cli.Bypass && o.now().Before(c.BypassUntil)
}

// bypassOver is called when the bypass of a conversation may be over: it may have been prolonged, or left.
func (o *Orchestrator) bypassOver(ctx context.Context, id ConversationID) {
	l, err := o.line(id)
	if err != nil || !o.open() {
		return // the next start ends it
	}
	defer o.wg.Done()
	ended, turn, err := o.expire(ctx, l)
	if err != nil {
		o.log.Error("end a bypass", "chat", id.Chat, "topic", id.Topic, "err", err) // permissionOf knows that it is over
	}
	if turn != "" {
		o.askFromNowOn(ctx, l, turn)
	}
	if ended { // and nothing runs in it any more
		o.notice(ctx, id, bypassOverNotice)
	}
}

// expire ends a bypass whose time is over, and names the turn that still runs in it.
func (o *Orchestrator) expire(ctx context.Context, l *line) (ended bool, turn cli.TurnID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conv, err := o.opts.Store.Conversation(ctx, l.id)
	if err == nil && o.bypassed(conv) {
		return false, "", nil
	}
	if r := l.running; r != nil && r.req != nil && !r.turn.Bypass.IsZero() {
		turn = r.turn.ID
	}
	if err != nil || conv.Permission != cli.Bypass {
		return false, turn, err
	}
	err = o.changeLocked(ctx, l.id, func(c *Conversation) { c.Permission, c.BypassUntil = cli.Ask, time.Time{} },
		AuditEntry{What: AuditMode, Title: string(cli.Ask), Reason: "expired"})
	return err == nil, turn, err
}

// askFromNowOn has the agent of a turn in bypass ask, or ends the turn where that cannot be.
func (o *Orchestrator) askFromNowOn(ctx context.Context, l *line, turn cli.TurnID) {
	call, cancel := context.WithTimeout(ctx, steerWait)
	defer cancel()
	err := o.opts.Gateway.SetPermission(call, turn, cli.Ask)
	if a := o.approvalsOf(turn); a != nil && err == nil {
		a.changeMode(cli.Ask)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil || l.running.turn.ID != turn {
		return
	}
	if err != nil {
		o.log.Info("turn is ended with its bypass", "turn", turn, "why", err)
		l.running.cancel(errBypassOver)
		return
	}
	l.running.turn.Bypass = time.Time{}
}

// resumed has the agent of a turn ask that the previous process left in bypass.
func (o *Orchestrator) resumed(ctx context.Context, t Turn) {
	if l, err := o.line(t.Prompt.Conversation); err == nil && !t.Bypass.IsZero() {
		o.wg.Go(func() {
			o.askFromNowOn(ctx, l, t.ID)
			o.notice(ctx, l.id, bypassRestartNotice)
		})
	}
}

// endBypasses ends every bypass that was chosen before a restart, and says so where no turn is left that runs in it. It
// marks those that do.
func (o *Orchestrator) endBypasses(ctx context.Context, turns []Turn, remains map[cli.TurnID]cli.Remains) error {
	over, err := o.opts.Store.EndBypasses(ctx, o.now())
	if err != nil {
		return fmt.Errorf("end bypasses: %w", err)
	}
	for i, t := range turns {
		switch {
		case t.Bypass.IsZero():
		case t.State == TurnRunning && remains[t.ID] == cli.RemainsRun:
			turns[i].Bypass = o.now() // it is over, and the agent does not know
			over = slices.DeleteFunc(over, func(id ConversationID) bool { return id == t.Prompt.Conversation })
		default:
			turns[i].Bypass = time.Time{}
		}
	}
	for _, id := range over {
		o.notice(ctx, id, bypassRestartNotice)
	}
	return nil
}

func (o *Orchestrator) notice(ctx context.Context, id ConversationID, text string) {
	if err := o.opts.Chat.Notice(ctx, id, text); err != nil {
		o.log.Error("tell a chat", "chat", id.Chat, "topic", id.Topic, "err", err)
	}
}
