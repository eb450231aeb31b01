// Package spending enforces budgets for the cost of turns. It warns once when most of a budget is used up, and rejects
// turns when the whole budget is used up.
package spending

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Options configures Budgets. All fields are required.
type Options struct {
	Store  orchestrator.SpendingStore
	Limits func() Budget // returns the current budget
	Now    func() time.Time
	Logger *slog.Logger
}

// Budget contains limits of the cost in US dollars. 0 means no limit.
type Budget struct {
	Day       float64 `toml:"day" check:"0|0.01..1e6"`
	Month     float64 `toml:"month" check:"0|0.01..1e6"`
	UserDay   float64 `toml:"user_day" check:"0|0.01..1e6"` // limit for the turns of each user
	UserMonth float64 `toml:"user_month" check:"0|0.01..1e6"`
	JobDay    float64 `toml:"job_day" check:"0|0.01..1e6"` // limit for the turns of each job
	JobMonth  float64 `toml:"job_month" check:"0|0.01..1e6"`
}

// Budgets compares costs with the configured limits. It is safe for concurrent use. A nil pointer is ready to use: it
// limits, counts and warns of nothing.
type Budgets struct {
	opts Options

	mu      sync.Mutex
	pending map[*pendingCost]struct{}
}

// pendingCost is the cost of a turn whose end is not stored yet.
type pendingCost struct {
	of  Spender
	usd float64
	at  time.Time // end of the turn
}

// New creates Budgets.
func New(o Options) *Budgets { return &Budgets{opts: o, pending: make(map[*pendingCost]struct{})} }

// WarnAt is how much of a budget, in percent, must be used before ductor warns users or the owner.
const WarnAt = 80

// Spender identifies the user and the job whose budgets apply to a turn.
type Spender struct {
	Person orchestrator.PersonID // 0 means none
	Job    orchestrator.JobID    // empty means none
}

// SpenderOf returns the spender of a turn.
func SpenderOf(t orchestrator.Turn) Spender {
	return Spender{Person: t.Prompt.Person, Job: t.Wants.Job}
}

// account is one of the budgets that apply to a turn, in the current day or month.
type account struct {
	of     Spender // the user or job to which the limit applies; zero for the limit of all costs
	period string  // a day as 2006-01-02, or a month as 2006-01
	since  time.Time
	limit  float64
}

func (a account) daily() bool { return len(a.period) == len(time.DateOnly) }

func (a account) scope() orchestrator.BudgetScope {
	switch {
	case a.of.Person != 0:
		return orchestrator.BudgetScope(fmt.Sprintf("user %d", a.of.Person))
	case a.of.Job != "":
		return orchestrator.BudgetScope("job " + string(a.of.Job))
	}
	return "all"
}

func (b *Budgets) accounts(who Spender) (list []account) {
	if b == nil {
		return nil
	}
	now := b.opts.Now().Local()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	add := func(of Spender, daily, monthly float64) {
		if daily > 0 {
			list = append(list, account{of, day.Format(time.DateOnly), day, daily})
		}
		if monthly > 0 {
			list = append(list, account{of, month.Format("2006-01"), month, monthly})
		}
	}
	budget := b.opts.Limits()
	add(Spender{}, budget.Day, budget.Month)
	if who.Person != 0 {
		add(Spender{Person: who.Person}, budget.UserDay, budget.UserMonth)
	}
	if who.Job != "" {
		add(Spender{Job: who.Job}, budget.JobDay, budget.JobMonth)
	}
	return list
}

func (b *Budgets) today() string { return b.opts.Now().Local().Format(time.DateOnly) }

// Left returns how many US dollars a turn may cost. 0 means no limit. If a budget is used up, it returns a *cli.Failure
// of the kind cli.OverBudget.
func (b *Budgets) Left(ctx context.Context, p lang.Printer, who Spender) (left float64, err error) {
	accounts := b.accounts(who)
	if len(accounts) == 0 {
		return 0, nil
	}
	free, err := b.opts.Store.BudgetsLifted(ctx, b.today())
	if err != nil || free {
		return 0, err
	}
	for _, a := range accounts {
		spent, err := b.spent(ctx, a)
		if err != nil {
			return 0, err
		}
		if spent >= a.limit {
			return 0, cli.Failf(cli.OverBudget, "", "%s", describe(p, a, spent))
		}
		if rest := a.limit - spent; left == 0 || rest < left {
			left = rest
		}
	}
	return left, nil
}

func describe(p lang.Printer, a account, spent float64) string {
	cost, limit := p.Cost(spent), p.Cost(a.limit)
	switch {
	case a.of.Person != 0 && a.daily():
		return p.Text("usage.spent-user-day", cost, limit)
	case a.of.Person != 0:
		return p.Text("usage.spent-user-month", cost, limit)
	case a.of.Job != "" && a.daily():
		return p.Text("usage.spent-job-day", a.of.Job, cost, limit)
	case a.of.Job != "":
		return p.Text("usage.spent-job-month", a.of.Job, cost, limit)
	case a.daily():
		return p.Text("usage.spent-day", cost, limit)
	}
	return p.Text("usage.spent-month", cost, limit)
}

// Warnings returns a sentence for each budget that is nearly used up. In one period it returns each sentence only once.
func (b *Budgets) Warnings(ctx context.Context, p lang.Printer, who Spender) (list []string) {
	for _, a := range b.accounts(who) {
		text, err := b.warning(ctx, p, a)
		if err != nil {
			b.opts.Logger.Error("load the spending of a budget", "scope", string(a.scope()), "err", err)
		}
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (b *Budgets) warning(ctx context.Context, p lang.Printer, a account) (string, error) {
	spent, err := b.spent(ctx, a)
	if err != nil || spent*100 < a.limit*WarnAt {
		return "", err
	}
	first, err := b.opts.Store.WarnBudget(ctx, a.period, a.scope())
	if err != nil || !first {
		return "", err
	}
	return p.Text("usage.warning", describe(p, a, spent)), nil
}

// CountUntil makes b count the cost of an ended turn until the turn is stored. write stores the turn, which can take
// long if the disk is full. The caller must call the returned function instead of write.
func (b *Budgets) CountUntil(write func(context.Context) error, who Spender,
	usd float64) func(context.Context) error {
	if b == nil || usd == 0 {
		return write
	}
	c := &pendingCost{who, usd, b.opts.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[c] = struct{}{}
	return func(ctx context.Context) error {
		if err := write(ctx); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.pending, c)
		return nil
	}
}

// spent returns the cost that counts for an account.
func (b *Budgets) spent(ctx context.Context, a account) (float64, error) {
	usd, err := b.opts.Store.CostSince(ctx, a.since, a.of.Person, a.of.Job)
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.pending {
		ofPerson, ofJob := a.of.Person == 0 || a.of.Person == c.of.Person, a.of.Job == "" || a.of.Job == c.of.Job
		if !c.at.Before(a.since) && ofPerson && ofJob {
			usd += c.usd
		}
	}
	return usd, err
}

// Lift removes all budgets until midnight.
func (b *Budgets) Lift(ctx context.Context, by orchestrator.PersonID) error {
	return b.opts.Store.LiftBudgets(ctx, b.today(), by, b.opts.Now())
}

// Count adds tokens and cost that do not belong to a turn.
func (b *Budgets) Count(ctx context.Context, s orchestrator.Spent) {
	if b == nil || s.Usage == (cli.Usage{}) && s.CostUSD == 0 {
		return
	}
	s.At = b.opts.Now()
	if err := b.opts.Store.CountSpent(context.WithoutCancel(ctx), s); err != nil {
		b.opts.Logger.Error("count usage", "id", s.ID, "err", err)
	}
}
