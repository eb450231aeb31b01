package store

import (
	"reflect"
	"testing"
	"time"

	"ductor/cli"
)

// The limits of each account survive a restart. A row that cannot be decoded is replaced by the next report.
func TestPlanLimitsAreMergedByAccount(t *testing.T) {
	path := t.TempDir() + "/db"
	db := openAt(t, path)
	now := time.Date(2026, 11, 27, 16, 0, 0, 0, time.UTC)
	limit := func(span time.Duration, used float64) cli.PlanLimit {
		return cli.PlanLimit{Window: cli.LimitWindow{Span: span}, Used: used, Resets: now.Add(span), Seen: now}
	}
	report := func(agent cli.Agent, account cli.Account, limits ...cli.PlanLimit) {
		t.Helper()
		of := cli.AccountLimits{Agent: agent, Account: account, Limits: limits}
		if _, err := db.MergeLimits(t.Context(), of, now); err != nil {
			t.Fatal(err)
		}
	}
	const hours, week = 5 * time.Hour, 168 * time.Hour
	report("codex", "", limit(hours, 0.1))
	report("claude", "work", limit(hours, 0.3))
	report("claude", "", limit(hours, 0.4), limit(week, 0.5))
	report("claude", "", limit(hours, 0.6))
	must(t, db.Close())
	db = openAt(t, path)
	check := func(want ...cli.AccountLimits) {
		t.Helper()
		got, err := db.PlanLimits(t.Context())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v\nwant %+v", got, err, want)
		}
	}
	of := func(agent cli.Agent, account cli.Account, limits ...cli.PlanLimit) cli.AccountLimits {
		return cli.AccountLimits{Agent: agent, Account: account, Limits: limits}
	}
	check(of("claude", "", limit(hours, 0.6), limit(week, 0.5)), of("claude", "work", limit(hours, 0.3)),
		of("codex", "", limit(hours, 0.1)))
	must(t, db.exec(t.Context(), "damage", db.write, `UPDATE plan_limits SET limits = '[{' WHERE agent = 'codex'`))
	report("codex", "", limit(hours, 0.2))
	check(of("claude", "", limit(hours, 0.6), limit(week, 0.5)), of("claude", "work", limit(hours, 0.3)),
		of("codex", "", limit(hours, 0.2)))
}
