package outbox

import "time"

// Rate is a token bucket: Burst calls at once, and one more each Every.
type Rate struct {
	Every time.Duration
	Burst int
}

// bucket has the tokens of a rate. Unlike the one of golang.org/x/time it takes tokens back and may owe some.
type bucket struct {
	rate   Rate
	tokens float64
	at     time.Time // when there were so many
}

func newBucket(r Rate, now time.Time) *bucket {
	return &bucket{rate: r, tokens: float64(r.Burst), at: now}
}

// have is how many tokens there are; below zero they are owed.
func (b *bucket) have(now time.Time) float64 {
	return min(b.tokens+float64(now.Sub(b.at))/float64(b.rate.Every), float64(b.rate.Burst))
}

// add puts n tokens in, or takes them where n is below zero.
func (b *bucket) add(now time.Time, n float64) {
	b.tokens, b.at = min(b.have(now)+n, float64(b.rate.Burst)), now
}

// set changes the rate. There are as many tokens as before, and never more than the burst.
func (b *bucket) set(r Rate, now time.Time) {
	b.tokens, b.at = b.have(now), now
	b.rate = r
	b.tokens = min(b.tokens, float64(r.Burst))
}

// drain leaves neither tokens nor debt.
func (b *bucket) drain(now time.Time) { b.tokens, b.at = 0, now }
