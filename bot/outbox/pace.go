package outbox

import (
	"time"

	"ductor/orchestrator"
)

// How a rate changes.
const (
	slower       = 1.5 // a refusal while calls come at the rate: they come too often
	littleSlower = 1.1 // a refusal in a burst: the burst is too long
	faster       = 1.15
	slowest      = 10 // times the normal interval
	stepCalls    = 60 // calls without a refusal until the rate recovers by a step
	stepTime     = 15 * time.Minute
	mostCalls    = 32 * stepCalls
)

// pace is the budget of a chat or of the whole bot. It is not safe for concurrent use.
type pace struct {
	normal Rate // the most that the rate recovers to
	bucket *bucket
	debt   float64   // tokens that urgent calls may owe
	silent time.Time // Telegram wants silence until then
	fine   int       // calls since the rate changed, none of them refused
	step   int       // so many of them are a step of recovery
	since  time.Time // when the rate changed
}

func newPace(normal Rate, debt float64, now time.Time) *pace {
	return &pace{normal: normal, debt: debt, bucket: newBucket(normal, now), step: stepCalls, since: now}
}

// resume takes over what was learned before.
func (p *pace) resume(l orchestrator.SendRate, now time.Time) {
	p.silent = now.Add(silenceOf(l, now))
	p.set(Rate{
		Every: min(max(l.Every, p.normal.Every), slowest*p.normal.Every),
		Burst: min(max(l.Burst, 1), p.normal.Burst),
	}, now)
}

// silenceOf is how long the silence of a rate lasts. Where the clock was set back since, it begins anew: it must not last
// until the moment that the wrong clock named.
func silenceOf(l orchestrator.SendRate, now time.Time) time.Duration {
	if now.Before(l.Told) {
		return max(l.Until.Sub(l.Told), 0)
	}
	return max(l.Until.Sub(now), 0)
}

// learned is what resume takes over after a restart.
func (p *pace) learned(chat int64, now time.Time) orchestrator.SendRate {
	return orchestrator.SendRate{Chat: chat, Every: p.bucket.rate.Every, Burst: p.bucket.rate.Burst, Until: p.silent, Told: now}
}

func (p *pace) set(r Rate, now time.Time) {
	p.fine, p.since = 0, now
	p.bucket.set(r, now)
}

// reserve is how many tokens a priority leaves to those before it.
func (p *pace) reserve(priority Priority) int {
	share := 0
	switch priority {
	case Streaming, Aside, Preview:
		share = max(1, p.bucket.rate.Burst/4)
	case Housekeeping:
		share = max(1, p.bucket.rate.Burst/3)
	case Sign:
		share = p.bucket.rate.Burst / 2
	}
	return min(share, p.bucket.rate.Burst-1)
}

// What is urgent does not wait longer than patience for its token: it borrows one, of which so many may be owed.
const (
	patience = 900 * time.Millisecond
	chatDebt = 2
	botDebt  = 30
)

// wait is how long the budget keeps back a call of a priority that has waited for so long.
func (p *pace) wait(now time.Time, priority Priority, waited time.Duration) time.Duration {
	if d := p.silent.Sub(now); d > 0 {
		return d
	}
	have := p.bucket.have(now)
	wait := p.timeUntil(float64(1+p.reserve(priority)), have)
	if wait <= 0 {
		return 0
	}
	if priority == Urgent {
		borrowed := p.timeUntil(1-p.debt, have)
		wait = min(wait, max(patience-waited, borrowed))
	}
	return wait
}

// timeUntil is how long the bucket takes from have tokens to want; zero when it has them. It is rounded up, so
// that the bucket has the token then.
func (p *pace) timeUntil(want, have float64) time.Duration {
	if want <= have {
		return 0
	}
	return time.Duration((want-have)*float64(p.bucket.rate.Every)) + time.Microsecond
}

// take spends the token of a call.
func (p *pace) take(now time.Time) { p.bucket.add(now, -1) }

// giveBack returns the token of a call that was not made.
func (p *pace) giveBack(now time.Time) { p.bucket.add(now, 1) }

// betweenEdits is how far apart streaming edits are: further while less than half of the burst is left, so that it
// refills.
func (p *pace) betweenEdits(now time.Time) time.Duration {
	if p.bucket.have(now) < float64(p.bucket.rate.Burst)/2 {
		return 2 * p.bucket.rate.Every
	}
	return p.bucket.rate.Every
}

// accepted counts a call that was not refused. It says whether the rate recovers by a step.
func (p *pace) accepted(now time.Time) bool {
	if p.bucket.rate == p.normal {
		return false
	}
	p.fine++
	if p.fine < p.step && now.Sub(p.since) < stepTime {
		return false
	}
	p.set(Rate{
		Every: max(time.Duration(float64(p.bucket.rate.Every)/faster), p.normal.Every),
		Burst: min(p.bucket.rate.Burst+1, p.normal.Burst),
	}, now)
	return true
}

// refused makes the pace silent for as long as Telegram wants, and slower.
func (p *pace) refused(now time.Time, after time.Duration) {
	until := now.Add(after)
	if now.Before(p.silent) { // another call was on its way: the rate has changed for that refusal already
		if until.After(p.silent) {
			p.silent = until
		}
		return
	}
	if p.bucket.rate != p.normal && p.fine < p.step {
		p.step = min(2*p.step, mostCalls) // the step before was one too many
	}
	left := p.bucket.have(now)
	p.silent = until
	defer p.bucket.drain(now)
	if left < 0 {
		return // the call had borrowed its token: that the rate does not bear it says nothing about the rate
	}
	r := Rate{Every: time.Duration(float64(p.bucket.rate.Every) * slower), Burst: p.bucket.rate.Burst * 3 / 4}
	if left >= 1 {
		// The calls before this one passed, and they were as many as the burst may be.
		r = Rate{Every: time.Duration(float64(p.bucket.rate.Every) * littleSlower), Burst: p.bucket.rate.Burst - int(left) - 1}
	}
	r.Every, r.Burst = min(r.Every, slowest*p.normal.Every), max(r.Burst, 1)
	p.set(r, now)
}

// usual says that the pace knows nothing that a new one would not know.
func (p *pace) usual(now time.Time) bool {
	return p.bucket.rate == p.normal && !now.Before(p.silent) && p.bucket.have(now) >= float64(p.bucket.rate.Burst)
}
