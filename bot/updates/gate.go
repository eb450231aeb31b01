package updates

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// gate is the one check of the allowlist. Not safe for concurrent use.
type gate struct {
	allow    Allow
	me       Identity
	tidy     func(chat int64, message int) // deletes a message that says that we pinned one
	names    *tgapi.ChatNames              // may be nil
	refusals *refusals
	lost     time.Time // messages until then may have been handled without a trace
	log      *slog.Logger
}

func newGate(allow Allow, now func() time.Time, log *slog.Logger) *gate {
	return &gate{allow: allow, refusals: &refusals{log: log, now: now, seen: make(map[refused]time.Time)}, log: log}
}

// read decodes an update. False means that it cannot be, which the log says.
func (g *gate) read(u orchestrator.Update) (w wireUpdate, ok bool) {
	if err := json.Unmarshal(u.Raw, &w); err != nil {
		g.log.Error("passed over an update that cannot be decoded", "update", u.ID, "err", err)
		return w, false
	}
	if w.Stopped != nil {
		w.Message = w.Stopped.abort()
	}
	return w, true
}

// admits says whether an update comes from a listed user, and logs any other.
func (g *gate) admits(w *wireUpdate) bool {
	m := w.message()
	if m == nil {
		return false // of a kind that we do not read, or of an inline message, which we never send
	}
	from, as := m.From, m.SenderChat
	if w.Callback != nil { // below a message of ours
		from, as = &w.Callback.From, nil
	}
	if g.allow.permits(m.Chat, from, as) || g.allow.moves(m) {
		if g.names != nil {
			g.names.Learn(m.Chat.ID, m.Chat.Title)
			if from != nil {
				g.names.LearnUser(orchestrator.PersonID(from.ID), from.name())
			}
		}
		return true
	}
	g.refusals.note(m.Chat, from, as)
	return false
}

// moved has all of an allowed group that became a supergroup follow it to its new id, which it has the owner know: until it is
// allowed, the bot is silent there.
func (r *Router) moved(ctx context.Context, update int64, m *wireMessage) fate {
	r.log.Warn("a group became a supergroup; its new id has to be in allowed_groups", "chat_id", m.Chat.ID, "new_chat_id", m.MigratedTo)
	if err := r.handler.Moved(ctx, m.Chat.ID, m.MigratedTo); err != nil {
		r.log.Error("what a group had stays under its old id", "chat_id", m.Chat.ID, "new_chat_id", m.MigratedTo, "err", err)
	}
	if r.owner == 0 || slices.Contains(r.gate.allow.Policy().Groups, m.MigratedTo) {
		return ignore
	}
	chat := int64(r.owner)
	text := r.lang.Of(chat).Text("updates.group-moved", render.ShortLine(m.Chat.Title, 60), strconv.FormatInt(m.Chat.ID, 10), strconv.FormatInt(m.MigratedTo, 10))
	r.finisher.Tell(ctx, orchestrator.ConversationID{Chat: chat}, 0, []int64{update}, text, nil)
	return taken
}

// joinPatience bounds how long the poller waits for the store.
const joinPatience = 5 * time.Second

// joins says whether an update takes an invitation; what a user sends who is known already takes none.
func (g *gate) joins(w *wireUpdate) bool {
	ctx, cancel := context.WithTimeout(context.Background(), joinPatience)
	defer cancel()
	return g.allow.joins(ctx, w)
}

// strip keeps only the id of an update that is not admitted: strangers may not fill the disk. Telegram tells us when we
// pin a message, by a message to the chat that is deleted. Telegram sends a message again that an earlier ductor handled and
// did not acknowledge: where the record of that is lost, it does not run a second time.
func (g *gate) strip(u orchestrator.Update) orchestrator.Update {
	w, ok := g.read(u)
	switch {
	case !ok:
	case w.Message != nil && w.Message.Pinned != nil && g.me.wrote(w.Message):
		g.tidy(w.Message.Chat.ID, w.Message.ID)
	case w.Message != nil && w.Message.Date > 0 && !g.lost.IsZero() && w.Message.Date <= g.lost.Unix():
		g.log.Warn("a message from before the database was lost is not handled, since it may have been", "update", u.ID)
	case g.joins(&w), g.admits(&w):
		return u
	}
	return orchestrator.Update{ID: u.ID}
}

// refusals logs the users who were turned away, so that the owner can allow them: each user of each chat once an hour, and
// at most one line a minute for all of them, so that strangers cannot fill the log. Not safe for concurrent use.
type refusals struct {
	log    *slog.Logger
	now    func() time.Time
	seen   map[refused]time.Time
	last   time.Time // when the last line was written
	silent int       // updates turned away since, without a line
}

type refused struct{ chat, user int64 }

const (
	refusedAgain = time.Hour
	refusalPause = time.Minute
	refusalsKept = 1024
)

func (r *refusals) note(chat wireChat, from *wireUser, as *wireChat) {
	who := refused{chat: chat.ID}
	name, username := "", ""
	switch {
	case as != nil:
		who.user, name = as.ID, as.Title
	case from != nil:
		who.user, name = from.ID, from.name()
	}
	if from != nil {
		username = from.Username
	}
	now := r.now()
	if now.Sub(r.last) < refusalPause || now.Sub(r.seen[who]) < refusedAgain {
		r.silent++
		return
	}
	if len(r.seen) >= refusalsKept {
		clear(r.seen)
	}
	r.seen[who], r.last = now, now
	r.log.Warn("turned a stranger away; to allow them, add the id to allowed_users, or the group's id to allowed_groups",
		"user_id", who.user, "name", name, "username", username,
		"chat_id", chat.ID, "chat_type", chat.Type, "chat_title", chat.Title, "updates_without_a_line", r.silent)
	r.silent = 0
}
