package bot

import (
	"encoding/json"
	"log/slog"
	"time"

	"ductor/orchestrator"
)

// gate is the one place that tells those who are answered from strangers. Not safe for concurrent use.
type gate struct {
	allow     Allow
	strangers *strangers
	log       *slog.Logger
}

// read decodes an update. False means that it cannot be, which the log says.
func (g *gate) read(u orchestrator.Update) (w wireUpdate, ok bool) {
	if err := json.Unmarshal(u.Raw, &w); err != nil {
		g.log.Error("passed over an update that cannot be decoded", "update", u.ID, "err", err)
		return w, false
	}
	return w, true
}

// admits says whether an update comes from a user who is answered, and logs who is not.
func (g *gate) admits(w *wireUpdate) bool {
	m, from := w.Message, (*wireUser)(nil)
	switch {
	case w.Callback != nil:
		m, from = w.Callback.Message, &w.Callback.From
	case m == nil:
		m = w.Edited
	}
	if m == nil {
		return false // of a kind that we do not read, or of an inline message, which we never send
	}
	as := (*wireChat)(nil)
	if from == nil { // the message of a callback is ours
		from, as = m.From, m.SenderChat
	}
	if g.allow.permits(m.Chat, from, as) {
		return true
	}
	if m.MigratedTo != 0 {
		g.log.Warn("a group became a supergroup; its new id has to be in allowed_groups", "chat_id", m.Chat.ID, "new_chat_id", m.MigratedTo)
	}
	g.strangers.note(m.Chat, from, as)
	return false
}

// strip leaves nothing but the id of an update that is not admitted: strangers may not fill the disk.
func (g *gate) strip(u orchestrator.Update) orchestrator.Update {
	if w, ok := g.read(u); ok && g.admits(&w) {
		return u
	}
	return orchestrator.Update{ID: u.ID}
}

// strangers logs who was turned away, so that the owner can allow them: each user of each chat once an hour, and at
// most one line a minute for all of them, so that nobody can fill the log. Not safe for concurrent use.
type strangers struct {
	log    *slog.Logger
	now    func() time.Time
	seen   map[stranger]time.Time
	last   time.Time // when the last line was written
	silent int       // updates turned away since, of which there is no line
}

type stranger struct{ chat, person int64 }

const (
	strangerQuiet = time.Hour
	strangerPause = time.Minute
	strangersKept = 1024
)

func (s *strangers) note(chat wireChat, from *wireUser, as *wireChat) {
	who := stranger{chat: chat.ID}
	name, username := "", ""
	switch {
	case as != nil:
		who.person, name = as.ID, as.Title
	case from != nil:
		who.person, name = from.ID, from.name()
	}
	if from != nil {
		username = from.Username
	}
	now := s.now()
	if now.Sub(s.last) < strangerPause || now.Sub(s.seen[who]) < strangerQuiet {
		s.silent++
		return
	}
	if len(s.seen) >= strangersKept {
		clear(s.seen)
	}
	s.seen[who], s.last = now, now
	s.log.Warn("turned a stranger away; to allow them, add the id to allowed_users, or the group's id to allowed_groups",
		"user_id", who.person, "name", name, "username", username,
		"chat_id", chat.ID, "chat_type", chat.Type, "chat_title", chat.Title, "updates_without_a_line", s.silent)
	s.silent = 0
}
