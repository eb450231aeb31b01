package outbox

import (
	"cmp"
	"slices"
	"time"
)

// Budget is what may be sent now, as it was learned from Telegram's answers.
type Budget struct {
	Chat    int64         // 0 is the whole bot
	Rate    Rate          // now
	Usual   Rate          // what the rate recovers to
	Tokens  float64       // calls that may be made at once; below 0 where urgent ones were borrowed
	Silence time.Duration // until the next call
}

// Budgets lists the budget of the whole bot, and those of chats that were written to.
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

// Backlog says how many calls wait, and how long the oldest has.
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
