package outbox

import (
	"time"

	"ductor/orchestrator"
)

// Parameters for adapting a rate to Telegram's rate limit.
const (
	slower       = 1.5 // factor for Rate.Every after an error outside of a burst, because Every was too short
	littleSlower = 1.1 // factor for Rate.Every after an error within a burst, because mainly Burst was too large
	faster       = 1.15
	slowest      = 10 // maximum of Rate.Every, as a multiple of its normal value
	stepCalls    = 60 // number of requests that must succeed before the rate is increased a little
	stepTime     = 15 * time.Minute
	mostCalls    = 32 * stepCalls
)

// pace is the budget of a chat, or of the bot in all chats. It is not safe for concurrent use.
type pace struct {
	normal Rate // initial rate, to which the rate slowly returns after an error
	bucket *bucket
	debt   float64   // number of tokens that urgent calls may borrow
	silent time.Time // end of the time in which Telegram allows no requests, after a rate limit error
	fine   int       // number of successful requests since the rate last changed
	step   int       // number of requests that must succeed before the next increase
	since  time.Time
}

func newPace(normal Rate, debt float64, now time.Time) *pace {
	return &pace{normal: normal, debt: debt, bucket: newBucket(normal, now), step: stepCalls, since: now}
}

// resume restores the rate from before a restart.
func (p *pace) resume(l orchestrator.SendRate, now time.Time) {
	p.silent = now.Add(silenceOf(l, now))
	p.set(Rate{
		Every: min(max(l.Every, p.normal.Every), slowest*p.normal.Every),
		Burst: min(max(l.Burst, 1), p.normal.Burst),
	}, now)
}

// silenceOf returns the time until Telegram allows requests again. If the clock was set back since l.Told, the time
// from now to l.Until could be far too long. silenceOf then returns the time from l.Told to l.Until.
func silenceOf(l orchestrator.SendRate, now time.Time) time.Duration {
	if now.Before(l.Told) {
		return max(l.Until.Sub(l.Told), 0)
	}
	return max(l.Until.Sub(now), 0)
}

// learned returns the current rate in the form that the database stores.
func (p *pace) learned(chat int64, now time.Time) orchestrator.SendRate {
	return orchestrator.SendRate{
		Chat: chat, Every: p.bucket.rate.Every, Burst: p.bucket.rate.Burst, Until: p.silent, Told: now,
	}
}

func (p *pace) set(r Rate, now time.Time) {
	p.fine, p.since = 0, now
	p.bucket.set(r, now)
}

// reservedTokens returns how many tokens must be left for more urgent calls after a call with this priority.
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

// An Urgent call waits at most patience for a token. Then it borrows a token. A chat can borrow chatDebt tokens in
// total, and all chats together can borrow botDebt tokens.
const (
	patience = 900 * time.Millisecond
	chatDebt = 2
	botDebt  = 30
)

// wait returns how much longer a call must wait for a token. waited is how long the call has already waited.
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

// timeUntil returns how long it takes until the number of tokens in the bucket has grown from have to want. The result
// is rounded up.
func (p *pace) timeUntil(want, have float64) time.Duration {
	if want <= have {
		return 0
	}
	return time.Duration((want-have)*float64(p.bucket.rate.Every)) + time.Microsecond
}

func (p *pace) spendToken(now time.Time) { p.bucket.add(now, -1) }

// returnToken returns the token of a call that made no request.
func (p *pace) returnToken(now time.Time) { p.bucket.add(now, 1) }

// betweenEdits returns the minimum time between two Streaming calls. If the bucket is less than half full, this time is
// longer, so that tokens accumulate.
func (p *pace) betweenEdits(now time.Time) time.Duration {
	if p.bucket.have(now) < float64(p.bucket.rate.Burst)/2 {
		return 2 * p.bucket.rate.Every
	}
	return p.bucket.rate.Every
}

// accepted counts a successful request, and increases the rate after enough of them. It reports whether the rate
// increased.
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

// refused handles a rate limit error. It allows no requests for the given time, and reduces the rate.
func (p *pace) refused(now time.Time, after time.Duration) {
	until := now.Add(after)
	if now.Before(p.silent) { // the rate was already reduced after this request was sent
		if until.After(p.silent) {
			p.silent = until
		}
		return
	}
	if p.bucket.rate != p.normal && p.fine < p.step {
		p.step = min(2*p.step, mostCalls) // the rate was increased too early, so require more successes next time
	}
	left := p.bucket.have(now)
	p.silent = until
	defer p.bucket.drain(now)
	if left < 0 {
		return // the request exceeded the budget, so the error does not show that the rate is too high
	}
	r := Rate{Every: time.Duration(float64(p.bucket.rate.Every) * slower), Burst: p.bucket.rate.Burst * 3 / 4}
	if left >= 1 {
		// The earlier requests of the burst succeeded. Use their number as the new burst.
		r = Rate{
			Every: time.Duration(float64(p.bucket.rate.Every) * littleSlower),
			Burst: p.bucket.rate.Burst - int(left) - 1,
		}
	}
	r.Every, r.Burst = min(r.Every, slowest*p.normal.Every), max(r.Burst, 1)
	p.set(r, now)
}

// usual reports whether the budget equals the budget of a new chat.
func (p *pace) usual(now time.Time) bool {
	return p.bucket.rate == p.normal && !now.Before(p.silent) && p.bucket.have(now) >= float64(p.bucket.rate.Burst)
}
