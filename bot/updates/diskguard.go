package updates

import (
	"context"
	"log/slog"
	"time"

	"ductor/lang"
	"ductor/orchestrator"
)

// diskGuard notifies chats that ductor cannot handle their messages, because the disk with the database is full or
// broken. It cannot store these notices, so it sends them directly. Only the poller's goroutine uses a diskGuard.
type diskGuard struct {
	journal  orchestrator.Inbox
	concerns func(orchestrator.Update) (concern, bool)
	say      func(id orchestrator.ConversationID, text string)
	owner    orchestrator.PersonID // the user who set up the bot; 0 for none
	now      func() time.Time
	lang     *lang.Choices
	log      *slog.Logger

	state    orchestrator.DiskState
	since    time.Time
	probed   time.Time // when hasRoom last checked the disk
	notified map[orchestrator.ConversationID]bool
	answered map[int64]bool // IDs of updates with /status that were already answered
}

// concern contains the data about an update that diskGuard uses.
type concern struct {
	conversation orchestrator.ConversationID
	status       bool // the update is the command /status
}

const (
	// diskRetry is the interval at which the poller checks whether a full disk has space again.
	diskRetry = 10 * time.Second
	// diskSteady is how long the disk must work before a new problem is reported. It limits the number of notices if
	// the disk becomes full again and again.
	diskSteady = time.Hour
)

// enter records the state of the disk. If the disk has a problem, enter notifies the bot's owner and the conversations
// that are waiting for an answer.
func (g *diskGuard) enter(ctx context.Context, state orchestrator.DiskState) {
	if g.state == state {
		return
	}
	steady := g.state == orchestrator.DiskWorks && g.now().Sub(g.since) > diskSteady
	first := g.notified == nil
	g.state, g.since = state, g.now()
	switch state {
	case orchestrator.DiskWorks:
		if !first {
			g.log.Info("the disk works again; messages are taken again")
		}
		return
	case orchestrator.DiskFull:
		g.log.Error("the disk is full; no message is taken until there is room", "again_in", diskRetry)
	case orchestrator.DiskFailed:
		g.log.Error("the disk under the database reports an error; ductor ends, to be started again")
	}
	if first || steady || state == orchestrator.DiskFailed {
		g.notified = make(map[orchestrator.ConversationID]bool)
		g.answered = make(map[int64]bool)
	}
	g.notify(g.waiting(ctx)...)
}

// hasRoom reports whether a full disk has space again. It returns false if the last check was less than diskRetry ago.
// This pause is necessary even after a successful check, because the next writes may still fail.
func (g *diskGuard) hasRoom(ctx context.Context) bool {
	now := g.now()
	if now.Sub(g.probed) < diskRetry {
		return false
	}
	g.probed = now
	_ = g.journal.RetryDisk(ctx) // ignore the error, because g.journal.Disk returns the result of the retry
	state, _ := g.journal.Disk()
	return state != orchestrator.DiskFull
}

func (g *diskGuard) notifySenders(updates []orchestrator.Update) {
	for _, u := range updates {
		c, ok := g.concerns(u)
		if !ok {
			continue
		}
		if c.status && !g.answered[u.ID] {
			g.answered[u.ID] = true
			g.notified[c.conversation] = false
		}
		g.notify(c.conversation)
	}
}

func (g *diskGuard) notify(ids ...orchestrator.ConversationID) {
	text := lang.Key("updates.disk-full")
	if g.state == orchestrator.DiskFailed {
		text = "updates.disk-failed"
	}
	for _, id := range ids {
		if !g.notified[id] {
			g.notified[id] = true
			g.say(id, g.lang.Of(id.Chat).Text(text))
		}
	}
}

// waiting returns the conversations that wait for an answer, because they have unhandled updates or unfinished turns.
// It also returns the private chat of the bot's owner.
func (g *diskGuard) waiting(ctx context.Context) []orchestrator.ConversationID {
	var ids []orchestrator.ConversationID
	if g.owner != 0 {
		ids = append(ids, orchestrator.ConversationID{Chat: int64(g.owner)})
	}
	turns, err := g.journal.WaitingConversations(ctx)
	if err != nil {
		g.log.Warn("look for conversations that wait", "err", err)
	}
	ids = append(ids, turns...)
	updates, err := g.journal.PendingUpdates(ctx, 0, pendingPage)
	if err != nil {
		g.log.Warn("look for updates that wait", "err", err)
	}
	for _, u := range updates {
		if c, ok := g.concerns(u); ok {
			ids = append(ids, c.conversation)
		}
	}
	return ids
}

// concerns returns the conversation of an update. It returns false if the router would ignore the update.
func (r *Router) concerns(u orchestrator.Update) (concern, bool) {
	w, ok := r.gate.read(u)
	if !ok || !r.gate.admits(&w) {
		return concern{}, false
	}
	m := w.message()
	it := concern{conversation: conversationOf(m)}
	if w.Callback != nil || w.Message == nil {
		return it, w.Callback != nil || m.Chat.private()
	}
	in := parseMessage(u.ID, m, r.me)
	c, command := r.commandOf(m, in)
	if !command || in.sent.forwarded {
		return it, r.isForBot(m, in)
	}
	it.status = c.Name == "status"
	return it, in.Private || c.To != "" && r.me.is(c.To)
}
