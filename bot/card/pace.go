package card

import (
	"strings"
	"time"
	"unicode/utf8"
)

const (
	secondAfter   = 300 * time.Millisecond // delay of the second request; the first text is often only a word
	firstTyping   = 600 * time.Millisecond // delay of the typing indicator; a faster answer needs none
	typingEvery   = 4500 * time.Millisecond
	typingQuiet   = 2 * time.Second // pause of the typing indicator after an edit
	snapshotEvery = 2 * time.Second
	slowestRetry  = time.Minute
	ringLasts     = 10 * time.Second
)

// news is the most important kind of change that the chat does not show yet.
type news int

const (
	noNews     news = iota
	growth          // the answer became longer
	urgentNews      // the card changed, and the change must not wait for more text
)

// pace decides when a card makes its requests to Telegram. The card's mu guards it.
type pace struct {
	growing  growing
	interval time.Duration

	news       news
	queued     bool // true if a request of the card is waiting in the outbox
	calls      int
	lastLooked time.Time // last time at which the user was certainly looking at the chat
	fails      int       // number of failed requests since the last successful one
	last       time.Time
	moved      time.Time // time of the last visible event
	typing     time.Time // when to send the next typing indicator

	saved     time.Time // time of the last snapshot; before the first snapshot, the start of the card
	savedPart int
}

// due returns when the card must show the pending change in the chat.
func (p *pace) due() time.Time {
	var earliest time.Time
	switch {
	case p.fails > 0:
		earliest = p.last.Add(min(p.interval<<min(p.fails, 10), slowestRetry))
	case p.calls == 0:
		return time.Time{}
	case p.calls == 1:
		earliest = p.last.Add(min(secondAfter, p.interval))
	default:
		earliest = p.last.Add(p.interval)
	}
	if at, ok := p.growing.due(); ok && p.news != urgentNews && at.After(earliest) {
		// Delay the edit until a sentence ends or the agent pauses, but not longer than half an interval.
		if latest := earliest.Add(p.interval / 2); at.After(latest) {
			at = latest
		}
		earliest = at
	}
	return earliest
}

// notBefore returns the planned time. If the next request is allowed only after this time, it returns the time at which
// the request is allowed.
func (p *pace) notBefore(planned time.Time) time.Time {
	if next := p.last.Add(p.interval); next.After(planned) {
		return next
	}
	return planned
}

func (p *pace) addNews(n news, now time.Time) { p.news, p.moved = max(p.news, n), now }

func (p *pace) callStarted(now time.Time) {
	if p.calls == 0 {
		p.lastLooked = now
	}
	p.last = now
	p.calls++
}

func (p *pace) callEnded(err error, now time.Time) {
	p.queued = false
	if err == nil {
		p.fails = 0
		return
	}
	p.fails, p.last, p.news = p.fails+1, now, urgentNews
}

func (p *pace) showTyping(now time.Time) bool {
	if now.Before(p.typing) {
		return false
	}
	p.typing = now.Add(typingEvery)
	return now.Sub(p.last) >= typingQuiet
}

// userIsLooking reports whether the user probably still looks at the chat. This is the case for a few seconds after the
// first message has notified the user, or after the user has decided about an approval.
func (p *pace) userIsLooking(now time.Time) bool {
	return p.calls > 0 && now.Sub(p.lastLooked) < ringLasts
}

// snapshot reports whether the card must store the content of a message now. After a crash, the next process needs the
// content to mark the message as interrupted without losing text. A message has at most one snapshot in two seconds, so
// its newest text may be missing after a crash.
func (p *pace) snapshot(part int, now time.Time) bool {
	if now.Sub(p.saved) < snapshotEvery && part == p.savedPart {
		return false
	}
	p.saved, p.savedPart = now, part
	return true
}

// alarm is a timer that can be set to an earlier time.
type alarm struct {
	timer *time.Timer
	rings time.Time // zero if the timer is not running
}

// set makes the timer fire at the given time. If the timer is already set to an earlier time, set does nothing. The
// card calls set again when the timer fires.
func (a *alarm) set(at, now time.Time) {
	if !a.rings.IsZero() && !at.Before(a.rings) {
		return
	}
	a.rings = at
	a.timer.Reset(max(at.Sub(now), 0))
}

// Pacing defines how much new text is worth an edit. With the zero value, the card shows any text immediately. Lengths
// are in Unicode code points.
type Pacing struct {
	MinChars   int           `toml:"min_chars" default:"24" check:"1..4096"`    // show shorter text only after Idle
	MaxChars   int           `toml:"max_chars" default:"600" check:"1..100000"` // show longer text at once; 0: no limit
	Idle       time.Duration `toml:"idle" default:"400ms" check:"0..1m"`        // show any text after this pause
	Sentences  bool          `toml:"sentence_ends" default:"true"`              // show text at the end of a sentence
	Paragraphs bool          `toml:"paragraph_ends" default:"true"`             // show text at the end of a paragraph
}

// Check implements the checker interface of package config.
func (p Pacing) Check(problem func(key, format string, args ...any)) {
	if p.MaxChars < p.MinChars {
		problem("max_chars", "%d is less than min_chars, which is %d", p.MaxChars, p.MinChars)
	}
}

// growing describes new text of the answer that the chat does not show yet.
type growing struct {
	Pacing
	chars int
	end   string // last bytes of the text, at most endBytes
	last  time.Time
	shown bool // true if the chat already shows other text of the turn
}

// endBytes is the maximum length of growing.end, in which ripe searches for the end of a sentence or paragraph. The
// limit keeps this search fast for long texts.
const endBytes = 32

func (g *growing) add(text string, at time.Time) {
	g.chars += utf8.RuneCountInString(text)
	g.end += text[max(0, len(text)-endBytes):]
	g.end = g.end[max(0, len(g.end)-endBytes):]
	g.last = at
}

func (g *growing) show() {
	g.shown = g.shown || g.chars > 0
	g.chars, g.end = 0, ""
}

// due returns when the card must show the new text if the agent adds nothing to it. It returns false if there is no new
// text.
func (g *growing) due() (at time.Time, ok bool) {
	if g.ripe() {
		return g.last, g.chars > 0
	}
	return g.last.Add(g.Idle), g.chars > 0
}

// ripe reports whether the new text is worth an edit now. The first text of a turn is worth an edit even if it ends
// inside a sentence, because it shows users that the agent is working.
func (g *growing) ripe() bool {
	switch {
	case g.MaxChars > 0 && g.chars >= g.MaxChars:
		return true
	case g.chars < g.MinChars:
		return false
	default:
		return !g.shown || g.Sentences && endsSentence(g.end) || g.Paragraphs && endsParagraph(g.end)
	}
}

// endsSentence reports whether s ends with a punctuation mark such as a period. It ignores quotes, brackets, Markdown
// emphasis and spaces after the punctuation mark.
func endsSentence(s string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, " \t\n\"'”’»)]*_`"))
	return strings.ContainsRune(".!?…:。！？", last)
}

// endsParagraph reports whether s ends with a blank line.
func endsParagraph(s string) bool {
	blank := s[len(strings.TrimRight(s, " \t\r\n")):]
	return strings.Count(blank, "\n") >= 2
}
