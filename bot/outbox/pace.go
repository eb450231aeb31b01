package outbox

import (
	"time"

	"ductor/orchestrator"
)

// Parameters for changes of a rate.
const (
	slower       = 1.5 // factor after an error at a steady rate, because calls come too often
	littleSlower = 1.1 // factor after an error within a burst, because the burst is too large
	faster       = 1.15
	slowest      = 10 // maximum interval, in normal intervals
	stepCalls    = 60 // successful calls before the rate recovers by a step
	stepTime     = 15 * time.Minute
	mostCalls    = 32 * stepCalls
)

// pace is the budget of a chat or of the whole bot. It is not safe for concurrent use.
type pace struct {
	normal Rate // the maximum to which the rate recovers
	bucket *bucket
	debt   float64   // number of tokens that urgent calls may borrow
	silent time.Time // end of the pause that Telegram demands
	fine   int       // successful calls since the rate last changed
	step   int       // successful calls for the next step of recovery
	since  time.Time // time of the last change
}

func newPace(normal Rate, debt float64, now time.Time) *pace {
	return &pace{normal: normal, debt: debt, bucket: newBucket(normal, now), step: stepCalls, since: now}
}

// resume restores a learned rate.
func (p *pace) resume(l orchestrator.SendRate, now time.Time) {
	p.silent = now.Add(silenceOf(l, now))
	p.set(Rate{
		Every: min(max(l.Every, p.normal.Every), slowest*p.normal.Every),
		Burst: min(max(l.Burst, 1), p.normal.Burst),
	}, now)
}

// silenceOf returns the remaining silence of a rate. If the clock was set back, the silence starts again. Otherwise
// it could last very long.
func silenceOf(l orchestrator.SendRate, now time.Time) time.Duration {
	if now.Before(l.Told) {
		return max(l.Until.Sub(l.Told), 0)
	}
	return max(l.Until.Sub(now), 0)
}

// learned returns the current rate, which resume restores after a restart.
func (p *pace) learned(chat int64, now time.Time) orchestrator.SendRate {
	return orchestrator.SendRate{
		Chat: chat, Every: p.bucket.rate.Every, Burst: p.bucket.rate.Burst, Until: p.silent, Told: now,
	}
}

func (p *pace) set(r Rate, now time.Time) {
	p.fine, p.since = 0, now
	p.bucket.set(r, now)
}

// reservedTokens returns how many tokens calls of a priority must leave for calls of higher priorities.
func (p *pace) reservedTokens(priority Priority) int {
	share := 0
	switch priority {
	case Streaming, Aside, Preview:
		share = max(1, p.bucket.rate.Burst/4)
	case Housekeeping:
		share = max(1, p.bucket.rate.Burst/3)
	case Indicator:
		share = p.bucket.rate.Burst / 2
	}
	return min(share, p.bucket.rate.Burst-1)
}

// An urgent call waits for a token for at most patience, and then borrows one. chatDebt and botDebt limit the number
// of borrowed tokens.
const (
	patience = 900 * time.Millisecond
	chatDebt = 2
	botDebt  = 30
)

// wait returns how long the budget delays a call. waited is the time that the call has already waited.
func (p *pace) wait(now time.Time, priority Priority, waited time.Duration) time.Duration {
	if d := p.silent.Sub(now); d > 0 {
		return d
	}
	have := p.bucket.have(now)
	wait := p.timeUntil(float64(1+p.reservedTokens(priority)), have)
	if wait <= 0 {
		return 0
	}
	if priority == Urgent {
		borrowed := p.timeUntil(1-p.debt, have)
		wait = min(wait, max(patience-waited, borrowed))
	}
	return wait
}

// timeUntil returns how long the bucket takes to get from have to want tokens, or zero if it has enough. It rounds
// up, so that the tokens exist at that time.
func (p *pace) timeUntil(want, have float64) time.Duration {
	if want <= have {
		return 0
	}
	return time.Duration((want-have)*float64(p.bucket.rate.Every)) + time.Microsecond
}

// spendToken spends the token of a call.
func (p *pace) spendToken(now time.Time) { p.bucket.add(now, -1) }

// returnToken returns the token of a call that was not made.
func (p *pace) returnToken(now time.Time) { p.bucket.add(now, 1) }

// betweenEdits returns the interval between streaming edits. If less than half of the burst is left, the interval is
// longer, so that the burst refills.
func (p *pace) betweenEdits(now time.Time) time.Duration {
	if p.bucket.have(now) < float64(p.bucket.rate.Burst)/2 {
		return 2 * p.bucket.rate.Every
	}
	return p.bucket.rate.Every
}

// accepted counts a successful call. It reports whether the rate recovers by one step.
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

// refused handles a rate limit error: it stops calls for the demanded pause, and reduces the rate.
func (p *pace) refused(now time.Time, after time.Duration) {
	until := now.Add(after)
	if now.Before(p.silent) { // another call was in flight, and its error has already reduced the rate
		if until.After(p.silent) {
			p.silent = until
		}
		return
	}
	if p.bucket.rate != p.normal && p.fine < p.step {
		p.step = min(2*p.step, mostCalls) // the last step of recovery was too large
	}
	left := p.bucket.have(now)
	p.silent = until
	defer p.bucket.drain(now)
	if left < 0 {
		return // the call had borrowed its token, so the error proves nothing about the rate
	}
	r := Rate{Every: time.Duration(float64(p.bucket.rate.Every) * slower), Burst: p.bucket.rate.Burst * 3 / 4}
	if left >= 1 {
		// The calls before this one succeeded. Use their number as the burst.
		r = Rate{
			Every: time.Duration(float64(p.bucket.rate.Every) * littleSlower),
			Burst: p.bucket.rate.Burst - int(left) - 1,
		}
	}
	r.Every, r.Burst = min(r.Every, slowest*p.normal.Every), max(r.Burst, 1)
	p.set(r, now)
}

// usual reports whether the pace has the values of a new one.
func (p *pace) usual(now time.Time) bool {
	return p.bucket.rate == p.normal && !now.Before(p.silent) && p.bucket.have(now) >= float64(p.bucket.rate.Burst)
}
