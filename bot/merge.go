package bot

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

// next says how long to wait for what may follow the parts so far, and what belongs to them. A zero
// window says that they are complete.
func (w mergeWindows) next(parts []*incoming) (time.Duration, func(*incoming) bool) {
	last := parts[len(parts)-1]
	switch {
	case last.album != "" && len(parts) < albumMost:
		return w.album, func(in *incoming) bool {
			return !in.edited && in.album == last.album && in.person == last.person
		}
	case isPastePart(last) && len(parts) < partsMost:
		return w.paste, func(in *incoming) bool { return continues(last, in) }
	}
	return 0, nil
}

// isPastePart says whether in may be a part of a paste that is not the last one.
func isPastePart(in *incoming) bool {
	return in.units >= splitText && in.file == nil && !in.forwarded
}

// continues says whether in may be the next part of the paste that last belongs to.
func continues(last, in *incoming) bool {
	apart := in.date - last.date
	return !in.edited && !in.forwarded && in.file == nil && in.context == "" &&
		in.person == last.person && in.message > last.message && apart >= 0 && apart <= splitSeconds
}

// wordingOf makes one prompt text of the parts.
func wordingOf(parts []*incoming) string {
	var b strings.Builder
	b.WriteString(parts[0].sender + parts[0].context)
	var last *incoming // the last part with words
	for _, p := range parts {
		switch {
		case p.text == "":
			continue
		case last == nil:
			b.WriteString(unescaped(p.text))
		default:
			b.WriteString(seam(last) + p.text)
		}
		last = p
	}
	return b.String()
}

// seam is what stands after a part: nothing where a client had to cut at the limit, else the line break it
// cut at and Telegram trimmed.
func seam(part *incoming) string {
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
	recent [][]*incoming
}

func (m *mergeMemory) keep(parts []*incoming) {
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
func (m *mergeMemory) edited(in *incoming) (message int, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, parts := range m.recent {
		for i, p := range parts {
			if p.conv == in.conv && p.message == in.message {
				parts[i] = in
				return parts[0].message, wordingOf(parts)
			}
		}
	}
	return in.message, wordingOf([]*incoming{in})
}

// follower recognises messages that belong to one that was meant for us though they do not name us: the
// rest of an album, the rest of a paste. It is used by the router alone.
type follower struct {
	albums map[albumKey]bool
	pastes map[pasteKey]*incoming
}

type albumKey struct {
	conv  orchestrator.ConversationID
	album string
}

type pasteKey struct {
	conv   orchestrator.ConversationID
	person orchestrator.PersonID
}

const followed = 256

func newFollower() *follower {
	return &follower{albums: make(map[albumKey]bool), pastes: make(map[pasteKey]*incoming)}
}

// belongs says whether in goes with a message that was meant for us.
func (f *follower) belongs(in *incoming) bool {
	if in.album != "" {
		return f.albums[albumKey{in.conv, in.album}]
	}
	last := f.pastes[pasteKey{in.conv, in.person}]
	return last != nil && continues(last, in)
}

// note remembers a message that was meant for us.
func (f *follower) note(in *incoming) {
	if len(f.albums) >= followed {
		clear(f.albums)
	}
	if len(f.pastes) >= followed {
		clear(f.pastes)
	}
	if in.album != "" {
		f.albums[albumKey{in.conv, in.album}] = true
	}
	key := pasteKey{in.conv, in.person}
	if isPastePart(in) {
		f.pastes[key] = in
	} else {
		delete(f.pastes, key)
	}
}
