package telegram

import (
	"math"
	"time"
)

// Rate allows Burst calls at once, and then one more after each duration of Every. The zero value means no limit.
type Rate struct {
	Every time.Duration
	Burst int
}

// Limits contains the rate limits. They apply to calls that send, edit or delete messages, set reactions, or show
// typing. They do not apply to calls that read or that answer a button. The topics of a chat share the limit of the
// chat.
type Limits struct {
	Chat   Rate // limit for each private chat
	Group  Rate // limit for each group, supergroup and forum
	Global Rate // limit for all chats together
	// If the bot makes calls while it should wait, the first of them extends the wait by Penalty, the second one by
	// twice the Penalty, and so on.
	Penalty time.Duration
}

// RealLimits returns the limits that users have measured. They are about one call a second in a chat, 20 a minute in a
// group, and 30 a second in total. Bots that ignore retry_after get penalties.
func RealLimits() Limits {
	return Limits{
		Chat:    Rate{Every: time.Second, Burst: 5},
		Group:   Rate{Every: 3 * time.Second, Burst: 20},
		Global:  Rate{Every: time.Second / 30, Burst: 30},
		Penalty: time.Second,
	}
}

// StrictLimits returns limits that are stricter than Telegram's: one call a second in each chat, and three at once.
func StrictLimits() Limits {
	strict := Rate{Every: time.Second, Burst: 3}
	return Limits{Chat: strict, Group: strict, Global: Rate{Every: time.Second / 30, Burst: 30}, Penalty: time.Second}
}

// SetLimits replaces the limits. The new limits do not count earlier calls.
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

// spend counts n calls in a chat. If the limit of the chat or of the bot is reached, it counts nothing and returns how
// many seconds the bot must wait.
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

// bucket is a token bucket. It stores the time at which it will be full again.
type bucket struct {
	rate    Rate
	fullAt  time.Time
	shut    time.Time
	strikes int
}

// wait returns how long the bot must wait before it can make n calls. Each call during a wait makes the wait longer.
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
	// Round up to whole seconds, because retry_after has no fraction.
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
