package bottest

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/bot/render"
	"ductor/bot/render/rendertest"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Mishap is the fault with which the fake chat answers a request.
type Mishap string

const (
	GoesWell     Mishap = "ok"
	RateLimited  Mishap = "429"
	ServerBroken Mishap = "500"
	NotSent      Mishap = "not sent"
	LostBefore   Mishap = "lost before" // the connection breaks before the chat receives the request
	LostAfter    Mishap = "lost after"  // the connection breaks after the chat has received the request
	DeletedFirst Mishap = "deleted"     // a user deletes the message just before the edit
	RefusedOnce  Mishap = "refused"
)

// Chat is a fake of a Telegram chat. It checks whether Telegram would accept the messages that it receives.
type Chat struct {
	T         Failer
	Mishaps   func(method string) Mishap // returns the fault of the next request; nil means no faults
	Delay     time.Duration              // duration of each request
	Seen      func(render.Text)          // called with each text that the chat shows
	Unchecked bool                       // true to skip the checks, for benchmarks
	OldServer bool                       // true if the server does not support rich messages

	Mu     sync.Mutex
	posts  map[int]*Post
	next   int
	Calls  []string
	At     []time.Time
	Topics map[int]bool // IDs of deleted topics
	Gone   bool         // true if the user blocked the bot
	Lost   int          // number of messages that were sent with an unknown outcome
	files  []string     // contents of the files that were sent
}

// Failer contains the methods of *testing.T and *rapid.T that Chat needs.
type Failer interface {
	Errorf(format string, args ...any)
}

// Post is a message in the chat.
type Post struct {
	Text    render.Text // text of a plain message, or the texts of a rich message's blocks
	Rich    []render.Block
	Buttons tgapi.Keyboard
	Topic   int
	ReplyTo int
	Silent  bool
	Edits   int
	Pinned  bool
	deleted bool
}

func NewChat(t Failer) *Chat {
	return &Chat{T: t, posts: make(map[int]*Post), Topics: make(map[int]bool)}
}

func (w *Chat) Begin(method string) Mishap {
	w.Mu.Lock()
	w.Calls = append(w.Calls, method)
	w.At = append(w.At, time.Now())
	f := GoesWell
	if w.Mishaps != nil {
		f = w.Mishaps(method)
	}
	delay := w.Delay
	w.Mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	return f
}

// Fails returns an error if the fault prevents the request from sending anything. Otherwise, it returns nil.
func (f Mishap) Fails() error {
	switch f {
	case RateLimited:
		return Limited(3 * time.Second)
	case ServerBroken:
		return fault(tgapi.ServerFault)
	case NotSent:
		return fault(tgapi.NotSent)
	case LostBefore:
		return fault(tgapi.UnknownFault)
	case RefusedOnce:
		return fault(tgapi.BadRequest)
	}
	return nil
}

func (w *Chat) check(t render.Text) {
	if w.Unchecked {
		return
	}
	if err := CheckMessage(t); err != nil {
		w.T.Errorf("Telegram would not take %q: %v", t.Text, err)
	}
}

// CheckMessage returns an error if Telegram would reject or change a message with the text.
func CheckMessage(t render.Text) error {
	return rendertest.CheckMessage(t.Text, Entities(t), render.MessageLimit)
}

// Entities converts the entities of a text to rendertest.Entity values.
func Entities(t render.Text) (all []rendertest.Entity) {
	for _, e := range t.Entities {
		all = append(all, rendertest.Entity{
			Kind: string(e.Kind), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language,
		})
	}
	return all
}

func (w *Chat) Send(_ context.Context, m tgapi.Message) (int, error) {
	f := w.Begin("send")
	if f == LostBefore || f == LostAfter {
		w.Mu.Lock()
		w.Lost++
		w.Mu.Unlock()
	}
	if err := f.Fails(); err != nil {
		return 0, err
	}
	if m.Rich != nil && w.OldServer {
		return 0, fault(tgapi.NoMethod)
	}
	m.Text = w.shown(m.Text, m.Rich)
	w.Mu.Lock()
	defer w.Mu.Unlock()
	switch {
	case w.Gone:
		return 0, fault(tgapi.ChatGone)
	case w.Topics[m.To.Topic]:
		return 0, fault(tgapi.TopicGone)
	}
	if w.Seen != nil {
		w.Seen(m.Text)
	}
	w.next++
	w.posts[w.next] = &Post{Text: m.Text, Rich: m.Rich, Buttons: m.Keyboard, Topic: m.To.Topic, ReplyTo: m.ReplyTo,
		Silent: m.Silent}
	if f == LostAfter {
		return 0, fault(tgapi.UnknownFault)
	}
	return w.next, nil
}

// SendFiles records the contents of the files, so that Sent returns them.
func (w *Chat) SendFiles(_ context.Context, d tgapi.Files) (int, error) {
	method := "document"
	if d.Files[0].Picture {
		method = "picture"
	}
	f := w.Begin(method)
	if err := f.Fails(); err != nil {
		return 0, err
	}
	var texts []string
	for _, file := range d.Files {
		text, err := io.ReadAll(cmp.Or[io.Reader](file.Content, strings.NewReader(file.Plain)))
		if err != nil {
			return 0, err
		}
		texts = append(texts, string(text))
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Gone {
		return 0, fault(tgapi.ChatGone)
	}
	w.next++
	w.files = append(w.files, texts...)
	if f == LostAfter {
		return 0, fault(tgapi.UnknownFault)
	}
	return w.next, nil
}

// Sent returns the contents of all files that were sent, in order.
func (w *Chat) Sent() []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.files)
}

// shown returns the text of a message. It reports a test failure if Telegram would not accept the message.
func (w *Chat) shown(t render.Text, rich []render.Block) render.Text {
	if rich == nil {
		w.check(t)
		return t
	}
	if fit, cut := render.FitBlocks(rich, render.Block{}); cut || len(fit) != len(rich) {
		w.T.Errorf("Telegram would not take a rich message that is too long")
	}
	return render.Plain(strings.TrimSpace(plainOf(rich)))
}

func plainOf(blocks []render.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text.Text + "\n" + plainOf(block.Blocks))
		for _, item := range block.Items {
			b.WriteString(plainOf(item.Blocks))
		}
		for _, row := range block.Rows {
			for _, c := range row {
				b.WriteString(c.Text.Text + " | ")
			}
		}
	}
	return b.String()
}

func (w *Chat) EditRich(_ context.Context, _ int64, message int, blocks []render.Block, k tgapi.Keyboard) error {
	return w.edit(message, render.Text{}, blocks, k)
}

func (w *Chat) Edit(_ context.Context, _ int64, message int, t render.Text, k tgapi.Keyboard) error {
	return w.edit(message, t, nil, k)
}

// EditKeyboard replaces the buttons of a message.
func (w *Chat) EditKeyboard(ctx context.Context, chat int64, message int, k tgapi.Keyboard) error {
	w.Mu.Lock()
	p := w.posts[message]
	w.Mu.Unlock()
	if p == nil {
		return fault(tgapi.MessageGone)
	}
	return w.edit(message, p.Text, p.Rich, k)
}

func (w *Chat) edit(message int, t render.Text, rich []render.Block, k tgapi.Keyboard) error {
	f := w.Begin("edit")
	if err := f.Fails(); err != nil {
		return err
	}
	t = w.shown(t, rich)
	w.Mu.Lock()
	defer w.Mu.Unlock()
	p := w.posts[message]
	if f == DeletedFirst {
		p.deleted = true
	}
	switch {
	case w.Gone:
		return fault(tgapi.ChatGone)
	case p == nil || p.deleted:
		return fault(tgapi.MessageGone)
	}
	if w.Seen != nil {
		w.Seen(t)
	}
	p.Text, p.Rich, p.Buttons, p.Edits = t, rich, k, p.Edits+1
	if f == LostAfter {
		return fault(tgapi.UnknownFault)
	}
	return nil
}

func (w *Chat) Delete(_ context.Context, _ int64, message int) error {
	f := w.Begin("delete")
	if err := f.Fails(); err != nil {
		return err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.posts[message].deleted = true
	if f == LostAfter {
		return fault(tgapi.UnknownFault)
	}
	return nil
}

// Pin pins a message.
func (w *Chat) Pin(_ context.Context, _ int64, message int) error { return w.pin("pin", message) }

// Unpin unpins a message.
func (w *Chat) Unpin(_ context.Context, _ int64, message int) error { return w.pin("unpin", message) }

func (w *Chat) pin(method string, message int) error {
	f := w.Begin(method)
	if err := f.Fails(); err != nil {
		return err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	p := w.posts[message]
	if p == nil || p.deleted {
		return fault(tgapi.BadRequest)
	}
	p.Pinned = method == "pin"
	if f == LostAfter {
		return fault(tgapi.UnknownFault)
	}
	return nil
}

func (w *Chat) Typing(context.Context, orchestrator.ConversationID) error {
	return w.Begin("typing").Fails()
}

// Visible returns the messages that are not deleted, in order.
func (w *Chat) Visible() []*Post {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	var out []*Post
	for _, id := range slices.Sorted(maps.Keys(w.posts)) {
		if p := w.posts[id]; !p.deleted {
			copied := *p
			out = append(out, &copied)
		}
	}
	return out
}

// stop is the label of the button that stops a running turn.
const stop = "Stop"

// Text returns the texts and buttons of all visible messages. It omits the button that stops a turn.
func (w *Chat) Text() string {
	var b strings.Builder
	for i, p := range w.Visible() {
		if i > 0 {
			b.WriteString("\n----\n")
		}
		b.WriteString(p.Text.Text)
		for _, row := range p.Buttons {
			for _, button := range row {
				if button.Text != stop {
					b.WriteString("\n[" + button.Text + "]")
				}
			}
		}
	}
	return b.String()
}

// Count returns the number of requests with a method. An empty method counts all requests.
func (w *Chat) Count(method string) int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	n := 0
	for _, c := range w.Calls {
		if method == "" || c == method {
			n++
		}
	}
	return n
}
