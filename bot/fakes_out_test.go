package bot

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
	"ductor/cli"
	"ductor/orchestrator"
)

// mishap is what becomes of a call to the fake chat.
type mishap string

const (
	goesWell     mishap = "ok"
	rateLimited  mishap = "429"
	serverBroken mishap = "500"
	notSent      mishap = "not sent"
	lostBefore   mishap = "lost before" // unknown, and it did not happen
	lostAfter    mishap = "lost after"  // unknown, and it happened
	deletedFirst mishap = "deleted"     // a person deletes the message just before it is edited
	refusedOnce  mishap = "refused"
)

// wall is a fake chat. It holds everything sent to it to Telegram's rules.
type wall struct {
	t         complainer
	mishaps   func(method string) mishap // nil: all goes well
	delay     time.Duration              // of every call
	seen      func(render.Text)          // is told every text that is shown
	unchecked bool                       // for benchmarks

	mu      sync.Mutex
	posts   map[int]*post
	next    int
	calls   []string
	at      []time.Time
	topics  map[int]bool // gone
	gone    bool         // blocked by the user
	sending int          // sends under way
	lost    int          // sends whose outcome nobody knows
	files   []string     // what the documents hold that were sent
}

// complainer is what a *testing.T and a *rapid.T have in common here.
type complainer interface {
	Errorf(format string, args ...any)
}

// post is one message on the wall.
type post struct {
	text    render.Text
	buttons Keyboard
	topic   int
	replyTo int
	edits   int
	deleted bool
}

func newWall(t complainer) *wall {
	return &wall{t: t, posts: make(map[int]*post), topics: make(map[int]bool)}
}

func (w *wall) begin(method string) mishap {
	w.mu.Lock()
	w.calls = append(w.calls, method)
	w.at = append(w.at, time.Now())
	f := goesWell
	if w.mishaps != nil {
		f = w.mishaps(method)
	}
	delay := w.delay
	w.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	return f
}

func (w *wall) under(way int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending += way
}

// fails is the error of a call that did not happen.
func (f mishap) fails() error {
	switch f {
	case rateLimited:
		return limit(3 * time.Second)
	case serverBroken:
		return fault(ServerFault)
	case notSent:
		return fault(NotSent)
	case lostBefore:
		return fault(UnknownFault)
	case refusedOnce:
		return fault(BadRequest)
	}
	return nil
}

func (w *wall) check(t render.Text) {
	if w.unchecked {
		return
	}
	if err := render.CheckMessage(t, hardLimit); err != nil {
		w.t.Errorf("Telegram would not take %q: %v", t.Text, err)
	}
}

func (w *wall) Send(_ context.Context, m Message) (int, error) {
	w.under(1)
	defer w.under(-1)
	f := w.begin("send")
	if f == lostBefore || f == lostAfter {
		w.mu.Lock()
		w.lost++
		w.mu.Unlock()
	}
	if err := f.fails(); err != nil {
		return 0, err
	}
	w.check(m.Text)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.gone:
		return 0, fault(ChatGone)
	case w.topics[m.To.Topic]:
		return 0, fault(TopicGone)
	}
	if w.seen != nil {
		w.seen(m.Text)
	}
	w.next++
	w.posts[w.next] = &post{text: m.Text, buttons: m.Keyboard, topic: m.To.Topic, replyTo: m.ReplyTo}
	if f == lostAfter {
		return 0, fault(UnknownFault)
	}
	return w.next, nil
}

func (w *wall) SendDocument(_ context.Context, d Document) (int, error) {
	w.under(1)
	defer w.under(-1)
	f := w.begin("document")
	if err := f.fails(); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(d.Content)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return 0, fault(ChatGone)
	}
	w.next++
	w.files = append(w.files, string(text))
	if f == lostAfter {
		return 0, fault(UnknownFault)
	}
	return w.next, nil
}

// sent is what the documents hold that were sent.
func (w *wall) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.files)
}

func (w *wall) Edit(_ context.Context, _ int64, message int, t render.Text, k Keyboard) error {
	f := w.begin("edit")
	if err := f.fails(); err != nil {
		return err
	}
	w.check(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.posts[message]
	if f == deletedFirst {
		p.deleted = true
	}
	switch {
	case w.gone:
		return fault(ChatGone)
	case p == nil || p.deleted:
		return fault(MessageGone)
	}
	if w.seen != nil {
		w.seen(t)
	}
	p.text, p.buttons, p.edits = t, k, p.edits+1
	if f == lostAfter {
		return fault(UnknownFault)
	}
	return nil
}

func (w *wall) Delete(_ context.Context, _ int64, message int) error {
	f := w.begin("delete")
	if err := f.fails(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posts[message].deleted = true
	if f == lostAfter {
		return fault(UnknownFault)
	}
	return nil
}

func (w *wall) Typing(context.Context, orchestrator.ConversationID) error {
	return w.begin("typing").fails()
}

// visible is what the chat shows now, in the order of the messages.
func (w *wall) visible() []*post {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*post
	for _, id := range slices.Sorted(maps.Keys(w.posts)) {
		if p := w.posts[id]; !p.deleted {
			copied := *p
			out = append(out, &copied)
		}
	}
	return out
}

func (w *wall) text() string {
	var b strings.Builder
	for i, p := range w.visible() {
		if i > 0 {
			b.WriteString("\n----\n")
		}
		b.WriteString(p.text.Text)
		for _, row := range p.buttons {
			for _, button := range row {
				b.WriteString("\n[" + button.Text + "]")
			}
		}
	}
	return b.String()
}

// count counts calls of a method; all for "".
func (w *wall) count(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		if method == "" || c == method {
			n++
		}
	}
	return n
}

// shelf is a Journal's outgoing half in memory. It encodes and decodes as a real one would.
type shelf struct {
	mu      sync.Mutex
	cards   map[string][]byte
	parts   map[string]map[int]orchestrator.CardPart
	letters map[int64]orchestrator.Letter
	reading time.Duration // from what the letters were to who asked for them
	next    int64
	writes  int
	deaf    bool        // loading fails
	full    atomic.Bool // nothing is stored
	dies    int         // the write at which ductor dies: from then on nothing is stored and every call fails; 0 never
}

func newShelf() *shelf {
	return &shelf{
		cards: make(map[string][]byte), parts: make(map[string]map[int]orchestrator.CardPart),
		letters: make(map[int64]orchestrator.Letter),
	}
}

func (s *shelf) write() error {
	s.writes++
	if s.dies > 0 && s.writes >= s.dies {
		return fmt.Errorf("ductor is dead")
	}
	if s.full.Load() {
		return fmt.Errorf("the disk is full")
	}
	return nil
}

func (s *shelf) dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dies > 0 && s.writes >= s.dies
}

func (s *shelf) SaveCard(_ context.Context, turn string, content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if !json.Valid(content) {
		return fmt.Errorf("not JSON: %s", content)
	}
	s.cards[turn] = slices.Clone(content)
	return nil
}

func (s *shelf) SaveCardPart(_ context.Context, turn string, part int, state orchestrator.SendState, message int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if s.parts[turn] == nil {
		s.parts[turn] = make(map[int]orchestrator.CardPart)
	}
	s.parts[turn][part] = orchestrator.CardPart{Part: part, State: state, Message: message}
	return nil
}

func (s *shelf) LoadCard(_ context.Context, turn string) ([]byte, []orchestrator.CardPart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return nil, nil, fmt.Errorf("the disk is in trouble")
	}
	var parts []orchestrator.CardPart
	for _, i := range slices.Sorted(maps.Keys(s.parts[turn])) {
		parts = append(parts, s.parts[turn][i])
	}
	return slices.Clone(s.cards[turn]), parts, nil
}

func (s *shelf) PostLetter(_ context.Context, l orchestrator.Letter) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	l.ID, l.State = s.next, orchestrator.Pending
	s.letters[l.ID] = l
	return l.ID, s.write()
}

func (s *shelf) PendingLetters(context.Context) ([]orchestrator.Letter, error) {
	out := s.inState(orchestrator.Pending)
	time.Sleep(s.reading)
	return out, nil
}

func (s *shelf) inState(state orchestrator.SendState) []orchestrator.Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []orchestrator.Letter
	for _, id := range slices.Sorted(maps.Keys(s.letters)) {
		if s.letters[id].State == state {
			out = append(out, s.letters[id])
		}
	}
	return out
}

func (s *shelf) MoveLetter(_ context.Context, id int64, state orchestrator.SendState, message int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	l := s.letters[id]
	l.State, l.Message = state, message
	s.letters[id] = l
	return nil
}

func (s *shelf) LostLetters(ctx context.Context) ([]orchestrator.Letter, error) {
	lost := s.inState(orchestrator.Sending)
	for _, l := range lost {
		if err := s.MoveLetter(ctx, l.ID, orchestrator.Unknown, 0); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// plainButtons are buttons that can be read.
type plainButtons struct{}

func (plainButtons) RunAgain(t cli.TurnID) Button  { return Button{"Run again", "again:" + string(t)} }
func (plainButtons) Fresh(t cli.TurnID) Button     { return Button{"Start fresh", "fresh:" + string(t)} }
func (plainButtons) ShowAgain(t cli.TurnID) Button { return Button{"Show again", "show:" + string(t)} }
