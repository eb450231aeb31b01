package bottest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// Mishap is what becomes of a call to the fake chat.
type Mishap string

const (
	GoesWell     Mishap = "ok"
	RateLimited  Mishap = "429"
	ServerBroken Mishap = "500"
	NotSent      Mishap = "not sent"
	LostBefore   Mishap = "lost before" // unknown, and it did not happen
	LostAfter    Mishap = "lost after"  // unknown, and it happened
	DeletedFirst Mishap = "deleted"     // a person deletes the message just before it is edited
	RefusedOnce  Mishap = "refused"
)

// Chat is a fake chat. It holds everything sent to it to Telegram's rules.
type Chat struct {
	T         Failer
	Mishaps   func(method string) Mishap // nil: all goes well
	Delay     time.Duration              // of every call
	Seen      func(render.Text)          // is told every text that is shown
	Unchecked bool                       // for benchmarks

	Mu      sync.Mutex
	posts   map[int]*Post
	next    int
	Calls   []string
	At      []time.Time
	Topics  map[int]bool // gone
	Gone    bool         // blocked by the user
	Sending int          // sends under way
	Lost    int          // sends whose outcome nobody knows
	files   []string     // what the documents hold that were sent
}

// Failer is what a *testing.T and a *rapid.T have in common here.
type Failer interface {
	Errorf(format string, args ...any)
}

// Post is one message on the wall.
type Post struct {
	Text    render.Text
	Buttons tgapi.Keyboard
	Topic   int
	ReplyTo int
	Edits   int
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

func (w *Chat) under(way int) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Sending += way
}

// Fails is the error of a call that did not happen.
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
	if err := render.CheckMessage(t, render.MessageLimit); err != nil {
		w.T.Errorf("Telegram would not take %q: %v", t.Text, err)
	}
}

func (w *Chat) Send(_ context.Context, m tgapi.Message) (int, error) {
	w.under(1)
	defer w.under(-1)
	f := w.Begin("send")
	if f == LostBefore || f == LostAfter {
		w.Mu.Lock()
		w.Lost++
		w.Mu.Unlock()
	}
	if err := f.Fails(); err != nil {
		return 0, err
	}
	w.check(m.Text)
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
	w.posts[w.next] = &Post{Text: m.Text, Buttons: m.Keyboard, Topic: m.To.Topic, ReplyTo: m.ReplyTo}
	if f == LostAfter {
		return 0, fault(tgapi.UnknownFault)
	}
	return w.next, nil
}

func (w *Chat) SendDocument(_ context.Context, d tgapi.Document) (int, error) {
	w.under(1)
	defer w.under(-1)
	f := w.Begin("document")
	if err := f.Fails(); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(d.Content)
	if err != nil {
		return 0, err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Gone {
		return 0, fault(tgapi.ChatGone)
	}
	w.next++
	w.files = append(w.files, string(text))
	if f == LostAfter {
		return 0, fault(tgapi.UnknownFault)
	}
	return w.next, nil
}

// Sent is what the documents hold that were sent.
func (w *Chat) Sent() []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.files)
}

func (w *Chat) Edit(_ context.Context, _ int64, message int, t render.Text, k tgapi.Keyboard) error {
	f := w.Begin("edit")
	if err := f.Fails(); err != nil {
		return err
	}
	w.check(t)
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
	p.Text, p.Buttons, p.Edits = t, k, p.Edits+1
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

func (w *Chat) Typing(context.Context, orchestrator.ConversationID) error {
	return w.Begin("typing").Fails()
}

// Visible is what the chat shows now, in the order of the messages.
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

func (w *Chat) Text() string {
	var b strings.Builder
	for i, p := range w.Visible() {
		if i > 0 {
			b.WriteString("\n----\n")
		}
		b.WriteString(p.Text.Text)
		for _, row := range p.Buttons {
			for _, button := range row {
				b.WriteString("\n[" + button.Text + "]")
			}
		}
	}
	return b.String()
}

// Count counts calls of a method; all for "".
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

// Journal is a Journal's outgoing half in memory. It encodes and decodes as a real one would.
type Journal struct {
	Mu         sync.Mutex
	Cards      map[string][]byte
	Parts      map[string]map[int]orchestrator.CardPart
	Notices    map[int64]orchestrator.Notice
	Reading    time.Duration // from what the notices were to who asked for them
	next       int64
	Writes     int
	Unreadable bool        // loading fails
	Full       atomic.Bool // nothing is stored
	DiesAt     int         // the write at which ductor dies: from then on nothing is stored and every call fails; 0 never
}

func NewJournal() *Journal {
	return &Journal{
		Cards: make(map[string][]byte), Parts: make(map[string]map[int]orchestrator.CardPart),
		Notices: make(map[int64]orchestrator.Notice),
	}
}

func (s *Journal) write() error {
	s.Writes++
	if s.DiesAt > 0 && s.Writes >= s.DiesAt {
		return fmt.Errorf("ductor is dead")
	}
	if s.Full.Load() {
		return fmt.Errorf("the disk is full")
	}
	return nil
}

func (s *Journal) Dead() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.DiesAt > 0 && s.Writes >= s.DiesAt
}

func (s *Journal) SaveCard(_ context.Context, turn string, content []byte) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if !json.Valid(content) {
		return fmt.Errorf("not JSON: %s", content)
	}
	s.Cards[turn] = slices.Clone(content)
	return nil
}

func (s *Journal) SaveCardPart(_ context.Context, turn string, part int, state orchestrator.SendState, message int) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if s.Parts[turn] == nil {
		s.Parts[turn] = make(map[int]orchestrator.CardPart)
	}
	s.Parts[turn][part] = orchestrator.CardPart{Part: part, State: state, Message: message}
	return nil
}

func (s *Journal) LoadCard(_ context.Context, turn string) ([]byte, []orchestrator.CardPart, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Unreadable {
		return nil, nil, fmt.Errorf("the disk is in trouble")
	}
	var parts []orchestrator.CardPart
	for _, i := range slices.Sorted(maps.Keys(s.Parts[turn])) {
		parts = append(parts, s.Parts[turn][i])
	}
	return slices.Clone(s.Cards[turn]), parts, nil
}

func (s *Journal) PostNotice(_ context.Context, l orchestrator.Notice) (int64, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.next++
	l.ID, l.State = s.next, orchestrator.Pending
	s.Notices[l.ID] = l
	return l.ID, s.write()
}

func (s *Journal) PendingNotices(context.Context) ([]orchestrator.Notice, error) {
	out := s.inState(orchestrator.Pending)
	time.Sleep(s.Reading)
	return out, nil
}

func (s *Journal) inState(state orchestrator.SendState) []orchestrator.Notice {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var out []orchestrator.Notice
	for _, id := range slices.Sorted(maps.Keys(s.Notices)) {
		if s.Notices[id].State == state {
			out = append(out, s.Notices[id])
		}
	}
	return out
}

func (s *Journal) MoveNotice(_ context.Context, id int64, state orchestrator.SendState, message int) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	l := s.Notices[id]
	l.State, l.Message = state, message
	s.Notices[id] = l
	return nil
}

func (s *Journal) LostNotices(ctx context.Context) ([]orchestrator.Notice, error) {
	lost := s.inState(orchestrator.Sending)
	for _, l := range lost {
		if err := s.MoveNotice(ctx, l.ID, orchestrator.Unknown, 0); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// Buttons are buttons that can be read.
type Buttons struct{}

func (Buttons) RunAgain(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: "Run again", Data: "again:" + string(t)}
}
func (Buttons) Fresh(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: "Start fresh", Data: "fresh:" + string(t)}
}
func (Buttons) ShowAgain(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: "Show again", Data: "show:" + string(t)}
}
