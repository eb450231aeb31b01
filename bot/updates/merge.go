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
	// telegramText is the longest text of one message, in UTF-16 units. Clients split longer ones.
	telegramText = 4096
	// splitText is how long a message is at least that is the first part of a paste: clients cut behind the half of the limit,
	// at a blank line, a line or a word.
	splitText = telegramText / 2
	// partSeconds is how far apart the parts of a prompt may have been sent, by Telegram's clock: after a night offline a
	// whole backlog arrives in one moment.
	partSeconds = 2
	albumMost   = 10 // files in one album
	partsMost   = 50 // parts of one prompt
)

// mergeWindows is how long further parts are waited for.
type mergeWindows struct{ album, paste time.Duration }

// next gives how long to wait for a message that may follow the parts so far, and which message does. A window of zero
// says that they are complete, as those of a message are that nothing came with.
func (w mergeWindows) next(parts []*Message) (time.Duration, func(*Message) bool) {
	last := parts[len(parts)-1]
	files := 0
	for _, p := range parts {
		if p.album != "" && p.album == last.album {
			files++
		}
	}
	fits := func(in *Message) bool { return continues(last, in) }
	switch {
	case len(parts) >= partsMost:
	case files > 0 && files < albumMost:
		return w.album, fits
	case len(parts) > 1, last.follows, last.forwarded, isPastePart(last):
		return w.paste, fits
	}
	return 0, nil
}

// rest waits for what a client cut off a long command, takes it into the command's task, and returns it.
func (w mergeWindows) rest(ctx context.Context, q *queue, t *task, in *Message) (text string) {
	for last := in; isPastePart(last) && w.paste > 0; {
		next := q.absorb(ctx, t, w.paste, func(in *Message) bool { return continues(last, in) && in.file == nil && !in.forwarded })
		if next == nil {
			break
		}
		text += seam(last, next.content) + next.content.Text
		last = next.content
	}
	in.merged = t.updates[1:]
	return text
}

// isPastePart says whether in may be a part of a paste that is not the last one.
func isPastePart(in *Message) bool {
	return in.units > splitText && in.file == nil && !in.forwarded
}

// continues says whether in and last are parts of one prompt: the files of an album, or what a client sent in one go, such
// as a comment and what it is about, several forwards, and a paste that was split.
func continues(last, in *Message) bool {
	if in.edited || in.User != last.User {
		return false
	}
	if in.album != "" && in.album == last.album {
		return true
	}
	apart := in.date - last.date
	next := in.ID == last.ID+1 || isPastePart(last) && in.ID > last.ID
	answers := in.ReplyTo != 0 || in.Context != "" && !in.forwarded
	return next && apart >= -partSeconds && apart <= partSeconds && !answers
}

// belongs says whether in is a part of the prompt whose last part is last also where that was handled before: users write
// two messages in a row, but forward and attach only in one go.
func belongs(last, in *Message) bool {
	return continues(last, in) && (in.forwarded || in.file != nil || isPastePart(last))
}

// wordingOf makes one prompt text of the parts.
func wordingOf(parts []*Message) string {
	var b strings.Builder
	b.WriteString(parts[0].sender)
	var last *Message // the last part that says something
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

// seam is what stands between two parts: nothing where a client had to cut at the limit, else the line break it
// cut at and Telegram trimmed. What others wrote ends with a blank line.
func seam(part, next *Message) string {
	switch {
	case isPastePart(part) && part.units >= telegramText && !next.forwarded && next.file == nil:
		return ""
	case part.forwarded && !next.forwarded:
		return "\n\n"
	}
	return "\n"
}

// mergedKept is how many merged prompts are remembered.
const mergedKept = 64

// mergeMemory remembers the parts of merged prompts, so that an edit of one part
// changes that part only. Safe for concurrent use.
type mergeMemory struct {
	mu     sync.Mutex
	recent [][]*Message
}

func (m *mergeMemory) keep(parts []*Message) {
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

// edited gives the message a prompt is known by and its text after the edit in.
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

// recent remembers the last prompt of each sender, to which a message may belong that comes when its turn was begun. Safe for
// concurrent use.
type recent struct {
	mu      sync.Mutex
	prompts map[senderKey]sentPrompt
}

type sentPrompt struct {
	parts []*Message
	wants orchestrator.Wants
}

// message is the one that a prompt is known by; 0 for none.
func (p sentPrompt) message() int {
	if len(p.parts) == 0 {
		return 0
	}
	return p.parts[0].ID
}

// of is the prompt that in belongs to; none if it is one of its own.
func (r *recent) of(in *Message) sentPrompt {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.prompts[in.by()]
	if !ok || !belongs(p.parts[len(p.parts)-1], in) {
		return sentPrompt{}
	}
	return p
}

func (r *recent) keep(p sentPrompt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.prompts) >= followed || r.prompts == nil {
		r.prompts = make(map[senderKey]sentPrompt)
	}
	r.prompts[p.parts[0].by()] = p
}

// follower recognises messages that belong to one that was meant for us though they do not name us: the
// rest of an album, what a comment is about, the rest of a paste. It is used by the router alone.
type follower struct {
	windows  mergeWindows
	seen     *seen
	albums   map[albumKey]bool
	last     map[senderKey]*Message // that was meant for us
	followed map[int64]bool         // updates of the batch that is dispatched, after which more comes in it that may belong to theirs
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
	return &follower{windows: w, seen: newSeen(now), albums: make(map[albumKey]bool), last: make(map[senderKey]*Message)}
}

// read looks through a batch for messages that may belong to the one before them.
func (f *follower) read(updates []orchestrator.Update, me Identity) {
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
		in := readMessage(u.ID, w.Message, me)
		if was := last[in.by()]; was != nil && continues(was, in) {
			f.followed[was.Update] = true
		}
		last[in.by()] = in
	}
}

// belongs says whether in goes with a message that was meant for us.
func (f *follower) belongs(in *Message) bool {
	last := f.last[in.by()]
	return in.album != "" && f.albums[albumKey{in.Conversation, in.album}] || last != nil && belongs(last, in)
}

// inside reports whether in stands inside of a paste or an album, where a line that looks like a command is text. In a private chat
// only the next message does: an answer of the bot in between has a number too.
func (f *follower) inside(in *Message) bool {
	last := f.last[in.by()]
	if in.album != "" {
		return f.belongs(in)
	}
	return last != nil && isPastePart(last) && continues(last, in) && (!in.Private || in.ID == last.ID+1)
}

// add remembers a message that was meant for us.
func (f *follower) add(in *Message) {
	if len(f.albums) >= followed {
		clear(f.albums)
	}
	if len(f.last) >= followed {
		clear(f.last)
	}
	if in.album != "" {
		f.albums[albumKey{in.Conversation, in.album}] = true
	}
	f.last[in.by()] = in
}
