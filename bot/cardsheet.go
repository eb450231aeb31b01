package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// messenger is what a card needs of a Client.
type messenger interface {
	Send(ctx context.Context, m Message) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
	Typing(ctx context.Context, to orchestrator.ConversationID) error
}

// cardJournal is what a card needs of a Journal.
type cardJournal interface {
	SaveCard(ctx context.Context, turn string, content []byte) error
	SaveCardPart(ctx context.Context, turn string, part int, state orchestrator.SendState, message int) error
	LoadCard(ctx context.Context, turn string) ([]byte, []orchestrator.CardPart, error)
}

// sheet is the messages of one card: which of them are in the chat, and what they show there. It decides
// the next call that brings the chat closer to what is wanted, makes it, and takes note of how it went.
//
// next and the fields are guarded by mu, which is never held during I/O; perform is called by one
// goroutine at a time, since all calls of a chat are.
type sheet struct {
	turn    cli.TurnID
	client  messenger
	journal cardJournal
	log     *slog.Logger

	journaling sync.Mutex // held while what is known is written down, so that the order is the right one

	mu      sync.Mutex
	place   orchestrator.ConversationID
	replyTo int
	parts   []*sheetPart
	gone    bool // nothing reaches this chat
	told    bool // that something may be missing
}

// sheetPart is one message.
type sheetPart struct {
	state   orchestrator.SendState
	message int
	shown   render.Text
	buttons Keyboard
	known   bool // shown and buttons are what the chat shows
	touched int  // number of the call that last changed it
	sealed  bool // what it shows goes up to where the next one begins
	reborn  bool // was deleted by a person and sent once more
	marked  bool // the journal says that it may be on its way
	plain   bool // its formatting was refused
	left    bool // not in the chat, and not to be: people deleted it, or there was nothing to show
	moved   bool // says that its topic is gone
}

// want is what one message is to show.
type want struct {
	text    render.Text
	buttons Keyboard
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
func (s *sheet) next(first int, wants []want, final bool) (act action, more bool) {
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
func (s *sheet) before(a, b action) bool {
	if b.kind != editPart {
		return false
	}
	old := s.parts[b.part]
	if a.kind == editPart {
		return s.parts[a.part].touched < old.touched
	}
	newest := slices.MaxFunc(s.parts, func(p, q *sheetPart) int { return p.touched - q.touched })
	return old.sealed && old == newest
}

func (s *sheet) actionFor(i int, wants []want, final bool) action {
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
	case p.known && sameText(p.shown, w.text) && slices.EqualFunc(p.buttons, w.buttons, slices.Equal[[]Button]):
		return action{}
	}
	return action{kind: editPart, part: i, message: p.message, want: w}
}

// opened is how many messages were begun; where they begin in the document is settled.
func (s *sheet) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts) // one that was only marked begins where the document does
}

// begin notes that an action is about to be made, on the part it returns.
func (s *sheet) begin(act action, call int) *sheetPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.parts) <= act.part {
		s.parts = append(s.parts, &sheetPart{state: orchestrator.Pending})
	}
	p := s.parts[act.part]
	p.touched, p.sealed = call, act.sealed
	if act.kind == sendPart {
		p.state = orchestrator.Sending
	}
	return p
}

// perform makes a call that was begun. It returns an error if the call may be made again as it is, or if no call can be
// made at all; everything else is settled.
func (s *sheet) perform(ctx context.Context, act action, p *sheetPart) error {
	if act.kind == sendPart && !p.marked {
		if err := s.save(ctx, act.part, orchestrator.Sending, 0); err != nil {
			s.set(func() { p.state = orchestrator.Pending })
			return err
		}
		s.set(func() { p.marked = true })
	}
	switch act.kind {
	case sendPart:
		return s.send(ctx, act, p)
	case editPart:
		t := s.dressed(p, act.want.text)
		err := s.client.Edit(ctx, s.where().Chat, act.message, t, act.want.buttons)
		return s.settleEdit(ctx, act, p, err)
	case deletePart:
		err := s.client.Delete(ctx, s.where().Chat, act.message)
		return s.settleDelete(ctx, act, p, err)
	}
	return nil
}

func (s *sheet) send(ctx context.Context, act action, p *sheetPart) error {
	m := Message{
		To: s.where(), Text: s.dressed(p, act.want.text), Keyboard: act.want.buttons,
		Silent: act.part > 0, // one message, one sound
	}
	if act.part == 0 {
		m.ReplyTo = s.replyTo
	}
	id, err := s.client.Send(ctx, m)
	s.journaling.Lock()
	defer s.journaling.Unlock()
	f := FaultOf(err)
	switch f.Kind {
	case NoFault:
		s.set(func() { p.state, p.message = orchestrator.Sent, id })
		s.showed(p, act.want)
		return s.saved(ctx, act.part, orchestrator.Sent, id)
	case UnknownFault:
		s.log.Warn("a message may or may not have arrived", "turn", s.turn, "part", act.part, "err", err)
		s.set(func() { p.state = orchestrator.Unknown })
		return s.saved(ctx, act.part, orchestrator.Unknown, 0)
	}
	// It is known not to have been sent. While it waits to be sent again a restart must know that too.
	s.set(func() { p.state, p.marked = orchestrator.Pending, false })
	return s.refused(ctx, act, p, f, errors.Join(err, s.saved(ctx, act.part, orchestrator.Pending, 0)))
}

// refused settles what a refusal means; it returns err if the call may be made again as it is.
func (s *sheet) refused(ctx context.Context, act action, p *sheetPart, f Fault, err error) error {
	switch f.Kind {
	case TopicGone:
		if s.leaveTopic(p) {
			return nil
		}
		s.lost(err)
	case ChatGone:
		s.lost(err)
	case TooLong, BadRequest:
		if !p.plain {
			s.log.Warn("Telegram refused a message; it goes out without formatting", "turn", s.turn, "err", err)
			s.set(func() { p.plain = true })
			return nil
		}
		s.log.Error("Telegram refused a message", "turn", s.turn, "part", act.part, "err", err)
		s.set(func() { p.state = orchestrator.Failed })
		return s.saved(ctx, act.part, orchestrator.Failed, p.message)
	default:
		return err
	}
	return nil
}

func (s *sheet) settleEdit(ctx context.Context, act action, p *sheetPart, err error) error {
	f := FaultOf(err)
	switch f.Kind {
	case NoFault, NotModified:
		s.showed(p, act.want)
		return nil
	case MessageGone:
		return s.vanished(ctx, act, p)
	}
	return s.refused(ctx, act, p, f, err)
}

// vanished settles that a person deleted a message: it is sent anew once, and after that left alone.
func (s *sheet) vanished(ctx context.Context, act action, p *sheetPart) error {
	state := orchestrator.Pending
	s.set(func() {
		if p.reborn {
			state, p.left = orchestrator.Failed, true
		}
		p.reborn, p.known, p.marked, p.state, p.message = true, false, false, state, 0
	})
	return s.saved(ctx, act.part, state, 0)
}

func (s *sheet) settleDelete(ctx context.Context, act action, p *sheetPart, err error) error {
	f := FaultOf(err)
	switch f.Kind {
	case RateLimited, ServerFault, NotSent, UnknownFault, Cancelled, Unauthorized, OtherFault:
		return err
	}
	s.set(func() { p.state, p.message, p.left = orchestrator.Failed, 0, true })
	return s.saved(ctx, act.part, orchestrator.Failed, 0)
}

// leaveTopic makes the card go on in the chat's main topic; false if it is there already.
func (s *sheet) leaveTopic(p *sheetPart) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place.Topic == 0 {
		return false
	}
	s.place.Topic, p.moved = 0, true
	return true
}

const movedNote = "(The topic is gone, so this comes here.)\n\n"

// dressed is a part's text as it is sent: with a word about its topic, or without its formatting.
func (s *sheet) dressed(p *sheetPart, t render.Text) render.Text {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.plain {
		t.Entities = nil
	}
	if p.moved {
		if noted := render.Concat(render.Styled(render.Italic, movedNote), t); render.Fits(noted, hardLimit) {
			return noted
		}
	}
	return t
}

func (s *sheet) showed(p *sheetPart, w want) {
	s.set(func() { p.shown, p.buttons, p.known = w.text, w.buttons, true })
}

func (s *sheet) lost(err error) {
	s.log.Warn("the chat cannot be reached; the outcome is not shown", "turn", s.turn, "chat", s.where().Chat, "err", err)
	s.set(func() { s.gone = true })
}

func (s *sheet) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// saved records what is already true, so it must not be kept from it by a cancelled caller.
func (s *sheet) saved(ctx context.Context, part int, state orchestrator.SendState, message int) error {
	return s.save(context.WithoutCancel(ctx), part, state, message)
}

func (s *sheet) save(ctx context.Context, part int, state orchestrator.SendState, message int) error {
	if err := s.journal.SaveCardPart(ctx, string(s.turn), part, state, message); err != nil {
		return fmt.Errorf("record a message of a card: %w", err)
	}
	return nil
}

// mark writes down, before there is anything to send, that the first message may be on its way. So the
// first text of an answer need not wait for the disk.
func (s *sheet) mark(ctx context.Context) {
	if err := s.save(ctx, 0, orchestrator.Sending, 0); err != nil {
		s.log.Warn("mark a card", "turn", s.turn, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, &sheetPart{state: orchestrator.Pending, marked: true})
}

// store writes down what the messages are to show in the end.
func (s *sheet) store(ctx context.Context, content script) error {
	data, err := content.encode(true, s.where().Topic)
	if err != nil {
		return err
	}
	s.journaling.Lock()
	defer s.journaling.Unlock()
	for i, p := range s.unsent() {
		if err := s.save(ctx, i, orchestrator.Pending, 0); err != nil {
			return err
		}
		s.set(func() { p.marked = false })
	}
	if err := s.journal.SaveCard(ctx, string(s.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	return nil
}

// unsent is the messages that were marked as on their way and are not.
func (s *sheet) unsent() map[int]*sheetPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[int]*sheetPart)
	for i, p := range s.parts {
		if p.marked && p.state == orchestrator.Pending {
			out[i] = p
		}
	}
	return out
}

// flying says that a message is on its way right now. The next call of the chat is made after that one.
func (s *sheet) flying() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parts, func(p *sheetPart) bool { return p.state == orchestrator.Sending })
}

// where is the conversation the card is shown in.
func (s *sheet) where() orchestrator.ConversationID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

// missing says that a part of the content is not in the chat, or not surely, and that nobody was told.
func (s *sheet) missing() (unknown, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.told {
		return false, false
	}
	for _, p := range s.parts {
		unknown = unknown || p.state == orchestrator.Unknown
		refused = refused || p.state == orchestrator.Failed && !p.left
	}
	return unknown, refused
}
