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

// messages contains the Telegram messages of one card. It decides which request to make next, and makes this request.
//
// mu guards the fields below mu. It is never held during a request. Only one goroutine at a time may call perform.
type messages struct {
	record *record
	turn   orchestrator.Turn
	all    *message.Messages

	mu                  sync.Mutex
	conv                orchestrator.ConversationID // becomes the main topic if the card's topic is deleted
	unsupportedReported bool                        // Displays.RichUnsupported was called
	parts               []*part
	draft               draft            // preview of the last part, if the chat shows one
	notice              *message.Message // warns users that a part of the answer may be missing
	file                *message.Message // contains the whole answer
	end                 *message.Message // announces the end of the turn
	lost                loss
}

// part is a message that shows a part of the card's document.
type part struct {
	*message.Message
	touched int  // sequence number of the last request for this message
	sealed  bool // true if the message is complete: further text belongs to the next part
}

// loss defines whether the card warns users about missing parts.
type loss int

const (
	tellLoss  loss = iota
	quietLoss      // no warning, because no user waits for an answer
	chatGone       // no warning, because the bot may not write to the chat
)

type action struct {
	step   message.Step
	part   int
	want   message.Content
	sealed bool // true if the message is complete, because another message follows
}

func (s *messages) open(name string) *message.Message {
	return s.all.Open(message.Spec{Key: s.prefix() + name, Turn: s.turn.ID, To: s.conv})
}

// replyTo returns the ID of the prompt's message if the first part must be a reply to the prompt. Otherwise it returns
// 0.
func (s *messages) replyTo() int {
	t := s.turn
	if outbox.ChatOf(t.Prompt.Conversation.Chat).Group || t.Wants.Card.Quote || t.Again != "" {
		return t.Prompt.Message
	}
	return 0
}

func (s *messages) prefix() string { return "card/" + string(s.turn.ID) + "/" }

// next returns the next request that brings the chat closer to the wanted contents. It ignores messages with an index
// below first. It also reports whether further requests must follow. If final is true, next deletes messages that
// have no content. Otherwise these messages stay, because the agent may still send text for them.
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

// before reports whether request a must be made before request b. b concerns an earlier message of the card than a.
//
// If both requests are edits, the message whose last request is older goes first. So frequent changes of an old message
// cannot block the newest message.
//
// If request a sends a message, it must wait until the earlier message shows its complete text.
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
		a.want.Silent = i > 0 // only the first message notifies the user
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

// opened returns the number of messages that were sent or are being sent. The starts of these messages in the document
// cannot change any more.
func (s *messages) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts)
}

// begin records that the caller is about to make a request, and returns the message that the request concerns.
func (s *messages) begin(act action, call int) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addPartsLocked(act.part)
	p := s.parts[act.part]
	p.touched, p.sealed = call, act.sealed
	p.Begin(act.want)
	return p
}

func (s *messages) addPartsLocked(i int) {
	for len(s.parts) <= i {
		s.parts = append(s.parts, &part{Message: s.open(strconv.Itoa(len(s.parts)))})
	}
}

// perform makes a request that begin has recorded. Its errors are meant for the outbox; see message.Message.Do.
func (s *messages) perform(ctx context.Context, act action, p *part) error {
	err := p.Do(ctx, act.step, act.want)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conv = p.To() // if the topic was deleted, the message went to the main topic
	if r := p.Refusal(); r == tgapi.ChatGone || r == tgapi.TopicGone {
		s.lost = chatGone
	}
	return err
}

// continued returns where the next message must start if Telegram did not confirm the last message. ductor can neither
// edit the last message nor send it again. So the next message starts where the text of the last message ended when
// ductor sent it.
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

// gone reports whether the last message is not in the chat, for example because a user deleted it.
func (s *messages) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts) == 0 || s.parts[len(s.parts)-1].State() != orchestrator.Sent
}

// withButtons returns k if the last k of the first n messages may have buttons, or 0 if none may have buttons. Usually,
// only the last message has buttons. An earlier message may have buttons if it is being sent, or if a request about it
// failed, because ductor then does not know what the chat shows.
func (s *messages) withButtons(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts[:n] {
		switch p.State() {
		case orchestrator.Sending:
			return n - i
		case orchestrator.Sent:
			if p.Shown() == "" || i == n-1 {
				return n - i
			}
		}
	}
	return 0
}

// isSent reports whether part i is in the chat, so that its content can be edited.
func (s *messages) isSent(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return i < len(s.parts) && s.parts[i].State() == orchestrator.Sent
}

// shows reports whether the chat shows the wanted contents. It ignores messages with an index below first. It checks
// for unfinished requests before it compares the contents, because a request may finish during the comparison.
func (s *messages) shows(first int, wants []message.Content) bool {
	s.mu.Lock()
	flying := slices.ContainsFunc(s.parts, func(p *part) bool { return p.State() == orchestrator.Sending })
	s.mu.Unlock()
	act, _ := s.next(first, wants, true)
	return !flying && act.step == message.None
}

// showDraft shows a part as a draft. It returns outbox.ErrNotNeeded if the part has no text, or if the chat already
// shows the same draft. If Telegram rejects drafts in this chat, showDraft also returns the reason.
func (s *messages) showDraft(ctx context.Context, show Draft, part int,
	t render.Text) (refused tgapi.FaultKind, err error) {
	now := time.Now()
	s.mu.Lock()
	old, to := s.draft, s.conv
	s.mu.Unlock()
	if t.Text == "" {
		s.setDraft(draft{}) // do not repeat the draft of an earlier part
		return tgapi.NoFault, outbox.ErrNotNeeded
	}
	if old.part == part && old.text.Text == t.Text && slices.Equal(old.text.Entities, t.Entities) &&
		now.Sub(old.at) < draftAgain {
		return tgapi.NoFault, outbox.ErrNotNeeded
	}
	err = show(ctx, to, draftID(s.turn.ID, part), t)
	switch kind := tgapi.FaultOf(err).Kind; kind {
	case tgapi.NoFault:
		s.setDraft(draft{part, t, now})
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

// draftExpires returns when the draft must be repeated. It returns false if the chat shows no draft.
func (s *messages) draftExpires() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draft.at.Add(draftAgain), !s.draft.at.IsZero()
}

func (s *messages) where() orchestrator.ConversationID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conv
}

// missing reports whether messages may be missing in the chat, because Telegram did not confirm them (unknown) or
// rejected them (refused). Both are false if a notice has already informed the user, or if the card must not send a
// notice.
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
	for i, print := range saved.Layout.Prints {
		if i < len(s.parts) && s.parts[i].State() == orchestrator.Sent {
			s.parts[i].AssumeFingerprint(print)
		}
	}
	return saved, nil
}

// Names of a card's additional messages, which do not show the document.
const (
	noticeName = "notice"
	fileName   = "file"
	endName    = "end"
)

// settled returns err, or nil if err only means that the next request will try another form of the message.
func settled(err error) error {
	if errors.Is(err, outbox.ErrOtherForm) {
		return nil
	}
	return err
}

// pack encodes a position as a number that the database stores with each sent message.
func pack(p position) int64 { return int64(p.segment)<<32 | int64(min(p.offset, math.MaxInt32)) }

// unpack decodes a number that pack has returned. It returns the zero position if n is not positive.
func unpack(n int64) position {
	if n <= 0 {
		return position{}
	}
	return position{segment: int(n >> 32), offset: int(n & math.MaxUint32)}
}
