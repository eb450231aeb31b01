package approval

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// Message is a message from a user that may belong to an approval.
type Message struct {
	Conversation orchestrator.ConversationID
	User         orchestrator.PersonID
	Role         orchestrator.UserRole
	ReplyTo      int // ID of the message to which this message replies; 0 if it is not a reply
	Text         string
	Plain        string // Text without Markdown; replaces Text if the message answers a secret question
	Files        []orchestrator.Attachment
	Updates      []int64
	Private      bool // true if the message was sent in a private chat
	Arrived      time.Time
}

// press returns the sender, the updates and the time of arrival of the message. An orchestrator.Press can also describe
// a message.
func (m Message) press() orchestrator.Press {
	return orchestrator.Press{
		Conversation: m.Conversation, Person: m.User, Role: m.Role, Updates: m.Updates, Arrived: m.Arrived,
	}
}

// Outcome describes what Screen.Reply has done with a message.
type Outcome struct {
	Handling Handling
	Text     string
	Secret   bool // the message contains a secret: the caller must delete it from the chat and not store it
	// Guessed means that the user may have meant the message as a prompt. Either the message became the reason of a
	// denial although it is not a reply, or it became the answer to a question because no other question is open.
	Guessed bool
}

// Handling defines what the caller of Screen.Reply must do with the message.
type Handling int

const (
	TreatAsPrompt Handling = iota // use the message as a prompt that starts with Text
	Ignore                        // do nothing: the message is already handled, or the next process handles it
	MarkHandled                   // mark the message as handled, and send Text to the user unless Text is empty
)

// Reply handles a message that contains the reason for a denial, or the answer to a question. A message contains such a
// text in these cases:
//   - The message replies to the approval's message.
//   - In a private chat, the user has pressed a button that asks for the text.
//   - In a private chat, only a single question is open. The message is then the answer.
//
// A reply to the message of an open approval is never a prompt. If Reply cannot use such a reply, Outcome.Text explains
// why.
func (s *Screen) Reply(ctx context.Context, m Message) Outcome {
	e, approval, err := s.addressee(ctx, m)
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return Outcome{Handling: Ignore}
	case err != nil:
		s.o.Log.Error("look up what a message answers to", "updates", m.Updates, "err", err)
		return Outcome{Handling: MarkHandled, Text: s.o.Lang.Of(m.Conversation.Chat).Text("common.not-looked-up")}
	case e == nil:
		return Outcome{}
	case !slices.Contains(approval.Approvers, m.User):
		return s.replyOfOther(m, approval)
	}
	for _, f := range m.Files {
		m.Text = strings.TrimPrefix(m.Text+"\n"+f.String(), "\n")
	}
	s.mu.Lock()
	d := e.draft.clone()
	s.mu.Unlock()
	if approval.Request != nil {
		return s.denyWithReason(ctx, m, e, approval, d)
	}
	o := s.answerQuestion(ctx, m, e, approval, d)
	o.Guessed = m.ReplyTo == 0 && !d.accepts(m.press()) && o.Handling != TreatAsPrompt && o.Text == ""
	return o
}

// AnswersNewer reports whether Reply would use the message for a new approval or question. It is new if the agent sent
// the approval or question after the given time, or if the user pressed the button that asks for the text after this
// time. AnswersNewer returns true after an error, because Reply then reports the error to the user.
func (s *Screen) AnswersNewer(ctx context.Context, m Message, since time.Time) bool {
	e, approval, err := s.addressee(ctx, m)
	if err != nil || e == nil {
		return err != nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return approval.Asked.After(since) || e.draft.accepts(m.press()) && e.draft.Pressed.After(since)
}

// replyOfOther handles a reply of a user who may not decide the approval. If the approval is closed, the reply is a
// prompt.
func (s *Screen) replyOfOther(m Message, a orchestrator.Approval) Outcome {
	if a.WhyClosed(s.o.Now()) != nil {
		return Outcome{}
	}
	text := s.notApprover(s.o.Lang.Of(m.Conversation.Chat), a)
	return Outcome{Handling: MarkHandled, Text: text, Secret: hasSecret(a.Questions)}
}

// addressee returns the approval to which a message may belong, or nil. If the message is a reply, the caller must
// check whether its sender may decide the approval.
func (s *Screen) addressee(ctx context.Context, m Message) (*entry, orchestrator.Approval, error) {
	if m.ReplyTo == 0 && !m.Private { // users in a group may be talking to each other
		return nil, orchestrator.Approval{}, nil
	}
	if m.ReplyTo == 0 {
		if err := s.loadOpen(ctx, m.Conversation); err != nil {
			return nil, orchestrator.Approval{}, err
		}
		return s.current(ctx, m, cmp.Or(s.listening(m), s.onlyQuestion(m)))
	}
	key, err := s.o.Messages.KeyAt(ctx, m.Conversation, m.ReplyTo)
	if err != nil {
		return nil, orchestrator.Approval{}, err
	}
	if idOf(key) == "" {
		// The user may have replied before Telegram confirmed the approval's message.
		if e := s.listening(m); e != nil && (e.message.ID() == 0 || e.message.ID() == m.ReplyTo) {
			return s.current(ctx, m, e)
		}
		return nil, orchestrator.Approval{}, nil
	}
	approval, err := s.find(ctx, m.Conversation, idOf(key))
	switch {
	case errors.Is(err, orchestrator.ErrNoApproval), errors.Is(err, orchestrator.ErrElsewhere):
		return nil, approval, nil
	case err != nil:
		return nil, approval, err
	}
	e, err := s.enter(ctx, approval)
	return e, approval, err
}

// current returns the current state of an entry's approval. It returns nil if e is nil, if the approval is closed, or
// if the user may not decide it.
func (s *Screen) current(ctx context.Context, m Message, e *entry) (*entry, orchestrator.Approval, error) {
	if e == nil {
		return nil, orchestrator.Approval{}, nil
	}
	approval, err := s.service.Approval(ctx, e.id, e.conv)
	if err != nil || approval.State != orchestrator.ApprovalOpen || !slices.Contains(approval.Approvers, m.User) {
		return nil, approval, err
	}
	return e, approval, nil
}

// listening returns the approval for which the user pressed a button that asks for text, or nil. If there are several
// such approvals, it returns the one with the last press. The caller must have called loadOpen for the conversation.
func (s *Screen) listening(m Message) (last *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		accepts := e.message.To() == m.Conversation && e.open() && e.draft.accepts(m.press())
		if accepts && (last == nil || e.draft.Until.After(last.draft.Until)) {
			last = e
		}
	}
	return last
}

// onlyQuestion returns the only open question of a conversation. It returns nil if the message cannot be the answer:
//   - because it is older than the question
//   - because it has a file
//   - because the question accepts only its options, and the message is none of them
//   - because the question asks for a secret
func (s *Screen) onlyQuestion(m Message) (only *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		switch {
		case e.conv != m.Conversation || !e.open() || e.approval.Request != nil:
		case only != nil:
			return nil
		default:
			only = e
		}
	}
	if only == nil || len(m.Files) > 0 || only.message.ID() == 0 ||
		!m.Arrived.After(only.approval.Asked) {
		return nil
	}
	q := only.approval.Questions[only.draft.Question]
	if hasSecret(only.approval.Questions) || !takesWords(q) && optionOf(q, m.Text) < 0 {
		return nil
	}
	return only
}

func hasSecret(questions []cli.Question) bool {
	return slices.ContainsFunc(questions, func(q cli.Question) bool { return q.Secret })
}

// optionOf returns the index of the option with the given label, or -1.
func optionOf(q cli.Question, text string) int {
	return slices.IndexFunc(q.Options, func(o cli.Option) bool {
		return strings.EqualFold(strings.TrimSpace(o.Label), strings.TrimSpace(text))
	})
}

// denyWithReason denies the request if a user was asked for the reason of a denial, and the message is this reason. If
// the request is already closed, denyWithReason does nothing, and the message becomes a prompt.
func (s *Screen) denyWithReason(ctx context.Context, m Message, e *entry, a orchestrator.Approval, d draft) Outcome {
	denied := a.State == orchestrator.ApprovalDenied && a.By == m.User && !d.changedBy(m.Updates)
	isReason := d.accepts(m.press()) || d.acceptsReply(m)
	switch {
	case denied, !isReason && a.WhyClosed(s.o.Now()) != nil:
		return Outcome{}
	case !isReason:
		return Outcome{Handling: MarkHandled, Text: s.view(a).whyNoText(d)}
	case a.Request.Deaf:
		return s.denyAndPrompt(ctx, m, e, a)
	}
	denial := orchestrator.Verdict{Choice: orchestrator.Deny, Reason: m.Text, Files: m.Files}
	o, decided := s.decideByReply(ctx, m, e, a, denial)
	o.Guessed = decided && m.ReplyTo == 0
	return o
}

// denyAndPrompt denies a request of an agent that does not accept a reason. The caller must then send the reason to the
// agent as a prompt. If ductor crashes before the caller has sent the prompt, the next process finds the denial and
// sends the prompt.
func (s *Screen) denyAndPrompt(ctx context.Context, m Message, e *entry, a orchestrator.Approval) Outcome {
	again := false
	_, err := s.saveDraft(ctx, e, func(d *draft) bool {
		again = d.applied(m.Updates)
		return !again
	})
	if err != nil {
		s.o.Log.Error("keep a reason", "updates", m.Updates, "err", err)
		return Outcome{Handling: MarkHandled, Text: s.o.Lang.Of(m.Conversation.Chat).Text("approval.not-kept")}
	}
	// by.Updates stays empty: the caller marks the update as handled when it submits the prompt.
	by := orchestrator.Press{Conversation: a.Conversation, Person: m.User, Role: m.Role}
	now, err := s.decide(ctx, e, a, by, m.ReplyTo, orchestrator.Verdict{Choice: orchestrator.Deny, Reason: m.Text})
	stands := again || errors.Is(err, orchestrator.ErrNotTold)
	if err != nil && !(stands && now.State == orchestrator.ApprovalDenied && now.By == m.User) {
		return s.notDecided(m, now, err)
	}
	return Outcome{Text: "[You asked to use " + render.ShortLine(a.Request.Tool, render.NameLimit) + ": " +
		render.ShortLine(a.Request.Title, answerMax) + ". That was denied:]\n"}
}

// decideByReply decides an approval. The same transaction marks the message as handled. decideByReply returns false if
// no decision was made.
func (s *Screen) decideByReply(ctx context.Context, m Message, e *entry, a orchestrator.Approval,
	v orchestrator.Verdict) (Outcome, bool) {
	by := orchestrator.Press{Conversation: a.Conversation, Person: m.User, Role: m.Role, Updates: m.Updates}
	if now, err := s.decide(ctx, e, a, by, m.ReplyTo, v); err != nil {
		return s.notDecided(m, now, err), false
	}
	return Outcome{Handling: Ignore}, true
}

// notDecided returns an outcome with a text that explains to the user why no decision was made.
func (s *Screen) notDecided(m Message, now orchestrator.Approval, err error) Outcome {
	p := s.o.Lang.Of(m.Conversation.Chat)
	if errors.Is(err, orchestrator.ErrShutdown) {
		return Outcome{Handling: Ignore}
	}
	text, err := s.refusal(p, now.State, err)
	if err != nil {
		s.o.Log.Error("decide by a reply", "updates", m.Updates, "err", err)
		text = p.Text("common.failed")
	}
	return Outcome{Handling: MarkHandled, Text: text}
}

func (s *Screen) answerQuestion(ctx context.Context, m Message, e *entry, a orchestrator.Approval, d draft) Outcome {
	secret := hasSecret(a.Questions)
	if secret {
		m.Text, m.Files = m.Plain, nil
	}
	if err := a.WhyClosed(s.o.Now()); err != nil {
		if !secret && !d.accepts(m.press()) {
			return Outcome{}
		}
		text, _ := s.refusal(s.o.Lang.Of(m.Conversation.Chat), a.State, err)
		return Outcome{Handling: MarkHandled, Text: text, Secret: secret}
	}
	out := s.answer(ctx, m, e, a, d)
	out.Secret = secret
	return out
}

// answer adds a typed answer to the draft. If all questions then have an answer, it sends the answers as the decision.
func (s *Screen) answer(ctx context.Context, m Message, e *entry, a orchestrator.Approval, d draft) Outcome {
	p := s.o.Lang.Of(m.Conversation.Chat)
	q := a.Questions[d.Question]
	option := optionOf(q, m.Text)
	if option < 0 && !takesWords(q) {
		return Outcome{Handling: MarkHandled, Text: p.Text("approval.no-words")}
	}
	last := false
	d, err := s.saveDraft(ctx, e, func(d *draft) bool { // do not show the draft yet, because the decision may follow
		if d.applied(m.Updates) {
			last = d.Question+1 == len(a.Questions)
			return false
		}
		if option >= 0 && !slices.Contains(d.Picks[d.Question], option) {
			d.toggle(q, option)
		} else if option < 0 {
			d.say(q, m.Text, m.Files)
		}
		d.View = ""
		last = d.forward(a)
		return true
	})
	switch {
	case err != nil:
		s.o.Log.Error("keep an answer", "updates", m.Updates, "err", err)
		return Outcome{Handling: MarkHandled, Text: p.Text("approval.not-kept")}
	case last && d.complete(a.Questions):
		o, _ := s.decideByReply(ctx, m, e, a, d.verdict(a.Questions))
		return o
	}
	s.push(e)
	return Outcome{Handling: MarkHandled}
}
