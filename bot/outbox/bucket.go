package outbox

import "time"

// Rate is a token bucket: Burst calls at once, and one more per Every.
type Rate struct {
	Every time.Duration
	Burst int
}

// bucket holds the tokens of a rate. Unlike golang.org/x/time, it supports returning tokens and owing some.
type bucket struct {
	rate   Rate
	tokens float64
	at     time.Time // the time of that count
}

func newBucket(r Rate, now time.Time) *bucket {
	return &bucket{rate: r, tokens: float64(r.Burst), at: now}
}

// have returns the number of tokens. Negative tokens are owed.
func (b *bucket) have(now time.Time) float64 {
	return min(b.tokens+float64(now.Sub(b.at))/float64(b.rate.Every), float64(b.rate.Burst))
}

// add adds n tokens, or removes them if n is negative.
func (b *bucket) add(now time.Time, n float64) {
	b.tokens, b.at = min(b.have(now)+n, float64(b.rate.Burst)), now
}

// set changes the rate. The number of tokens stays, but never exceeds the burst.
func (b *bucket) set(r Rate, now time.Time) {
	b.tokens, b.at = b.have(now), now
	b.rate = r
	b.tokens = min(b.tokens, float64(r.Burst))
}

// drain removes all tokens and debt.
func (b *bucket) drain(now time.Time) { b.tokens, b.at = 0, now }
