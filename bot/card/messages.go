package card

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// messenger is what a card needs of a Client.
type messenger interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
	Typing(ctx context.Context, to orchestrator.ConversationID) error
	SendDocument(ctx context.Context, d tgapi.Document) (int, error)
}

// cardJournal is what a card needs of a Journal.
type cardJournal interface {
	SaveCard(ctx context.Context, turn string, content []byte) error
	SaveCardPart(ctx context.Context, turn string, part int, state orchestrator.SendState, message int) error
	LoadCard(ctx context.Context, turn string) ([]byte, []orchestrator.CardPart, error)
}

// messages is the messages of one card: which of them are in the chat, and what they show there. It decides on the next
// call that brings the chat closer to the content, makes it, and records its result.
//
// next and the fields are guarded by mu, which is never held during I/O; perform is called by one
// goroutine at a time, since all calls of a chat are.
type messages struct {
	record
	client messenger
	log    *slog.Logger

	mu       sync.Mutex
	conv     orchestrator.ConversationID
	replyTo  int
	parts    []*chatMessage
	gone     bool                   // nothing reaches this chat
	notified bool                   // a notice says that something may be missing
	file     orchestrator.SendState // of the file with the whole answer; empty where none was begun
}

// chatMessage is one message of a card.
type chatMessage struct {
	state   orchestrator.SendState
	message int
	shown   render.Text
	buttons tgapi.Keyboard
	known   bool     // shown and buttons are what the chat shows
	touched int      // number of the call that last changed it
	sealed  bool     // what it shows goes up to where the next one begins
	reach   position // where in the document ends what was sent last; the zero position for not known
	print   string   // the fingerprint of what the previous process last showed in it; empty for not known
	left    bool     // not in the chat, and not to be: a user deleted it, or there was nothing to show
	tried   fallbacks
}

// fallbacks is a set of other ways to show a message, which Telegram's answers made necessary.
type fallbacks uint8

const (
	inMainTopic       fallbacks = 1 << iota // its topic is gone, and the message says so
	withoutFormatting                       // Telegram refused the formatting
	sentTwice                               // a user deleted the message
)

// want is what one message is to show.
type want struct {
	text    render.Text
	buttons tgapi.Keyboard
	reach   position // where in the document it ends; the zero position for not known
}

// action is one call to make.
type action struct {
	kind    actionKind
	part    int
	message int
	want    want
	sealed  bool // other messages follow it
}

type actionKind int

const (
	nothing actionKind = iota
	sendPart
	editPart
	deletePart
)

// next decides what to call next so that the chat comes to show wants, from part first on; more says that
// further calls follow. In a final state messages that have nothing to show are deleted; before it they
// are left as they are, since text may come yet.
func (s *messages) next(first int, wants []want, final bool) (act action, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return action{}, false
	}
	last := len(wants) - 1
	for i := first; i < max(len(wants), len(s.parts)); i++ {
		a := s.actionFor(i, wants, final)
		if a.kind == nothing {
			continue
		}
		a.sealed = i < last
		if act.kind == nothing || !final && s.before(a, act) {
			more = more || act.kind != nothing
			act = a
			continue
		}
		more = true
	}
	return act, more
}

// before says that a goes before b, a call for an earlier message, while text still comes. Parts take
// turns then, the one that waited longest first: an older part that changes all the time must not keep the
// newest from growing. But a message is shown to its end before the next one begins.
func (s *messages) before(a, b action) bool {
	if b.kind != editPart {
		return false
	}
	old := s.parts[b.part]
	if a.kind == editPart {
		return s.parts[a.part].touched < old.touched
	}
	newest := slices.MaxFunc(s.parts, func(p, q *chatMessage) int { return p.touched - q.touched })
	return old.sealed && old == newest
}

func (s *messages) actionFor(i int, wants []want, final bool) action {
	var w want
	if i < len(wants) {
		w = wants[i]
	}
	if i >= len(s.parts) || s.parts[i].state == orchestrator.Pending {
		if w.text.Text == "" {
			return action{}
		}
		return action{kind: sendPart, part: i, want: w}
	}
	p := s.parts[i]
	switch {
	case p.state != orchestrator.Sent:
		return action{}
	case w.text.Text == "" && !final:
		return action{}
	case w.text.Text == "":
		return action{kind: deletePart, part: i, message: p.message}
	case p.known && sameText(p.shown, w.text) && slices.EqualFunc(p.buttons, w.buttons, slices.Equal[[]tgapi.Button]):
		return action{}
	case p.print != "" && len(w.buttons) == 0 && p.print == render.Fingerprint(w.text):
		return action{}
	}
	return action{kind: editPart, part: i, message: p.message, want: w}
}

// opened is how many messages were begun; where they begin in the document is settled.
func (s *messages) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts)
}

// begin records that an action is about to be made, on the message that it returns. Until the call returns it is unknown
// what the message shows, so that showing what it did before takes an edit.
func (s *messages) begin(act action, call int) *chatMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.parts) <= act.part {
		s.parts = append(s.parts, &chatMessage{state: orchestrator.Pending})
	}
	p := s.parts[act.part]
	p.touched, p.sealed, p.known, p.print = call, act.sealed, false, ""
	if act.kind == sendPart {
		p.state, p.reach = orchestrator.Sending, act.want.reach
	}
	return p
}

// continued says where the document continues after a newest message whose fate is unknown: it can neither
// be edited nor sent again, so what was not in it goes into the next.
func (s *messages) continued() (reach position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return position{}, false
	}
	p := s.parts[len(s.parts)-1]
	return p.reach, p.state == orchestrator.Unknown && p.reach != position{}
}

// flying says that a message is on its way right now. The next call of the chat is made after that one.
func (s *messages) flying() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parts, func(p *chatMessage) bool { return p.state == orchestrator.Sending })
}

// where is the conversation the card is shown in.
func (s *messages) where() orchestrator.ConversationID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conv
}

// missing says that a part of the content is not in the chat, or not surely, and that no notice says so.
func (s *messages) missing() (unknown, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.notified {
		return false, false
	}
	unknown, refused = s.file == orchestrator.Unknown, s.file == orchestrator.Failed
	for _, p := range s.parts {
		unknown = unknown || p.state == orchestrator.Unknown
		refused = refused || p.state == orchestrator.Failed && !p.left
	}
	return unknown, refused
}

func (s *messages) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
