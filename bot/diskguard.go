package bot

import (
	"context"
	"log/slog"
	"time"

	"ductor/orchestrator"
)

// diskGuard tells the chats what is wrong with the disk under the journal. What it says is not stored, since nothing
// can be. Only the poller's goroutine uses it.
type diskGuard struct {
	disk     orchestrator.Disk
	journal  orchestrator.Journal
	concerns func(orchestrator.Update) (concern, bool)
	say      func(id orchestrator.ConversationID, text string)
	owner    orchestrator.PersonID // 0 for nobody
	now      func() time.Time
	log      *slog.Logger

	state    orchestrator.DiskState
	since    time.Time // the state
	told     map[orchestrator.ConversationID]bool
	answered map[int64]bool // updates that ask for the status
}

// concern is whose conversation an update belongs to.
type concern struct {
	conversation orchestrator.ConversationID
	status       bool // it asks how ductor is
}

const (
	// diskRetry is how often a full disk is looked at.
	diskRetry = 10 * time.Second
	// diskCalm is how long a disk works before chats are told of its next trouble: one that is full by turns is
	// not news each time.
	diskCalm = time.Hour
)

const (
	diskFullText = "⚠️ The disk of the machine I run on is full, so I take no messages. Nothing you sent is lost. " +
		"Please free some space there: I look every ten seconds, and go on by myself."
	diskFailedText = "⚠️ The disk under my database reports an error, so I stop, to be started again. Nothing you sent is lost. " +
		"If I say this again or stay silent, please look after that disk."
)

// enter takes in the state of the disk, and tells of trouble whoever waits, and the owner.
func (g *diskGuard) enter(ctx context.Context, state orchestrator.DiskState, why error) {
	if g.state == state {
		return
	}
	calm := g.state == orchestrator.DiskWorks && g.now().Sub(g.since) > diskCalm
	first := g.told == nil
	g.state, g.since = state, g.now()
	switch state {
	case orchestrator.DiskWorks:
		if !first {
			g.log.Info("the disk works again; messages are taken again")
		}
		return
	case orchestrator.DiskFull:
		g.log.Error("the disk is full; no message is taken until there is room", "err", why, "again_in", diskRetry)
	case orchestrator.DiskFailed:
		g.log.Error("the disk under the database reports an error; ductor ends, to be started again")
	}
	if first || calm || state == orchestrator.DiskFailed {
		g.told = make(map[orchestrator.ConversationID]bool)
		g.answered = make(map[int64]bool)
	}
	g.tell(g.waiting(ctx)...)
}

// hear looks at updates that cannot be stored, and tells those who sent them what is wrong.
func (g *diskGuard) hear(updates []orchestrator.Update) {
	for _, u := range updates {
		c, ok := g.concerns(u)
		if !ok {
			continue
		}
		if c.status && !g.answered[u.ID] {
			g.answered[u.ID] = true
			g.told[c.conversation] = false
		}
		g.tell(c.conversation)
	}
}

func (g *diskGuard) tell(ids ...orchestrator.ConversationID) {
	text := diskFullText
	if g.state == orchestrator.DiskFailed {
		text = diskFailedText
	}
	for _, id := range ids {
		if !g.told[id] {
			g.told[id] = true
			g.say(id, text)
		}
	}
}

// waiting lists the conversations in which something waits to be done or shown, and the owner's own chat.
func (g *diskGuard) waiting(ctx context.Context) []orchestrator.ConversationID {
	var ids []orchestrator.ConversationID
	if g.owner != 0 {
		ids = append(ids, orchestrator.ConversationID{Chat: int64(g.owner)})
	}
	turns, err := g.disk.WaitingConversations(ctx)
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

// concerns says whose conversation an update belongs to; false for one that nothing would come of.
func (r *router) concerns(u orchestrator.Update) (concern, bool) {
	w, ok := r.gate.read(u)
	if !ok || !r.gate.admits(&w) {
		return concern{}, false
	}
	m := w.Message
	switch {
	case w.Callback != nil:
		return concern{conversation: conversationOf(w.Callback.Message)}, true
	case m == nil:
		return concern{conversation: conversationOf(w.Edited)}, w.Edited.Chat.private()
	}
	in := readMessage(u.ID, m, r.me)
	c, command := parseCommand(m.Text)
	if !command || in.forwarded {
		return concern{conversation: in.conv}, r.meant(m, in)
	}
	return concern{conversation: in.conv, status: c.name == "status"}, in.private || c.to != "" && r.me.is(c.to)
}
