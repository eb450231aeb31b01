package outbox

import (
	"cmp"
	"slices"
	"time"
)

// Budget describes how many requests a chat can get without exceeding Telegram's rate limit, according to the estimate
// of the outbox.
type Budget struct {
	Chat    int64         // 0: budget for all chats together
	Rate    Rate          // current estimate of the limit
	Usual   Rate          // rate of a new chat; after an error, Rate slowly returns to this rate
	Tokens  float64       // number of requests that are possible now; may be negative
	Silence time.Duration // time until the next request is allowed
}

// Budgets returns the budgets of all chats with recent requests, and the budget of the bot.
func (o *Outbox) Budgets() []Budget {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	list := []Budget{o.pace.budget(0, now)}
	for chat, q := range o.queues {
		list = append(list, q.pace.budget(chat, now))
	}
	slices.SortFunc(list, func(a, b Budget) int { return cmp.Compare(a.Chat, b.Chat) })
	return list
}

func (p *pace) budget(chat int64, now time.Time) Budget {
	return Budget{chat, p.bucket.rate, p.normal, p.bucket.have(now), max(p.silent.Sub(now), 0)}
}

// Backlog returns how many calls are waiting, and how long the oldest call has been waiting.
func (o *Outbox) Backlog() (waiting int, oldest time.Duration) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.queues {
		waiting += len(q.waiting)
		for _, e := range q.waiting {
			oldest = max(oldest, now.Sub(e.posted))
		}
	}
	return waiting, oldest
}
