package outbox

import "time"

// Rate is the rate of a token bucket. It allows Burst requests at once, and another request in each interval Every.
type Rate struct {
	Every time.Duration
	Burst int
}

// bucket is a token bucket. Unlike in golang.org/x/time/rate, callers can return tokens, and the number of tokens can
// be negative.
type bucket struct {
	rate   Rate
	tokens float64
	at     time.Time // time of the last change of tokens
}

func newBucket(r Rate, now time.Time) *bucket {
	return &bucket{rate: r, tokens: float64(r.Burst), at: now}
}

// have returns the number of tokens. It is negative if urgent requests have borrowed tokens.
func (b *bucket) have(now time.Time) float64 {
	return min(b.tokens+float64(now.Sub(b.at))/float64(b.rate.Every), float64(b.rate.Burst))
}

// add adds n tokens. n may be negative.
func (b *bucket) add(now time.Time, n float64) {
	b.tokens, b.at = min(b.have(now)+n, float64(b.rate.Burst)), now
}

// set changes the rate. The bucket keeps its tokens, but no more than the new burst.
func (b *bucket) set(r Rate, now time.Time) {
	b.tokens, b.at = b.have(now), now
	b.rate = r
	b.tokens = min(b.tokens, float64(r.Burst))
}

func (b *bucket) drain(now time.Time) { b.tokens, b.at = 0, now }
