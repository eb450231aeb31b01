package telegram

import (
	"math"
	"time"
)

// Rate allows Burst calls at once, and one more after each Every. The zero value has no limit.
type Rate struct {
	Every time.Duration
	Burst int
}

// Limits contains the rate limits. Sends, edits, deletes, reactions and typing count. Reading and answering buttons
// do not. All topics of a chat share the limit of the chat.
type Limits struct {
	Chat   Rate // each private chat
	Group  Rate // each group, supergroup and forum
	Global Rate // all chats together
	// Penalty is added for a call during a wait. Each further call adds it again.
	Penalty time.Duration
}

// RealLimits returns limits that users have measured: about one call a second in a chat, twenty a minute in a group,
// and thirty a second in total, with penalties for bots that ignore retry_after.
func RealLimits() Limits {
	return Limits{
		Chat:    Rate{Every: time.Second, Burst: 5},
		Group:   Rate{Every: 3 * time.Second, Burst: 20},
		Global:  Rate{Every: time.Second / 30, Burst: 30},
		Penalty: time.Second,
	}
}

// StrictLimits returns limits below Telegram's: one call a second in every chat, and three at once.
func StrictLimits() Limits {
	strict := Rate{Every: time.Second, Burst: 3}
	return Limits{Chat: strict, Group: strict, Global: Rate{Every: time.Second / 30, Burst: 30}, Penalty: time.Second}
}

// SetLimits replaces the limits and fills all buckets.
func (s *Server) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = newLimiter(l)
	for _, c := range s.chats {
		c.bucket = nil
	}
}

type limiter struct {
	limits Limits
	global *bucket
}

func newLimiter(l Limits) limiter { return limiter{limits: l, global: &bucket{rate: l.Global}} }

// spend takes n calls from the buckets of a chat and of the bot. If one is empty, it returns the seconds to wait.
func (l *limiter) spend(now time.Time, c *Chat, n int) int {
	buckets := []*bucket{l.global}
	if c != nil {
		if c.bucket == nil {
			c.bucket = &bucket{rate: l.limits.Chat}
			if c.kind != PrivateChat {
				c.bucket.rate = l.limits.Group
			}
		}
		buckets = append(buckets, c.bucket)
	}
	wait := time.Duration(0)
	for _, b := range buckets {
		wait = max(wait, b.wait(now, n, l.limits.Penalty))
	}
	if wait > 0 {
		return int(math.Ceil(wait.Seconds()))
	}
	for _, b := range buckets {
		b.take(now, n)
	}
	return 0
}

// bucket is a token bucket, stored as the time at which it is full again.
type bucket struct {
	rate    Rate
	fullAt  time.Time
	shut    time.Time
	strikes int
}

// wait returns how long n calls have to wait. A call during a wait makes it longer.
func (b *bucket) wait(now time.Time, n int, penalty time.Duration) time.Duration {
	if b.rate.Every <= 0 {
		return 0
	}
	if now.Before(b.shut) {
		b.strikes++
		b.shut = b.shut.Add(time.Duration(b.strikes) * penalty)
		return b.shut.Sub(now)
	}
	burst := max(1, b.rate.Burst)
	need := max(0, b.fullAt.Sub(now)) + time.Duration(min(n, burst)-burst)*b.rate.Every
	if need <= 0 {
		return 0
	}
	// The wait ends on the whole second that retry_after contains.
	b.shut = now.Add(time.Duration(math.Ceil(need.Seconds())) * time.Second)
	return b.shut.Sub(now)
}

func (b *bucket) take(now time.Time, n int) {
	if b.rate.Every <= 0 {
		return
	}
	if b.fullAt.Before(now) {
		b.fullAt = now
	}
	b.fullAt = b.fullAt.Add(time.Duration(n) * b.rate.Every)
	b.strikes = 0
}
