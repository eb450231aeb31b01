package updates

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/orchestrator"
)

const (
	// telegramText is Telegram's limit for one message, in UTF-16 units. Clients split longer texts.
	telegramText = 4096
	// splitText is the minimum length of a message that can be the first part of a split paste. Clients cut a long
	// text at a blank line, a line or a word, in the second half of the first 4096 units.
	splitText = telegramText / 2
	// partSeconds is the maximum time between two parts of a prompt, by Telegram's clock. The time of arrival does
	// not help: after a night offline, all messages arrive at once.
	partSeconds = 2
	maxAlbum    = 10 // files in one album
	maxParts    = 50 // parts of one prompt
)

// mergeWindows contains the times to wait for further parts.
type mergeWindows struct{ album, paste time.Duration }

// next returns how long to wait for a message that may continue the given parts, and a function that recognizes such
// a message. If the duration is zero, the parts are complete.
func (w mergeWindows) next(parts []*Message) (time.Duration, func(*Message) bool) {
	last := parts[len(parts)-1]
	files := 0
	for _, p := range parts {
		if p.sent.album != "" && p.sent.album == last.sent.album {
			files++
		}
	}
	fits := func(in *Message) bool { return continues(last, in) }
	switch {
	case len(parts) >= maxParts:
	case files > 0 && files < maxAlbum:
		return w.album, fits
	case len(parts) > 1, last.follows, last.sent.forwarded, last.sent.ofPaste():
		return w.paste, fits
	}
	return 0, nil
}

// absorbRest waits for the rest of a long command that the client split. It merges the rest into the command's task,
// and returns its text.
func (w mergeWindows) absorbRest(ctx context.Context, q *queue, t *task, in *Message) (text string) {
	for last := in; last.sent.ofPaste() && w.paste > 0; {
		next := q.absorb(ctx, t, w.paste, func(in *Message) bool {
			return continues(last, in) && in.sent.file == nil && !in.sent.forwarded
		})
		if next == nil {
			break
		}
		text += seam(last, next.content) + next.content.Text
		last = next.content
	}
	in.merged = t.updates[1:]
	return text
}

// continues reports whether the messages in and last are parts of one prompt. Parts are the files of an album, or
// messages that a client sent together: a comment and its forwarded message, several forwards, or a split paste.
func continues(last, in *Message) bool {
	if in.sent.edited || in.sent.secret || last.sent.secret || in.User != last.User {
		return false
	}
	if in.sent.album != "" && in.sent.album == last.sent.album {
		return true
	}
	apart := in.sent.date - last.sent.date
	next := in.ID == last.ID+1 || last.sent.ofPaste() && in.ID > last.ID
	answers := in.ReplyTo != 0 || in.Context != "" && !in.sent.forwarded
	return next && apart >= -partSeconds && apart <= partSeconds && !answers
}

// belongs reports whether the message in is another part of the prompt that ends with last, even if ductor has
// handled that prompt. Two texts in a row may be separate prompts, but forwards and files that arrive together belong
// together.
func belongs(last, in *Message) bool {
	return continues(last, in) && (in.sent.forwarded || in.sent.file != nil || last.sent.ofPaste())
}

// wordingOf joins the parts to the text of one prompt.
func wordingOf(parts []*Message) string {
	var b strings.Builder
	b.WriteString(parts[0].sender)
	var last *Message // last part that has text
	for _, p := range parts {
		if p.Text == "" && p.Context == "" {
			continue
		}
		text := p.Text
		if last == nil {
			text = unescaped(text)
		} else {
			b.WriteString(seam(last, p))
		}
		if last == nil || p.Context != last.Context {
			b.WriteString(p.Context)
		}
		b.WriteString(text)
		last = p
	}
	return b.String()
}

// seam returns the separator between two parts. It is empty if the client cut the text at the limit. Otherwise it is
// the line break at which the client cut, because Telegram removes it. After text by other users it is a blank line.
func seam(part, next *Message) string {
	switch {
	case part.sent.ofPaste() && part.sent.units >= telegramText && !next.sent.forwarded && next.sent.file == nil:
		return ""
	case part.sent.forwarded && !next.sent.forwarded:
		return "\n\n"
	}
	return "\n"
}

// mergedKept limits the remembered merged prompts.
const mergedKept = 64

// mergeMemory stores the parts of merged prompts, so that an edit of one part changes only that part. Safe for
// concurrent use.
type mergeMemory struct {
	mu     sync.Mutex
	recent [][]*Message
}

func (m *mergeMemory) remember(parts []*Message) {
	if len(parts) < 2 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent = slices.DeleteFunc(m.recent, func(was []*Message) bool { return was[0] == parts[0] })
	if len(m.recent) >= mergedKept {
		m.recent = append(m.recent[:0], m.recent[1:]...)
	}
	m.recent = append(m.recent, parts)
}

// edited returns the id of the prompt's first message, and the prompt's text after the edit in.
func (m *mergeMemory) edited(in *Message) (message int, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, parts := range m.recent {
		for i, p := range parts {
			if p.Conversation == in.Conversation && p.ID == in.ID {
				parts[i] = in
				return parts[0].ID, wordingOf(parts)
			}
		}
	}
	return in.ID, wordingOf([]*Message{in})
}

// recent stores the last prompt of each sender, because a message that arrives after the start of its turn may belong
// to it. Safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	prompts map[senderKey]sentPrompt
}

type sentPrompt struct {
	parts []*Message
	wants orchestrator.Wants
}

// message returns the id of the message that identifies the prompt, or 0.
func (p sentPrompt) message() int {
	if len(p.parts) == 0 {
		return 0
	}
	return p.parts[0].ID
}

// promptOf returns the prompt that a message belongs to, or the zero value if the message starts a new prompt.
func (r *recent) promptOf(in *Message) sentPrompt {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.prompts[in.by()]
	if !ok || !belongs(p.parts[len(p.parts)-1], in) {
		return sentPrompt{}
	}
	return p
}

func (r *recent) remember(p sentPrompt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.prompts) >= followed || r.prompts == nil {
		r.prompts = make(map[senderKey]sentPrompt)
	}
	r.prompts[p.parts[0].by()] = p
}

// follower recognizes messages that belong to a message for the bot without mentioning the bot: other parts of an
// album, the message that a comment refers to, or other parts of a paste. Only the router uses it.
type follower struct {
	windows  mergeWindows
	seen     *seen
	albums   map[albumKey]bool
	last     map[senderKey]*Message // last message for the bot, by sender
	followed map[int64]bool         // updates of the current batch that a later message may continue
}

type albumKey struct {
	conv  orchestrator.ConversationID
	album string
}

type senderKey struct {
	conv orchestrator.ConversationID
	user orchestrator.PersonID
}

func (in *Message) by() senderKey { return senderKey{in.Conversation, in.User} }

const followed = 256

func newFollower(w mergeWindows, now func() time.Time) *follower {
	return &follower{
		windows: w, seen: newSeen(now), albums: make(map[albumKey]bool), last: make(map[senderKey]*Message),
	}
}

// scanBatch finds the messages of a batch that a later message of the batch may continue.
func (f *follower) scanBatch(updates []orchestrator.Update, me Identity) {
	clear(f.followed)
	if len(updates) < 2 {
		return
	}
	f.followed = make(map[int64]bool)
	last := make(map[senderKey]*Message)
	for _, u := range updates {
		var w wireUpdate
		if json.Unmarshal(u.Raw, &w) != nil || w.Message == nil || w.Message.From == nil {
			continue
		}
		in := parseMessage(u.ID, w.Message, me)
		if was := last[in.by()]; was != nil && continues(was, in) {
			f.followed[was.Update] = true
		}
		last[in.by()] = in
	}
}

// belongs reports whether a message belongs to a message for the bot.
func (f *follower) belongs(in *Message) bool {
	last := f.last[in.by()]
	return in.sent.album != "" && f.albums[albumKey{in.Conversation, in.sent.album}] || last != nil && belongs(last, in)
}

// inside reports whether a message is within a paste or an album, where text that looks like a command is not a
// command. In a private chat, the ids must be consecutive, because an answer of the bot in between would have an id
// too.
func (f *follower) inside(in *Message) bool {
	last := f.last[in.by()]
	if in.sent.album != "" {
		return f.belongs(in)
	}
	return last != nil && last.sent.ofPaste() && continues(last, in) && (!in.Private || in.ID == last.ID+1)
}

// remember records a message for the bot.
func (f *follower) remember(in *Message) {
	if len(f.albums) >= followed {
		clear(f.albums)
	}
	if len(f.last) >= followed {
		clear(f.last)
	}
	if in.sent.album != "" {
		f.albums[albumKey{in.Conversation, in.sent.album}] = true
	}
	f.last[in.by()] = in
}
