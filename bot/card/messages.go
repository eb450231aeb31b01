package card

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// messages contains the messages of one card. It chooses and makes the calls that show the content in the chat.
//
// mu guards the fields. It is never held during I/O. Only one goroutine at a time calls perform, because the calls of
// a chat are sequential.
type messages struct {
	record *record
	turn   orchestrator.Turn
	all    *message.Messages

	mu                  sync.Mutex
	conv                orchestrator.ConversationID // may change while ductor is not running
	unsupportedReported bool                        // Displays knows that Telegram does not support rich messages
	parts               []*part
	draft               draft            // shows the newest part until that part is sent
	notice              *message.Message // warns that a part may be missing
	file                *message.Message // contains the whole answer
	end                 *message.Message // announces the end of the turn
	lost                loss
}

// part is one message of a card.
type part struct {
	*message.Message
	touched int  // number of the last call that changed it
	sealed  bool // shows everything up to the start of the next part
}

// loss is a reason to send no notice about missing parts.
type loss int

const (
	tellLoss  loss = iota
	quietLoss      // users do not wait for the missing text
	chatGone       // the chat accepts no messages
)

// action is the next call to make.
type action struct {
	step   message.Step
	part   int
	want   message.Content
	sealed bool // other messages follow it
}

func (s *messages) open(name string) *message.Message {
	return s.all.Open(message.Spec{Key: s.prefix() + name, Turn: s.turn.ID, To: s.conv})
}

// replyTo returns the message that the first part replies to, or 0.
func (s *messages) replyTo() int {
	t := s.turn
	if outbox.ChatOf(t.Prompt.Conversation.Chat).Group || t.Wants.Card.Quote || t.Again != "" {
		return t.Prompt.Message // several users may send prompts in a group
	}
	return 0
}

func (s *messages) prefix() string { return "card/" + string(s.turn.ID) + "/" }

// next chooses the next call that brings the messages in the chat closer to the wanted contents. It ignores messages
// before index first. more is set if further calls follow. If final is set, next deletes messages without content.
// Otherwise it keeps them, because text may still come.
func (s *messages) next(first int, wants []message.Content, final bool) (act action, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == chatGone {
		return action{}, false
	}
	last := len(wants) - 1
	for i := first; i < max(len(wants), len(s.parts)); i++ {
		a := s.actionFor(i, wants, final)
		if a.step == message.None {
			continue
		}
		a.sealed = i < last
		if act.step == message.None || !final && s.before(a, act) {
			more = more || act.step != message.None
			act = a
			continue
		}
		more = true
	}
	return act, more
}

// before reports whether call a has priority over b, which is for an earlier message. While text still comes, the
// part that was edited longest ago is next. Otherwise changes of an older part could stop the growth of the newest.
// But a message must be complete before the next message is sent.
func (s *messages) before(a, b action) bool {
	if b.step != message.Edit {
		return false
	}
	old := s.parts[b.part]
	if a.step == message.Edit {
		return s.parts[a.part].touched < old.touched
	}
	newest := slices.MaxFunc(s.parts, func(p, q *part) int { return p.touched - q.touched })
	return old.sealed && old == newest
}

func (s *messages) actionFor(i int, wants []message.Content, final bool) action {
	a := action{part: i, want: message.Content{Lifecycle: message.DeleteWhenDone}}
	if i < len(wants) && (wants[i].Text.Text != "" || wants[i].Unknown) {
		a.want = wants[i]
		a.want.Lifecycle = cmp.Or(wants[i].Lifecycle, message.ResendIfDeleted)
		a.want.Silent = i > 0 // only the first message makes a sound
		if i == 0 {
			a.want.ReplyTo = s.replyTo()
		}
	} else if !final {
		return action{}
	}
	switch {
	case i < len(s.parts):
		a.step = s.parts[i].Next(a.want)
	case a.want.Lifecycle != message.DeleteWhenDone:
		a.step = message.Send
	}
	return a
}

// opened returns the number of started messages. Their starts in the document are fixed.
func (s *messages) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts)
}

// begin records that the caller is about to make a call. It returns the message of the call.
func (s *messages) begin(act action, call int) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addPartsLocked(act.part)
	p := s.parts[act.part]
	p.touched, p.sealed = call, act.sealed
	p.Begin(act.want)
	return p
}

// addPartsLocked adds messages to s.parts until s.parts[i] exists.
func (s *messages) addPartsLocked(i int) {
	for len(s.parts) <= i {
		s.parts = append(s.parts, &part{Message: s.open(strconv.Itoa(len(s.parts)))})
	}
}

// perform makes the call act, which the caller has passed to begin. It returns an error if the call may be repeated,
// or if no call is possible.
func (s *messages) perform(ctx context.Context, act action, p *part) error {
	err := p.Do(ctx, act.step, act.want)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conv = p.To() // the newest message may have moved to another conversation
	if r := p.Refusal(); r == tgapi.ChatGone || r == tgapi.TopicGone {
		s.lost = chatGone
	}
	return err
}

// continued returns where the document continues after a newest message with an unknown outcome. Such a message can
// neither be edited nor sent again, so the next message gets the text that it lacks.
func (s *messages) continued() (reach position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return position{}, false
	}
	p := s.parts[len(s.parts)-1]
	reach = unpack(p.Mark())
	return reach, p.State() == orchestrator.Unknown && reach != position{}
}

// gone reports whether the newest message was deleted from the chat.
func (s *messages) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts) == 0 || s.parts[len(s.parts)-1].State() != orchestrator.Sent
}

// isSent reports whether part i is in the chat, so that its content can be edited.
func (s *messages) isSent(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return i < len(s.parts) && s.parts[i].State() == orchestrator.Sent
}

// shows reports whether the chat shows the final content from part first on. It checks for messages in flight first,
// because a message may arrive during the check.
func (s *messages) shows(first int, wants []message.Content) bool {
	s.mu.Lock()
	flying := slices.ContainsFunc(s.parts, func(p *part) bool { return p.State() == orchestrator.Sending })
	s.mu.Unlock()
	act, _ := s.next(first, wants, true)
	return !flying && act.step == message.None
}

// showDraft shows a part as a draft, unless the chat already does. If Telegram rejects drafts, it also returns the
// fault.
func (s *messages) showDraft(ctx context.Context, show Draft, part int,
	t render.Text) (refused tgapi.FaultKind, err error) {
	now := time.Now()
	s.mu.Lock()
	old, to := s.draft, s.conv
	s.mu.Unlock()
	if t.Text == "" || old.text.Text == t.Text && slices.Equal(old.text.Entities, t.Entities) &&
		now.Sub(old.at) < draftAgain {
		return tgapi.NoFault, outbox.ErrNotNeeded
	}
	err = show(ctx, to, draftID(s.turn.ID, part), t)
	switch kind := tgapi.FaultOf(err).Kind; kind {
	case tgapi.NoFault:
		s.setDraft(draft{t, now})
		return kind, nil
	case tgapi.RateLimited, tgapi.ServerFault, tgapi.NotSent, tgapi.UnknownFault, tgapi.Cancelled, tgapi.OtherFault:
		return tgapi.NoFault, err
	default:
		s.setDraft(draft{})
		return kind, err
	}
}

func (s *messages) setDraft(d draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draft = d
}

// draftExpires returns when the draft must be repeated, or false if the chat shows no draft.
func (s *messages) draftExpires() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draft.at.Add(draftAgain), !s.draft.at.IsZero()
}

// where returns the conversation that shows the card.
func (s *messages) where() orchestrator.ConversationID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conv
}

// missing reports whether parts of the content have an unknown outcome or were rejected, and no notice reports that
// yet.
func (s *messages) missing() (unknown, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.notice.State(); s.lost != tellLoss || state != orchestrator.Pending && state != orchestrator.Unknown {
		return false, false
	}
	unknown, refused = s.file.State() == orchestrator.Unknown, s.file.State() == orchestrator.Failed
	for _, p := range s.parts {
		unknown = unknown || p.State() == orchestrator.Unknown
		refused = refused || p.State() == orchestrator.Failed || p.Refusal() != tgapi.NoFault
	}
	return unknown, refused
}

// recall reads the previous process's messages and their content from the journal.
func (s *messages) recall(ctx context.Context) (savedCard, error) {
	saved, stored, err := s.record.load(ctx)
	if err != nil {
		return savedCard{}, err
	}
	s.mu.Lock()
	if stored {
		s.conv.Topic = saved.Topic
	}
	to := s.conv
	s.mu.Unlock()
	rows, err := s.all.OpenAll(ctx, s.turn.ID, func(key string) message.Spec {
		return message.Spec{Key: key, Turn: s.turn.ID, To: to}
	})
	if err != nil {
		return savedCard{}, fmt.Errorf("load a card: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, m := range rows {
		name, ok := strings.CutPrefix(key, s.prefix())
		i, err := strconv.Atoi(name)
		switch {
		case !ok:
		case name == noticeName:
			s.notice = m
		case name == fileName:
			s.file = m
		case name == endName:
			s.end = m
		case err == nil && i >= 0 && i <= maxParts:
			s.addPartsLocked(i)
			s.parts[i].Message = m
		}
	}
	for i, print := range saved.Prints {
		if i < len(s.parts) && s.parts[i].State() == orchestrator.Sent {
			s.parts[i].AssumeFingerprint(print)
		}
	}
	return saved, nil
}

// Names of a card's messages that contain no part of its text.
const (
	noticeName = "notice"
	fileName   = "file"
	endName    = "end"
)

// settled returns nil for an error after which the call is repeated in another way. For a live card, this is no
// failure.
func settled(err error) error {
	if errors.Is(err, outbox.ErrOtherForm) {
		return nil
	}
	return err
}

// pack encodes a position for the journal, which stores it with each sent message.
func pack(p position) int64 { return int64(p.segment)<<32 | int64(min(p.offset, math.MaxInt32)) }

// unpack decodes the result of pack. It returns the zero position for any other number.
func unpack(n int64) position {
	if n <= 0 {
		return position{}
	}
	return position{segment: int(n >> 32), offset: int(n & math.MaxUint32)}
}
