package bot

import (
	"context"
	"fmt"
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// earlyNotices sends notices that are not stored yet.
type earlyNotices interface {
	// sendEarly sends a notice that is not stored yet; see Notices.
	sendEarly(to orchestrator.ConversationID, replyTo int, text func() (string, tgapi.Keyboard), sent func(message int)) early
}

// early is a notice that leaves at once, and is stored beside what caused it only if it has not begun to leave by then.
type early interface {
	// keep gives the notice as it is to be stored, with what it says should ductor be restarted before it leaves; false
	// when it has begun to leave. Every keep that gives a notice is followed by kept.
	keep(text string, k tgapi.Keyboard) (orchestrator.Notice, bool)
	// kept says whether the notice was stored.
	kept(stored bool)
}

// earlyNotice is the one implementation of early. It is sent at most once: from keep on it leaves only after it is known
// whether it was stored, and then its steps are recorded as those of any notice.
type earlyNotice struct {
	notices *Notices
	name    string // what followers know it by, and the stored notice
	text    func() (string, tgapi.Keyboard)
	to      orchestrator.ConversationID
	replyTo int

	mu      sync.Mutex
	begun   bool
	id      int64
	storing chan struct{} // closed once id is known, or it is known that there is none; nil before keep
	decided bool          // storing is closed
}

// sendEarly sends a notice that is not stored yet. text is asked for what it says when it leaves; sent is told the
// message it became, unless ductor is restarted before. Neither may block.
func (l *Notices) sendEarly(to orchestrator.ConversationID, replyTo int, text func() (string, tgapi.Keyboard), sent func(message int)) early {
	e := &earlyNotice{notices: l, name: l.followers.add(sent), text: text, to: to, replyTo: replyTo}
	l.mu.Lock()
	l.early[e.name] = e
	l.mu.Unlock()
	d := &delivery{notices: l, to: to, early: e}
	d.notice.Conversation = to
	d.post()
	return e
}

func (l *Notices) earlyOf(name string) *earlyNotice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.early[name]
}

func (e *earlyNotice) keep(text string, k tgapi.Keyboard) (orchestrator.Notice, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.storing != nil {
		return orchestrator.Notice{}, false
	}
	notice, err := e.notice(text, k)
	if err != nil {
		e.notices.log.Error("compose notice", "err", err)
		return orchestrator.Notice{}, false
	}
	e.storing = make(chan struct{})
	return notice, true
}

func (e *earlyNotice) notice(text string, k tgapi.Keyboard) (orchestrator.Notice, error) {
	return noticeOf(e.to, noticeContent{Text: shortened(text), Keyboard: k, ReplyTo: e.replyTo, Follow: e.name})
}

func (e *earlyNotice) kept(stored bool) {
	if !stored {
		e.known(0)
		return
	}
	e.notices.Wake() // which finds it among the pending ones, and its number with it
}

// known takes the number that the notice is stored under; 0 for none.
func (e *earlyNotice) known(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id != 0 {
		e.id = id
	}
	if e.storing != nil && !e.decided {
		e.decided = true
		close(e.storing)
	}
}

// begin is called before each try to send d.
func (e *earlyNotice) begin(ctx context.Context, d *delivery) error {
	e.mu.Lock()
	storing := e.storing
	e.begun = e.begun || storing == nil
	e.mu.Unlock()
	if storing != nil {
		select {
		case <-storing:
		case <-ctx.Done():
			return fmt.Errorf("wait for a notice to be stored: %w", context.Cause(ctx))
		}
	}
	text, k := e.text()
	e.mu.Lock()
	defer e.mu.Unlock()
	d.notice.ID = e.id
	d.content = noticeContent{Text: shortened(text), Keyboard: k, ReplyTo: e.replyTo, Follow: e.name}
	return nil
}

// moved takes note of a step of a notice that is not stored. One that did not leave is stored now, so that a restart
// sends it.
func (e *earlyNotice) moved(ctx context.Context, d *delivery, state orchestrator.SendState) error {
	if state != orchestrator.Pending {
		return nil
	}
	text, k := e.text()
	notice, err := e.notice(text, k)
	if err != nil {
		return err
	}
	id, err := e.notices.journal.PostNotice(ctx, notice)
	if err != nil {
		return fmt.Errorf("post a notice: %w", err)
	}
	e.known(id)
	d.notice.ID = id
	return nil
}
