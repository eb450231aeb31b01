package card

import "time"

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
	pacer    Pacer
	interval time.Duration // between two calls

	news   news
	queued bool      // a call waits in the outbox or is being made
	calls  int       // made so far
	first  time.Time // when the first of them was
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
	if at, ok := p.pacer.Due(); ok && p.news != urgentNews && at.After(earliest) {
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
		p.first = now
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

// rang says that the first message came a moment ago: it made the sound.
func (p *pace) rang(now time.Time) bool { return p.calls > 0 && now.Sub(p.first) < ringLasts }

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
