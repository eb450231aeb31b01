package updates

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// gate decides which updates come from users who may use the bot. ductor passes all updates through a gate. It is not
// safe for concurrent use.
type gate struct {
	allow    Allow
	me       Identity
	tidy     func(chat int64, message int) // deletes Telegram's notice that the bot has pinned a message
	names    *tgapi.ChatNames              // may be nil
	refusals *refusals
	// lost is the time up to which the database may have lost data, or zero. The gate does not admit older messages,
	// because ductor may have handled them already.
	lost     time.Time
	dropped  func(*wireMessage) // called if a message is not admitted because of lost; notifies the chat
	hide     HideFunc           // may be nil
	log      *slog.Logger
	stripped decodedUpdate // the last update that strip decoded; see readStripped
}

type decodedUpdate struct {
	raw  []byte
	wire wireUpdate
}

func newGate(allow Allow, now func() time.Time, log *slog.Logger) *gate {
	return &gate{allow: allow, refusals: &refusals{log: log, now: now, seen: make(map[refused]time.Time)}, log: log}
}

// read decodes an update. It logs an error and returns false if the update is invalid.
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

// readStripped is like read, but does not decode the update again if strip has just decoded it.
func (g *gate) readStripped(u orchestrator.Update) (w wireUpdate, ok bool) {
	last := g.stripped
	g.stripped = decodedUpdate{}
	if last.raw != nil && bytes.Equal(last.raw, u.Raw) {
		return last.wire, true
	}
	return g.read(u)
}

// admits reports whether the sender of an update may use the bot. If the sender may not use the bot, admits logs the
// sender.
func (g *gate) admits(w *wireUpdate) bool {
	m := w.message()
	if m == nil {
		return false
	}
	from, as := m.From, m.SenderChat
	if w.Callback != nil { // the bot sent the message, so check the user who pressed its button
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

// moved transfers the conversations of an allowed group that has become a supergroup, because a supergroup has a new
// ID. It notifies the bot's owner, because the bot ignores the supergroup until the owner adds the new ID to the
// allowed groups.
func (r *Router) moved(ctx context.Context, update int64, m *wireMessage) fate {
	r.log.Warn("a group became a supergroup; its new id has to be in allowed_groups",
		"chat_id", m.Chat.ID, "new_chat_id", m.MigratedTo)
	if err := r.handler.Moved(ctx, m.Chat.ID, m.MigratedTo); err != nil {
		r.log.Error("what a group had stays under its old id",
			"chat_id", m.Chat.ID, "new_chat_id", m.MigratedTo, "err", err)
	}
	if r.owner == 0 || slices.Contains(r.gate.allow.Policy().AllowedGroups, m.MigratedTo) {
		return ignore
	}
	chat := int64(r.owner)
	text := r.lang.Of(chat).Text("updates.group-moved", render.ShortLine(m.Chat.Title, 60),
		strconv.FormatInt(m.Chat.ID, 10), strconv.FormatInt(m.MigratedTo, 10))
	r.finisher.Tell(ctx, orchestrator.ConversationID{Chat: chat}, 0, []int64{update}, text, nil)
	return taken
}

// strip returns the part of an update that ductor stores. If the sender may not use the bot, strip returns only the ID
// of the update, so that strangers cannot fill the disk. If the update is Telegram's notice that the bot has pinned a
// message, strip also deletes the notice from the chat.
//
// After the database was lost, strip removes the content of messages that were sent before the loss, because ductor may
// already have handled these messages. It notifies their senders.
func (g *gate) strip(u orchestrator.Update) orchestrator.Update {
	w, ok := g.read(u)
	if ok {
		g.stripped = decodedUpdate{u.Raw, w}
	}
	switch {
	case !ok:
	case w.Message != nil && w.Message.Pinned != nil && g.me.wrote(w.Message):
		g.tidy(w.Message.Chat.ID, w.Message.ID)
	case w.Message != nil && w.Message.Date > 0 && !g.lost.IsZero() && w.Message.Date <= g.lost.Unix():
		g.log.Warn("a message from before the database was lost is not handled, since it may have been", "update", u.ID)
		if g.admits(&w) {
			g.dropped(w.Message)
		}
	case g.allow.joins(&w):
		return u
	case g.admits(&w):
		return g.hidden(u, w.Message)
	}
	return orchestrator.Update{ID: u.ID}
}

// HideFunc reports whether the text of a message is a secret that must not be stored. It must not block.
type HideFunc func(in orchestrator.ConversationID, user orchestrator.PersonID, update int64, text string) bool

// hiddenText replaces the text of a message for which HideFunc returned true.
const hiddenText = "🔑 …"

// hidden removes the text of a message from the update if HideFunc reports this text as a secret. Otherwise hidden only
// masks login tokens, which may also be in captions, edited messages and quoted messages.
func (g *gate) hidden(u orchestrator.Update, m *wireMessage) orchestrator.Update {
	if m == nil || m.From == nil || m.Text == "" || g.hide == nil ||
		!g.hide(conversationOf(m), orchestrator.PersonID(m.From.ID), u.ID, m.Text) {
		u.Raw = masked(u.Raw)
		return u
	}
	var all struct {
		Message map[string]json.RawMessage `json:"message"`
	}
	_ = json.Unmarshal(u.Raw, &all) // cannot fail: read has decoded the update
	kept := map[string]any{"text": hiddenText, secretKey: true}
	for _, name := range []string{"message_id", "date", "chat", "from", "message_thread_id", "is_topic_message"} {
		if value, ok := all.Message[name]; ok {
			kept[name] = value
		}
	}
	raw, err := json.Marshal(map[string]any{"update_id": u.ID, "message": kept})
	if err != nil {
		g.log.Error("hide a secret", "update", u.ID, "err", err)
	}
	return orchestrator.Update{ID: u.ID, Raw: raw}
}

// secretKey marks a stored message whose text was removed. It is the JSON key of wireMessage.Secret.
const secretKey = "ductor_secret"

// loginToken matches a token that `claude setup-token` created.
var loginToken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`sk-ant-oat[0-9]*-[\w-]{10,}`) })

// masked replaces login tokens by dots. It does not change the length of the text, because Telegram describes
// formatting by offsets.
func masked(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("sk-ant-oat")) {
		return raw
	}
	return loginToken().ReplaceAllFunc(raw, func(token []byte) []byte { return bytes.Repeat([]byte("•"), len(token)) })
}

// refusals logs users who may not use the bot, so that the owner can find their IDs and allow them. It logs the same
// user in the same chat at most once an hour, and at most one line a minute in total, so that strangers cannot fill the
// log. It is not safe for concurrent use.
type refusals struct {
	log    *slog.Logger
	now    func() time.Time
	seen   map[refused]time.Time
	last   time.Time
	silent int // number of updates since the last log line that were not logged
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
	r.log.Warn("turned a stranger away; to allow them, add the id to allowed_users, "+
		"or the group's id to allowed_groups",
		"user_id", who.user, "name", name, "username", username,
		"chat_id", chat.ID, "chat_type", chat.Type, "chat_title", chat.Title, "updates_without_a_line", r.silent)
	r.silent = 0
}
