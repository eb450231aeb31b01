package updates

import (
	"strings"
	"sync"
	"time"

	"ductor/orchestrator"
)

const (
	// telegramText is the longest text of one message, in UTF-16 units. Clients split longer ones.
	telegramText = 4096
	// splitText is how long a message must be to be taken for the first part of a paste that was split:
	// clients prefer to split at a line or a word, so a little less than the limit.
	splitText = 4000
	// splitSeconds is how far apart the parts may have been sent, by Telegram's clock: after a night
	// offline a whole backlog arrives in one moment.
	splitSeconds = 2
	albumMost    = 10 // files in one album
	partsMost    = 50 // parts of one paste
)

// mergeWindows is how long further parts are waited for.
type mergeWindows struct{ album, paste time.Duration }

// next gives how long to wait for a message that may follow the parts so far, and which message does. A window of zero
// says that they are complete.
func (w mergeWindows) next(parts []*Message) (time.Duration, func(*Message) bool) {
	last := parts[len(parts)-1]
	switch {
	case last.album != "" && len(parts) < albumMost:
		return w.album, func(in *Message) bool {
			return !in.edited && in.album == last.album && in.User == last.User
		}
	case isPastePart(last) && len(parts) < partsMost:
		return w.paste, func(in *Message) bool { return continues(last, in) }
	}
	return 0, nil
}

// isPastePart says whether in may be a part of a paste that is not the last one.
func isPastePart(in *Message) bool {
	return in.units >= splitText && in.file == nil && !in.forwarded
}

// continues says whether in may be the next part of the paste that last belongs to.
func continues(last, in *Message) bool {
	apart := in.date - last.date
	return !in.edited && !in.forwarded && in.file == nil && in.Context == "" &&
		in.User == last.User && in.ID > last.ID && apart >= 0 && apart <= splitSeconds
}

// wordingOf makes one prompt text of the parts.
func wordingOf(parts []*Message) string {
	var b strings.Builder
	b.WriteString(parts[0].sender + parts[0].Context)
	var last *Message // the last part with words
	for _, p := range parts {
		switch {
		case p.Text == "":
			continue
		case last == nil:
			b.WriteString(unescaped(p.Text))
		default:
			b.WriteString(seam(last) + p.Text)
		}
		last = p
	}
	return b.String()
}

// seam is what stands after a part: nothing where a client had to cut at the limit, else the line break it
// cut at and Telegram trimmed.
func seam(part *Message) string {
	if part.album == "" && part.units >= telegramText {
		return ""
	}
	return "\n"
}

// mergedKept is how many merged prompts are remembered.
const mergedKept = 64

// mergeMemory remembers the parts of merged prompts that wait in a queue, so that an edit of one part
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

// follower recognises messages that belong to one that was meant for us though they do not name us: the
// rest of an album, the rest of a paste. It is used by the router alone.
type follower struct {
	albums map[albumKey]bool
	pastes map[pasteKey]*Message
}

type albumKey struct {
	conv  orchestrator.ConversationID
	album string
}

type pasteKey struct {
	conv orchestrator.ConversationID
	user orchestrator.PersonID
}

const followed = 256

func newFollower() *follower {
	return &follower{albums: make(map[albumKey]bool), pastes: make(map[pasteKey]*Message)}
}

// belongs says whether in goes with a message that was meant for us.
func (f *follower) belongs(in *Message) bool {
	if in.album != "" {
		return f.albums[albumKey{in.Conversation, in.album}]
	}
	last := f.pastes[pasteKey{in.Conversation, in.User}]
	return last != nil && continues(last, in)
}

// add remembers a message that was meant for us.
func (f *follower) add(in *Message) {
	if len(f.albums) >= followed {
		clear(f.albums)
	}
	if len(f.pastes) >= followed {
		clear(f.pastes)
	}
	if in.album != "" {
		f.albums[albumKey{in.Conversation, in.album}] = true
	}
	key := pasteKey{in.Conversation, in.User}
	if isPastePart(in) {
		f.pastes[key] = in
	} else {
		delete(f.pastes, key)
	}
}
