package store

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const spentColumns = `id, at, chat, topic, person, job, agent, model, input, output, cache_read, cache_write, cost_usd,
	took`

// countSpent stores an amount. It does nothing if the ID of the amount is already stored.
func (t tx) countSpent(s orchestrator.Spent) error {
	_, err := t.insert("spent", spentColumns, `ON CONFLICT (id) DO NOTHING`,
		s.ID, millis(s.At), s.Conversation.Chat, s.Conversation.Topic, int64(s.Person), string(s.Job), string(s.Agent),
		string(s.Model),
		s.Usage.Input, s.Usage.Output, s.Usage.CacheRead, s.Usage.CacheWrite, s.CostUSD, int64(s.Took))
	return err
}

// countTurn stores the usage of a turn that has just ended. It does nothing for a turn that never started.
func (t tx) countTurn(id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	_, err := t.Exec(`INSERT INTO spent (`+spentColumns+`) SELECT id, ?1, chat, topic, person,
		coalesce(json_extract(nullif(wants, ''), '$.job'), ''), ?2, coalesce(nullif(?3, ''), model),
		?4, ?5, ?6, ?7, ?8, max(?1 - started, 0) * ?9
		FROM turns WHERE id = ?10 AND started > 0 ON CONFLICT (id) DO NOTHING`,
		millis(ended), string(o.Agent), string(o.Model), o.Usage.Input, o.Usage.Output, o.Usage.CacheRead,
		o.Usage.CacheWrite, o.CostUSD, int64(time.Millisecond), string(id))
	return err
}

// CountSpent uses a shared transaction.
func (db *DB) CountSpent(ctx context.Context, s orchestrator.Spent) error {
	return wrap("store the usage of "+s.ID, db.writeShared(ctx, func(t tx) error { return t.countSpent(s) }))
}

func (db *DB) CostSince(
	ctx context.Context, since time.Time, person orchestrator.PersonID, job orchestrator.JobID,
) (float64, error) {
	cost, err := sqlite.One(ctx, db.file, sqlite.Value[float64], `SELECT coalesce(sum(cost_usd), 0.0) FROM spent
		WHERE at >= ?1 AND (?2 = 0 OR person = ?2) AND (?3 = ''
		OR job = ?3)`, millis(since), int64(person), string(job))
	return cost, wrap("sum up costs", err)
}

func (db *DB) Usage(ctx context.Context, q orchestrator.UsageQuery) ([]orchestrator.UsageRow, error) {
	name, order := "agent", "cost DESC, tokens DESC"
	switch q.By {
	case orchestrator.UsageByDay:
		name, order = "strftime('%Y-%m-%d', at / 1000, 'unixepoch', 'localtime')", "name"
	case orchestrator.UsageByModel:
		name = "CASE WHEN model = '' THEN agent ELSE agent || ' ' || model END"
	case orchestrator.UsageByConversation:
		name = "chat || '/' || topic"
	case orchestrator.UsageByAccount:
		name = `coalesce((SELECT CASE WHEN t.agent <> spent.agent OR account = '' THEN spent.agent
			ELSE spent.agent || '@' || account END FROM turns t WHERE t.id = spent.id), '')`
	case orchestrator.UsageByPerson:
		name = "CAST(person AS TEXT)"
	}
	all, err := sqlite.Many(ctx, db.file, scan(usageFields),
		`SELECT `+name+` AS name, count(*), sum(input + output + cache_read + cache_write) AS tokens,
		sum(cost_usd) AS cost, sum(took) FROM spent WHERE at >= ?1 AND (?2 = 0 OR chat = ?2 AND topic = ?3) GROUP BY 1
		ORDER BY `+order,
		millis(q.Since), q.In.Chat, q.In.Topic)
	return all, wrap("sum up usage", err)
}

func usageFields(u *orchestrator.UsageRow) []any {
	return []any{&u.Name, &u.Turns, &u.Tokens, &u.CostUSD, &u.Took}
}

// lifted is a value of the column "scope". It means that a user has lifted all budgets for the day.
const lifted = "lifted"

func (db *DB) WarnBudget(ctx context.Context, period string, of orchestrator.BudgetScope) (first bool, err error) {
	err = db.write(ctx, func(t tx) error {
		n, err := t.Exec(`INSERT INTO budget_notes (period, scope, person, at) VALUES (?, ?, 0, ?)
			ON CONFLICT DO NOTHING`,
			period, "warned "+string(of), millis(db.now()))
		first = n > 0
		return err
	})
	return first && err == nil, wrap("record a warning of a budget", err)
}

func (db *DB) LiftBudgets(ctx context.Context, day string, by orchestrator.PersonID, at time.Time) error {
	return db.exec(ctx, "lift the budgets", db.write,
		`INSERT INTO budget_notes (period, scope, person, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		day, lifted, int64(by), millis(at))
}

func (db *DB) BudgetsLifted(ctx context.Context, day string) (bool, error) {
	n, err := sqlite.One(ctx, db.file, sqlite.Value[int64],
		`SELECT count(*) FROM budget_notes WHERE period = ? AND scope = ?`, day, lifted)
	return n > 0, wrap("check whether budgets are lifted", err)
}

var _ orchestrator.SpendingStore = (*DB)(nil)

func limitFields(a *cli.AccountLimits) []any {
	return []any{&a.Agent, &a.Account, listColumn[cli.PlanLimit]{&a.Limits}}
}

// MergeLimits does not wait for the disk.
func (db *DB) MergeLimits(ctx context.Context, of cli.AccountLimits, now time.Time) (cli.AccountLimits, error) {
	var merged cli.AccountLimits
	err := db.writeLazily(ctx, func(t tx) error {
		var known string
		err := t.Row(`SELECT limits FROM plan_limits WHERE agent = ? AND account = ?`,
			[]any{string(of.Agent), string(of.Account)}, &known)
		if _, err = mapNoRows(known, err, nil); err != nil {
			return err
		}
		before := cli.AccountLimits{Agent: of.Agent, Account: of.Account}
		if decode(known, &before.Limits) != nil { // ignore unreadable limits; the agent reports them again
			before.Limits = nil
		}
		merged = before.Merge(of.Limits, now)
		return t.upsert("plan_limits", "agent, account", "agent, account, limits", limitFields(&merged)...)
	})
	return merged, wrap("store plan limits", err)
}

// PlanLimits returns a cached list. Callers share the list and must not change it.
func (db *DB) PlanLimits(ctx context.Context) ([]cli.AccountLimits, error) {
	all, err := sqlite.ManyCached(ctx, db.file, []string{"plan_limits"}, scan(limitFields),
		`SELECT agent, account, limits FROM plan_limits ORDER BY agent, account`)
	return all, wrap("list plan limits", err)
}
