package demo

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/internal/sim/telegram"
)

// keepEntries is the number of old calls and events that a new page shows.
const keepEntries = 400

// entry is a line in the page's list of calls and events.
type entry struct {
	kind  string // "call" or "event"
	value any
}

// recorder stores the newest calls of the bot and events of turns. It is safe for concurrent use.
type recorder struct {
	mu      sync.Mutex
	first   int // number of the oldest entry
	entries []entry
	held    *Event // event whose text the next event may continue; not in entries yet
	changed chan struct{}
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{})} }

func (r *recorder) appendEntry(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
	if over := len(r.entries) - keepEntries; over > 0 {
		r.entries = append([]entry(nil), r.entries[over:]...)
		r.first += over
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait returns a channel that is closed when the next entry arrives.
func (r *recorder) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// since returns all entries with a number of at least n. It also returns the number of the next entry.
func (r *recorder) since(n int) ([]entry, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(n-r.first, 0)
	return append([]entry(nil), r.entries[min(from, len(r.entries)):]...), r.first + len(r.entries)
}

type wireCall struct {
	Seq    int             `json:"seq"`
	At     int64           `json:"at"`
	Took   float64         `json:"took"` // duration in milliseconds
	Method string          `json:"method"`
	Chat   telegram.ChatID `json:"chat"`
	OK     bool            `json:"ok"`
	Code   int             `json:"code"`
	Why    string          `json:"why"`
	Detail string          `json:"detail"`
}

// call records a call of the bot. It ignores polling, which never stops.
func (r *recorder) call(c telegram.Call) {
	if c.Method == "getUpdates" {
		return
	}
	r.appendEntry(entry{"call", wireCall{
		Seq: c.Seq, At: millis(c.At), Took: float64(c.Done.Sub(c.At).Microseconds()) / 1000, Method: c.Method,
		Chat: c.Chat,
		OK:   c.OK, Code: c.Code, Why: c.Description, Detail: detail(c),
	}})
}

const detailLimit = 120

// detail describes a call's parameters in one line.
func detail(c telegram.Call) string {
	var parts []string
	for _, name := range []string{"message_id", "action", "text", "caption", "name", "path"} {
		if v := c.Params[name]; v != "" {
			parts = append(parts, name+" "+strings.Join(strings.Fields(v), " "))
		}
	}
	for name, size := range c.Files {
		parts = append(parts, fmt.Sprintf("%s %d bytes", name, size))
	}
	text := []rune(strings.Join(parts, " · "))
	if len(text) > detailLimit {
		return string(text[:detailLimit]) + "…"
	}
	return string(text)
}

// Event is an event of a turn, as the page shows it.
type Event struct {
	At   time.Time
	Turn string
	Chat string
	Kind string // kind of the event, such as "tool started"
	Text string // text on a single line; may be empty
	// Grows means that Text is only a part, and that the next event of the same kind continues it.
	Grows bool
}

type wireEvent struct {
	At   int64  `json:"at"`
	Turn string `json:"turn"`
	Chat string `json:"chat"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// textLine is the number of characters after which the page starts a new line of a streamed text.
const textLine = 160

// Happened shows an event of a turn on the page. It joins parts of a text into lines. It does not block.
func (p *Page) Happened(e Event) {
	p.record.mu.Lock()
	held := p.record.held
	var out []Event
	switch {
	case held != nil && held.Turn == e.Turn && held.Kind == e.Kind && len(held.Text) < textLine:
		held.Text += e.Text
	case held != nil:
		out = append(out, *held)
		p.record.held = nil
	}
	switch {
	case p.record.held == held && held != nil:
	case e.Grows:
		p.record.held = &e
	default:
		out = append(out, e)
	}
	p.record.mu.Unlock()
	for _, e := range out {
		p.record.appendEntry(entry{"event", wireEvent{At: millis(e.At), Turn: e.Turn, Chat: e.Chat, Kind: e.Kind,
			Text: e.Text}})
	}
}

func chatName(id telegram.ChatID) string { return strconv.FormatInt(int64(id), 10) }

func messageName(chat telegram.ChatID, id telegram.MessageID) string {
	return "message " + chatName(chat) + "/" + strconv.FormatInt(int64(id), 10)
}
