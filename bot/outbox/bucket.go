package outbox

import "time"

// Rate is the rate of a token bucket: Burst calls at once, and one more call per Every.
type Rate struct {
	Every time.Duration
	Burst int
}

// bucket contains the tokens of a rate. Unlike golang.org/x/time/rate, it allows returning tokens and a negative
// count.
type bucket struct {
	rate   Rate
	tokens float64
	at     time.Time // time at which tokens was counted
}

func newBucket(r Rate, now time.Time) *bucket {
	return &bucket{rate: r, tokens: float64(r.Burst), at: now}
}

// have returns the number of tokens. It is negative if calls borrowed tokens.
func (b *bucket) have(now time.Time) float64 {
	return min(b.tokens+float64(now.Sub(b.at))/float64(b.rate.Every), float64(b.rate.Burst))
}

// add adds n tokens, or removes them if n is negative.
func (b *bucket) add(now time.Time, n float64) {
	b.tokens, b.at = min(b.have(now)+n, float64(b.rate.Burst)), now
}

// set changes the rate. The number of tokens stays, but is limited to the new burst.
func (b *bucket) set(r Rate, now time.Time) {
	b.tokens, b.at = b.have(now), now
	b.rate = r
	b.tokens = min(b.tokens, float64(r.Burst))
}

// drain removes all tokens and debt.
func (b *bucket) drain(now time.Time) { b.tokens, b.at = 0, now }
