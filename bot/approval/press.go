package approval

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// Press describes a button that a user pressed.
type Press struct {
	By      orchestrator.Press
	Message int // ID of the message with the button
}

// Press handles a button of this package. data is the button's data without the action. Press returns a short text that
// Telegram shows after the press. If the user asked for the full text of the request, Press also returns the full text,
// which the caller must send as replies.
//
// Nothing changes if the press comes too late, from another conversation, or from a user who may not decide. The short
// text then explains the reason.
func (s *Screen) Press(ctx context.Context, p Press, data string) (answer string, fullText []render.Text, err error) {
	say := s.o.Lang.Of(p.By.Conversation.Chat)
	pressed, ok := parseButtonData(data)
	if !ok {
		return say.Text("common.stale-button"), nil, nil
	}
	approval, err := s.find(ctx, p.By.Conversation, pressed.id)
	switch {
	case err != nil:
		answer, err = s.refusal(say, "", err)
		return answer, nil, err
	case subtle.ConstantTimeCompare([]byte(approval.Nonce), []byte(pressed.nonce)) != 1:
		return say.Text("common.stale-button"), nil, nil
	case !slices.Contains(approval.Approvers, p.By.Person):
		return s.notApprover(say, approval), nil, nil
	}
	p.By.Conversation = approval.Conversation
	e, err := s.enter(ctx, approval)
	if err != nil {
		return "", nil, err
	}
	if err := s.adoptMessage(ctx, e, p.Message, pressed.op); err != nil {
		return "", nil, err
	}
	if pressed.op == opFullText && approval.WhyClosed(s.o.Now()) == nil {
		return s.openFullText(ctx, e, approval, p)
	}
	answer, err = s.pressed(ctx, e, approval, p, pressed)
	return answer, nil, err
}

// pressed handles a button. The caller has checked that the user may decide.
func (s *Screen) pressed(ctx context.Context, e *entry, a orchestrator.Approval, p Press,
	pressed buttonData) (string, error) {
	if choice, decides := pressed.op.choice(); decides {
		if why := s.unseen(e, a, choice); why != "" {
			return why, nil
		}
		return s.decideByPress(ctx, e, a, p, orchestrator.Verdict{Choice: choice})
	}
	if over := a.WhyClosed(s.o.Now()); over != nil {
		s.correct(e, a, p.Message)
		return s.refusal(s.o.Lang.Of(e.conv.Chat), a.State, over)
	}
	return s.advance(ctx, e, a, p, pressed)
}

// decide passes the user's decision to the service. The service then calls Show for the approval. If the service does
// not accept the decision, decide shows the draft again.
//
// messageID is the message with the pressed button, or the message to which the user replied. If this is an older
// message of the approval, decide also edits the older message.
func (s *Screen) decide(ctx context.Context, e *entry, a orchestrator.Approval, by orchestrator.Press, messageID int,
	v orchestrator.Verdict) (orchestrator.Approval, error) {
	now, err := s.service.Decide(ctx, a.ID, a.Nonce, by, v)
	s.correct(e, now, messageID)
	if err != nil {
		s.push(e)
	}
	return now, err
}

// decideByPress calls decide, and returns the short text that Telegram shows after the press.
func (s *Screen) decideByPress(ctx context.Context, e *entry, a orchestrator.Approval, p Press,
	v orchestrator.Verdict) (string, error) {
	say := s.o.Lang.Of(e.conv.Chat)
	now, err := s.decide(ctx, e, a, p.By, p.Message, v)
	switch {
	case err != nil:
		return s.refusal(say, now.State, err)
	case now.State == orchestrator.ApprovalAllowed:
		return say.Text("approval.is-allowed"), nil
	case now.State == orchestrator.ApprovalAnswered:
		return say.Text("approval.is-sent"), nil
	case now.Request == nil:
		return say.Text("approval.is-unanswered"), nil
	}
	return say.Text("approval.is-denied"), nil
}

// refusal returns a text that tells the user why the service did not accept a decision. state is the current state of
// the approval. If the error is unexpected, refusal returns err.
func (s *Screen) refusal(p lang.Printer, state orchestrator.ApprovalState, err error) (string, error) {
	for _, r := range []struct {
		is   error
		text lang.Key
	}{
		{orchestrator.ErrNoApproval, "common.stale-button"},
		{orchestrator.ErrElsewhere, "common.stale-button"},
		{orchestrator.ErrBadChoice, "common.stale-button"},
		{orchestrator.ErrNotApprover, "approval.not-approver"},
		{orchestrator.ErrApprovalExpired, "approval.too-late"},
		{orchestrator.ErrApprovalWithdrawn, "approval.agent-gone"},
		{orchestrator.ErrNotTold, "approval.not-told"},
		{orchestrator.ErrPathMoved, "approval.path-moved"},
		{orchestrator.ErrNotBrought, "approval.not-brought"},
		{orchestrator.ErrApprovalDecided, decidedBefore(state)},
	} {
		if errors.Is(err, r.is) {
			return p.Text(r.text), nil
		}
	}
	return "", err
}

func decidedBefore(state orchestrator.ApprovalState) lang.Key {
	switch state {
	case orchestrator.ApprovalAllowed:
		return "approval.allowed-before"
	case orchestrator.ApprovalAnswered:
		return "approval.answered-before"
	}
	return "approval.denied-before"
}

// unseen returns a text for the user if no user may allow the request in the chat, or if the user must read the full
// text before this choice. Otherwise it returns "".
func (s *Screen) unseen(e *entry, a orchestrator.Approval, choice orchestrator.Choice) string {
	p := s.o.Lang.Of(e.conv.Chat)
	if a.State != orchestrator.ApprovalOpen || a.Request == nil || choice == orchestrator.Deny {
		return ""
	}
	s.mu.Lock()
	opened := e.draft.Opened
	s.mu.Unlock()
	switch v := s.view(a); {
	case v.whyShut() != "":
		return p.Text("approval.nothing-shown")
	case !opened && v.unreadFor(choice):
		return p.Text("approval.full-text-first")
	}
	return ""
}

// openFullText records that the user has read the full text, and returns the text. It returns no text if a user presses
// the button again.
func (s *Screen) openFullText(ctx context.Context, e *entry, a orchestrator.Approval,
	p Press) (string, []render.Text, error) {
	again := false
	_, err := s.changeDraft(ctx, e, func(d *draft) bool {
		if d.applied(p.By.Updates) { // the previous process handled the press before it crashed
			return false
		}
		again = d.Opened
		d.Opened = true
		return !again
	})
	switch {
	case err != nil:
		return "", nil, err
	case again:
		return s.o.Lang.Of(e.conv.Chat).Text("approval.full-text-sent"), nil, nil
	}
	return "", s.view(a).fullText(), nil
}

// advance handles a button that changes the draft. If all questions then have an answer, advance sends the answers as
// the decision.
func (s *Screen) advance(ctx context.Context, e *entry, a orchestrator.Approval, p Press,
	pressed buttonData) (string, error) {
	var answer lang.Key
	var complete bool
	text := message.Expect(p.By, s.o.Now())
	if pressed.op.asksForText() { // the next message belongs to this request, not to an earlier question
		if err := text.Save(ctx, s.o.Journal, e.message.To(), 0, keyPrefix+string(e.id)); err != nil {
			return "", err
		}
	}
	d, err := s.saveDraft(ctx, e, func(d *draft) bool {
		if d.applied(p.By.Updates) { // the previous process handled the press before it crashed
			complete = pressed.op == opNext || pressed.op == opOption && !a.Questions[d.Question].Multi
			return false
		}
		var did effect
		did, answer = d.press(a, text, pressed)
		complete = did == answeredLast
		return did != nothing
	})
	if err == nil && complete && d.complete(a.Questions) {
		return s.decideByPress(ctx, e, a, p, d.verdict(a.Questions))
	}
	s.push(e)
	if answer == "" {
		return "", err
	}
	return s.o.Lang.Of(e.conv.Chat).Text(answer), err
}
