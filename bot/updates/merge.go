package updates

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/orchestrator"
)

const (
	// telegramText is the maximum length of a Telegram message, in UTF-16 units. Telegram apps split longer texts into
	// several messages.
	telegramText = 4096
	// splitText is the minimum length of a message that may be a part of a split text. Apps split a text at a blank
	// line, a line break or a space in the second half of the first 4096 units. So every part except the last one is
	// longer than splitText.
	splitText = telegramText / 2
	// partSeconds is the maximum time between two parts of a prompt, according to the dates that Telegram adds. The
	// time of arrival would not help, because all messages arrive at once after ductor was offline.
	partSeconds = 2
	maxAlbum    = 10
	maxParts    = 50 // maximum number of messages that are merged into one prompt
)

// mergeWindows defines how long to wait for the next part of an album or of a split text.
type mergeWindows struct{ album, paste time.Duration }

// next returns how long to wait for another part of the prompt, and a function that recognizes such a part. It returns
// 0 if no part can be missing.
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
	case len(parts) > 1, last.sent.follows, last.sent.forwarded, last.sent.ofPaste():
		return w.paste, fits
	}
	return 0, nil
}

// absorbRest waits for the remaining parts of a long command that the Telegram app has split into several messages. It
// returns the text of these parts, and merges their updates into the task t.
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
	in.Updates = t.updates
	return text
}

// absorbAlbum waits for the other files of the album whose caption is a command. It returns them, and merges their
// updates into the task t.
func (w mergeWindows) absorbAlbum(ctx context.Context, q *queue, t *task, in *Message) (others []*Message) {
	for in.sent.album != "" && len(others) < maxAlbum-1 {
		next := q.absorb(ctx, t, w.album, func(m *Message) bool { return m.sent.album == in.sent.album })
		if next == nil {
			break
		}
		others = append(others, next.content)
	}
	in.Updates = t.updates
	return others
}

// continues reports whether a message (in) can belong to the same prompt as the message before it (last). This is the
// case if both are files of the same album, or if a Telegram app sent both at the same time. An app sends several
// messages at once if the user adds a comment to a forwarded message, if the user forwards several messages, and if a
// text is too long for one message.
func continues(last, in *Message) bool {
	if in.sent.edited || in.sent.secret || last.sent.secret || in.Person != last.Person {
		return false
	}
	if in.sent.album != "" && in.sent.album == last.sent.album {
		return true
	}
	if in.sent.newSession {
		return false
	}
	apart := in.sent.date - last.sent.date
	next := in.ID == last.ID+1 || last.sent.ofPaste() && in.ID > last.ID
	answers := in.ReplyTo != 0 || in.Context != "" && !in.sent.forwarded
	return next && apart >= -partSeconds && apart <= partSeconds && !answers
}

// belongs reports whether a message (in) certainly belongs to the same prompt as the message before it (last). Its
// rules are stricter than the rules of continues, because belongs is used for messages that arrive after the prompt was
// submitted. A file or a forwarded message belongs to the message before it, but two texts that were sent at the same
// time may be separate prompts.
func belongs(last, in *Message) bool {
	return continues(last, in) && (in.sent.forwarded || in.sent.file != nil || last.sent.ofPaste())
}

func wordingOf(parts []*Message) string {
	var b strings.Builder
	if parts[0].Role == orchestrator.RoleMember {
		b.WriteString(parts[0].sender)
	}
	var last *Message
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

// seam returns the text between two parts of a prompt. It is empty if the Telegram app split the text exactly at the
// maximum length. Otherwise the app split the text at a line break and removed this line break, so seam returns a line
// break. Between a forwarded text and the user's own text, seam returns a blank line.
func seam(part, next *Message) string {
	switch {
	case part.sent.ofPaste() && part.sent.units >= telegramText && !next.sent.forwarded && next.sent.file == nil:
		return ""
	case part.sent.forwarded && !next.sent.forwarded:
		return "\n\n"
	}
	return "\n"
}

// mergedKept is the maximum number of prompts that mergeMemory stores.
const mergedKept = 64

// mergeMemory stores the messages of prompts that consist of several messages. After a user has edited one of these
// messages, mergeMemory computes the new text of the whole prompt. It is safe for concurrent use.
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

// first returns the ID of the first message of the prompt to which a message belongs.
func (m *mergeMemory) first(in *Message) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, parts := range m.recent {
		for _, p := range parts {
			if p.Conversation == in.Conversation && p.ID == in.ID {
				return parts[0].ID
			}
		}
	}
	return in.ID
}

// edited returns the new text of a prompt after the user has edited one of its messages, and the ID of the prompt's
// first message.
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

// recent stores the last prompt of each user. A later message may still belong to that prompt, even after the prompt
// was submitted. It is safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	prompts map[senderKey]sentPrompt
}

type sentPrompt struct {
	parts []*Message
	wants orchestrator.Wants
}

func (p sentPrompt) message() int {
	if len(p.parts) == 0 {
		return 0
	}
	return p.parts[0].ID
}

// promptOf returns the earlier prompt to which a message belongs, or the zero value if the message is a new prompt.
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

// follower recognizes group messages that are meant for the bot although they do not mention it. Such a message belongs
// to another message that mentions the bot: it is a further file of an album, a forwarded message with a comment, or
// the next part of a split text. Only the router uses a follower.
type follower struct {
	windows  mergeWindows
	seen     *seen
	albums   map[albumKey]bool
	last     map[senderKey]*Message // last message of each sender that was meant for the bot
	followed map[int64]bool         // IDs of updates whose message may continue in a later update of the same batch
}

type albumKey struct {
	conv  orchestrator.ConversationID
	album string
}

type senderKey struct {
	conv orchestrator.ConversationID
	user orchestrator.PersonID
}

func (in *Message) by() senderKey { return senderKey{in.Conversation, in.Person} }

const followed = 256

func newFollower(w mergeWindows, now func() time.Time) *follower {
	return &follower{
		windows: w, seen: newSeen(now), albums: make(map[albumKey]bool), last: make(map[senderKey]*Message),
	}
}

// scanBatch sets f.followed: it searches a batch of updates for messages that may be parts of one prompt.
func (f *follower) scanBatch(batch []*arrival) {
	clear(f.followed)
	if len(batch) < 2 {
		return
	}
	f.followed = make(map[int64]bool)
	last := make(map[senderKey]*Message)
	for _, a := range batch {
		if a.in == nil || a.wire.Message == nil || a.wire.Stopped != nil {
			continue
		}
		if was := last[a.in.by()]; was != nil && continues(was, a.in) {
			f.followed[was.Update()] = true
		}
		last[a.in.by()] = a.in
	}
}

// belongs reports whether a message is part of the same prompt as an earlier message that was meant for the bot.
func (f *follower) belongs(in *Message) bool {
	last := f.last[in.by()]
	return in.sent.album != "" && f.albums[albumKey{in.Conversation, in.sent.album}] || last != nil && belongs(last, in)
}

// inside reports whether a message is a part of an album or of a split text. Such a message is not a command, even if
// it starts with a slash. In a private chat, the parts of a split text have consecutive message IDs: a gap means that
// the bot or the user has sent another message in between.
func (f *follower) inside(in *Message) bool {
	last := f.last[in.by()]
	if in.sent.album != "" {
		return f.belongs(in)
	}
	return last != nil && last.sent.ofPaste() && continues(last, in) && (!in.Private || in.ID == last.ID+1)
}

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
