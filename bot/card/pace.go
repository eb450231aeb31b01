package card

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The rhythm of a running card.
const (
	secondAfter   = 300 * time.Millisecond // the first text is often short, so the next comes soon
	firstTyping   = 600 * time.Millisecond // an answer that begins sooner needs no typing before it
	typingEvery   = 4500 * time.Millisecond
	typingQuiet   = 2 * time.Second // text that just moved says as much as typing does
	snapshotEvery = 2 * time.Second
	slowestRetry  = time.Minute
	ringLasts     = 10 * time.Second
)

// news is what the chat does not show yet.
type news int

const (
	noNews     news = iota
	growth          // of the answer
	urgentNews      // more than growth
)

// pace decides when a card makes a call. The lock of the card guards it.
type pace struct {
	growing  growing
	interval time.Duration // between two calls

	news   news
	queued bool      // a call waits in the outbox or is being made
	calls  int       // made so far
	seen   time.Time // when the user last looked here for sure: the first message came, or the user decided something
	fails  int       // since the last call that succeeded
	last   time.Time
	moved  time.Time // the last event that users can see
	typing time.Time // when to show typing next

	saved     time.Time // the last snapshot, or the start
	savedPart int       // and its message
}

// due is when the news are worth a call.
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
		// A good moment is worth waiting for, but text that flows without one is shown all the same.
		if latest := earliest.Add(p.interval / 2); at.After(latest) {
			at = latest
		}
		earliest = at
	}
	return earliest
}

// notBefore is at, or when the next call is possible if that is later.
func (p *pace) notBefore(at time.Time) time.Time {
	if next := p.last.Add(p.interval); next.After(at) {
		return next
	}
	return at
}

// add records news that users can see.
func (p *pace) add(n news, now time.Time) { p.news, p.moved = max(p.news, n), now }

// called records that a call is made.
func (p *pace) called(now time.Time) {
	if p.calls == 0 {
		p.seen = now
	}
	p.last = now
	p.calls++
}

// made records the result of a call.
func (p *pace) made(err error, now time.Time) {
	p.queued = false
	if err == nil {
		p.fails = 0
		return
	}
	p.fails, p.last, p.news = p.fails+1, now, urgentNews
}

// showTyping says whether to show typing now.
func (p *pace) showTyping(now time.Time) bool {
	if now.Before(p.typing) {
		return false
	}
	p.typing = now.Add(typingEvery)
	return now.Sub(p.last) >= typingQuiet
}

// looks reports whether the user is looking at the chat: a moment ago the first message came with a sound, or the user decided something.
func (p *pace) looks(now time.Time) bool { return p.calls > 0 && now.Sub(p.seen) < ringLasts }

// snapshot says whether to store what a message shows, so that after a crash it can be marked as interrupted without
// losing its text. The last snapshot may miss what changed in the last seconds.
func (p *pace) snapshot(part int, now time.Time) bool {
	if now.Sub(p.saved) < snapshotEvery && part == p.savedPart {
		return false
	}
	p.saved, p.savedPart = now, part
	return true
}

// alarm is a timer that can be set to an earlier moment.
type alarm struct {
	timer *time.Timer
	rings time.Time // zero if it is not set
}

// set makes the alarm ring at a moment, or earlier if it is set to an earlier one: many events come before it rings, and
// then the card looks again.
func (a *alarm) set(at, now time.Time) {
	if !a.rings.IsZero() && !at.Before(a.rings) {
		return
	}
	a.rings = at
	a.timer.Reset(max(at.Sub(now), 0))
}

// Pacing says when grown text is worth an edit; the zero value always. Characters are Unicode code points.
type Pacing struct {
	MinChars   int           // less than this waits for Idle
	MaxChars   int           // this much is due at once; 0 is no such limit
	Idle       time.Duration // silence after which whatever there is is due
	Sentences  bool          // from MinChars on, the end of a sentence is due at once
	Paragraphs bool          // likewise the end of a paragraph
}

// growing is text that was added and is not shown.
type growing struct {
	Pacing
	chars int
	end   string // of what was added, for an end of a sentence or of a paragraph
	last  time.Time
	shown bool // text was shown before
}

// endBytes is how far an end is looked for, so that due costs the same for any amount of text.
const endBytes = 32

func (g *growing) add(text string, at time.Time) {
	g.chars += utf8.RuneCountInString(text)
	g.end += text[max(0, len(text)-endBytes):]
	g.end = g.end[max(0, len(g.end)-endBytes):]
	g.last = at
}

// show forgets the text, which is shown now.
func (g *growing) show() {
	g.shown = g.shown || g.chars > 0
	g.chars, g.end = 0, ""
}

// due says when the text is worth an edit if nothing more comes; false where there is none.
func (g *growing) due() (at time.Time, ok bool) {
	if g.ripe() {
		return g.last, g.chars > 0
	}
	return g.last.Add(g.Idle), g.chars > 0
}

// ripe says whether the text need not wait for more. The first text of a turn is due early: it tells users that the agent is
// at work.
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

// endsSentence looks behind closing quotes, brackets, emphasis and spaces for the mark of an end.
func endsSentence(s string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, " \t\n\"'”’»)]*_`"))
	return strings.ContainsRune(".!?…:。！？", last)
}

// endsParagraph says whether s ends in a blank line.
func endsParagraph(s string) bool {
	blank := s[len(strings.TrimRight(s, " \t\r\n")):]
	return strings.Count(blank, "\n") >= 2
}
