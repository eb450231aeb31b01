package outbox

import (
	"cmp"
	"slices"
	"time"
)

// Budget is a chat's allowance of calls, as learned from Telegram's answers.
type Budget struct {
	Chat    int64         // 0 for the bot as a whole
	Rate    Rate          // the current rate
	Usual   Rate          // the rate that Rate recovers to
	Tokens  float64       // number of calls that are possible now; negative if urgent calls borrowed tokens
	Silence time.Duration // time until the next call
}

// Budgets returns the budgets of the bot and of the chats with recent calls.
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

// Backlog returns how many calls wait, and for how long the oldest has waited.
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
