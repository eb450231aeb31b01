package card

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The timing of a running card.
const (
	secondAfter   = 300 * time.Millisecond // the first text is often short, so the second call comes soon
	firstTyping   = 600 * time.Millisecond // earlier answers need no typing indicator
	typingEvery   = 4500 * time.Millisecond
	typingQuiet   = 2 * time.Second // how long visible progress replaces the typing indicator
	snapshotEvery = 2 * time.Second
	slowestRetry  = time.Minute
	ringLasts     = 10 * time.Second
)

// news is a kind of change that the chat does not show yet.
type news int

const (
	noNews     news = iota
	growth          // the answer grew
	urgentNews      // any other change
)

// pace decides when a card makes calls. The card's lock guards it.
type pace struct {
	growing  growing
	interval time.Duration // shortest time between two calls

	news       news
	queued     bool      // the outbox has a call of the card
	calls      int       // number of calls so far
	lastLooked time.Time // when the first message arrived, or the user last decided something
	fails      int       // failed calls since the last successful call
	last       time.Time
	moved      time.Time // time of the last visible event
	typing     time.Time // when to send the next typing indicator

	saved     time.Time // time of the last snapshot, or of the start
	savedPart int       // message of the last snapshot
}

// due returns when the news justify a call.
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
		// Wait for a good moment, but not longer than half an interval.
		if latest := earliest.Add(p.interval / 2); at.After(latest) {
			at = latest
		}
		earliest = at
	}
	return earliest
}

// notBefore returns at, or the time of the next possible call if that is later.
func (p *pace) notBefore(at time.Time) time.Time {
	if next := p.last.Add(p.interval); next.After(at) {
		return next
	}
	return at
}

// addNews records visible news.
func (p *pace) addNews(n news, now time.Time) { p.news, p.moved = max(p.news, n), now }

// callStarted records that a call starts.
func (p *pace) callStarted(now time.Time) {
	if p.calls == 0 {
		p.lastLooked = now
	}
	p.last = now
	p.calls++
}

// callEnded records the result of a call.
func (p *pace) callEnded(err error, now time.Time) {
	p.queued = false
	if err == nil {
		p.fails = 0
		return
	}
	p.fails, p.last, p.news = p.fails+1, now, urgentNews
}

// showTyping reports whether to send the typing indicator now.
func (p *pace) showTyping(now time.Time) bool {
	if now.Before(p.typing) {
		return false
	}
	p.typing = now.Add(typingEvery)
	return now.Sub(p.last) >= typingQuiet
}

// userIsLooking reports whether the user probably looks at the chat, because the first message came with a sound or
// the user decided something a moment ago.
func (p *pace) userIsLooking(now time.Time) bool {
	return p.calls > 0 && now.Sub(p.lastLooked) < ringLasts
}

// snapshot reports whether to store a message's content. After a crash, the next process uses it to mark the message
// as interrupted without losing its text. Up to a few seconds of text may be missing in the snapshot.
func (p *pace) snapshot(part int, now time.Time) bool {
	if now.Sub(p.saved) < snapshotEvery && part == p.savedPart {
		return false
	}
	p.saved, p.savedPart = now, part
	return true
}

// alarm is a timer that can be moved to an earlier time.
type alarm struct {
	timer *time.Timer
	rings time.Time // zero if the alarm is not set
}

// set makes the alarm fire at a time. If the alarm is already set to an earlier time, set does nothing: the card
// checks again when the alarm fires.
func (a *alarm) set(at, now time.Time) {
	if !a.rings.IsZero() && !at.Before(a.rings) {
		return
	}
	a.rings = at
	a.timer.Reset(max(at.Sub(now), 0))
}

// Pacing configures when new text justifies an edit. With the zero value, any text does. Less text than MinChars
// waits for Idle. Characters are Unicode code points.
type Pacing struct {
	MinChars   int           `toml:"min_chars" default:"24" check:"1..4096"`    // shorter text waits for Idle
	MaxChars   int           `toml:"max_chars" default:"600" check:"1..100000"` // longer text is due; 0: no limit
	Idle       time.Duration `toml:"idle" default:"400ms" check:"0..1m"`        // any text is due after this silence
	Sentences  bool          `toml:"sentence_ends" default:"true"`              // text is due at the end of a sentence
	Paragraphs bool          `toml:"paragraph_ends" default:"true"`             // text is due at the end of a paragraph
}

// Check implements config.checker.
func (p Pacing) Check(problem func(key, format string, args ...any)) {
	if p.MaxChars < p.MinChars {
		problem("max_chars", "%d is less than min_chars, which is %d", p.MaxChars, p.MinChars)
	}
}

// growing is new text that the chat does not show yet.
type growing struct {
	Pacing
	chars int
	end   string // the last bytes of the text
	last  time.Time
	shown bool // the chat showed text before
}

// endBytes is how many of the last bytes due searches for the end of a sentence or paragraph. The limit makes due
// equally fast for any amount of text.
const endBytes = 32

func (g *growing) add(text string, at time.Time) {
	g.chars += utf8.RuneCountInString(text)
	g.end += text[max(0, len(text)-endBytes):]
	g.end = g.end[max(0, len(g.end)-endBytes):]
	g.last = at
}

// show clears the text after the chat has shown it.
func (g *growing) show() {
	g.shown = g.shown || g.chars > 0
	g.chars, g.end = 0, ""
}

// due returns when the text must be shown even if it does not grow any more. It returns false if there is no text.
func (g *growing) due() (at time.Time, ok bool) {
	if g.ripe() {
		return g.last, g.chars > 0
	}
	return g.last.Add(g.Idle), g.chars > 0
}

// ripe reports whether to show the text now. The first text of a turn is shown early, because it tells users that the
// agent is working.
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

// endsSentence reports whether s ends with the punctuation of a sentence. Closing quotes, brackets, emphasis or
// spaces may follow.
func endsSentence(s string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, " \t\n\"'”’»)]*_`"))
	return strings.ContainsRune(".!?…:。！？", last)
}

// endsParagraph reports whether s ends with a blank line.
func endsParagraph(s string) bool {
	blank := s[len(strings.TrimRight(s, " \t\r\n")):]
	return strings.Count(blank, "\n") >= 2
}
