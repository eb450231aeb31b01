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
	// sendEarly sends a notice that is not stored yet; see Letters.
	sendEarly(to orchestrator.ConversationID, replyTo int, text func() (string, tgapi.Keyboard), sent func(message int)) early
}

// early is a letter that leaves at once, and is stored beside what caused it only if it has not begun to leave by then.
type early interface {
	// keep gives the letter as it is to be stored, with what it says should ductor be restarted before it leaves; false
	// when it has begun to leave. Every keep that gives a letter is followed by kept.
	keep(text string, k tgapi.Keyboard) (orchestrator.Notice, bool)
	// kept says whether the letter was stored.
	kept(stored bool)
}

// earlyLetter is the one implementation of early. It is sent at most once: from keep on it leaves only after it is known
// whether it was stored, and then its steps are recorded as those of any letter.
type earlyLetter struct {
	letters *Letters
	name    string // what followers know it by, and the stored letter
	text    func() (string, tgapi.Keyboard)
	to      orchestrator.ConversationID
	replyTo int

	mu      sync.Mutex
	begun   bool
	id      int64
	storing chan struct{} // closed once id is known, or it is known that there is none; nil before keep
	settled bool          // storing is closed
}

// sendEarly sends a letter that is not stored yet. text is asked for what it says when it leaves; sent is told the
// message it became, unless ductor is restarted before. Neither may block.
func (l *Letters) sendEarly(to orchestrator.ConversationID, replyTo int, text func() (string, tgapi.Keyboard), sent func(message int)) early {
	e := &earlyLetter{letters: l, name: l.followers.add(sent), text: text, to: to, replyTo: replyTo}
	l.mu.Lock()
	l.early[e.name] = e
	l.mu.Unlock()
	d := &delivery{letters: l, to: to, early: e}
	d.letter.Conversation = to
	d.post()
	return e
}

func (l *Letters) earlyOf(name string) *earlyLetter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.early[name]
}

func (e *earlyLetter) keep(text string, k tgapi.Keyboard) (orchestrator.Notice, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.storing != nil {
		return orchestrator.Notice{}, false
	}
	letter, err := e.letter(text, k)
	if err != nil {
		e.letters.log.Error("compose letter", "err", err)
		return orchestrator.Notice{}, false
	}
	e.storing = make(chan struct{})
	return letter, true
}

func (e *earlyLetter) letter(text string, k tgapi.Keyboard) (orchestrator.Notice, error) {
	return letterOf(e.to, letterContent{Text: shortened(text), Keyboard: k, ReplyTo: e.replyTo, Follow: e.name})
}

func (e *earlyLetter) kept(stored bool) {
	if !stored {
		e.known(0)
	} // else the letter is found among the pending ones, and its number with it
}

// known takes the number that the letter is stored under; 0 for none.
func (e *earlyLetter) known(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id != 0 {
		e.id = id
	}
	if e.storing != nil && !e.settled {
		e.settled = true
		close(e.storing)
	}
}

// begin is called before each try to send d.
func (e *earlyLetter) begin(ctx context.Context, d *delivery) error {
	e.mu.Lock()
	storing := e.storing
	e.begun = e.begun || storing == nil
	e.mu.Unlock()
	if storing != nil {
		select {
		case <-storing:
		case <-ctx.Done():
			return fmt.Errorf("wait for a letter to be stored: %w", context.Cause(ctx))
		}
	}
	text, k := e.text()
	e.mu.Lock()
	defer e.mu.Unlock()
	d.letter.ID = e.id
	d.content = letterContent{Text: shortened(text), Keyboard: k, ReplyTo: e.replyTo, Follow: e.name}
	return nil
}

// moved takes note of a step of a letter that is not stored. One that did not leave is stored now, so that a restart
// sends it.
func (e *earlyLetter) moved(ctx context.Context, d *delivery, state orchestrator.SendState) error {
	if state != orchestrator.Pending {
		return nil
	}
	text, k := e.text()
	letter, err := e.letter(text, k)
	if err != nil {
		return err
	}
	id, err := e.letters.journal.PostNotice(ctx, letter)
	if err != nil {
		return fmt.Errorf("post a letter: %w", err)
	}
	e.known(id)
	d.letter.ID = id
	return nil
}
