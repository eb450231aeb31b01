package spending_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/spending"
)

const owner, user = orchestrator.PersonID(1), orchestrator.PersonID(2)

// account combines budgets with a store that outlives them.
type account struct {
	*spending.Budgets
	t   *testing.T
	now time.Time
}

func open(t *testing.T, path string, budget spending.Budget) *account {
	t.Helper()
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	a := &account{t: t, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)}
	a.Budgets = spending.New(spending.Options{
		Store: db, Limits: func() spending.Budget { return budget }, Now: func() time.Time { return a.now }, Logger: slog.New(slog.DiscardHandler),
	})
	return a
}

func (a *account) spend(id string, who spending.Spender, usd float64) {
	a.Count(context.Background(), orchestrator.Spent{ID: id, Person: who.Person, Job: who.Job, Agent: "claude", CostUSD: usd})
}

// refused returns why a turn is refused; empty if it may run.
func (a *account) refused(who spending.Spender) string {
	a.t.Helper()
	_, err := a.Left(a.t.Context(), lang.Printer{}, who)
	var f *cli.Failure
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &f) || f.Kind != cli.OverBudget:
		a.t.Fatalf("left: %v", err)
	}
	return f.Reason
}

// While the disk is full, the end of a turn is not stored. Its cost counts nevertheless, and only once.
func TestACostThatIsNotStoredYetCounts(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "db"), spending.Budget{Day: 5, UserDay: 3, JobDay: 1})
	who, full := spending.Spender{Person: user}, true
	store := a.CountUntil(func(context.Context) error {
		if full {
			return orchestrator.ErrDiskFull
		}
		a.spend("1", who, 4)
		return nil
	}, who, 4)
	for _, full = range []bool{true, false} {
		if err := store(t.Context()); errors.Is(err, orchestrator.ErrDiskFull) != full {
			t.Fatal(err)
		}
		if a.refused(who) == "" {
			t.Errorf("full disk %t: the user may spend more", full)
		}
		if left, err := a.Left(t.Context(), lang.Printer{}, spending.Spender{Person: owner}); err != nil || left != 1 {
			t.Errorf("full disk %t: the owner may spend %v, %v", full, left, err)
		}
	}
}

func TestABudgetWarnsOnceAndRefusesAtItsEnd(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "db"), spending.Budget{Day: 10, Month: 15})
	who := spending.Spender{Person: user}
	a.spend("1", who, 7.99)
	a.spend("1", who, 7.99) // of the same turn, after a crash
	if w := a.Warnings(t.Context(), lang.Printer{}, who); len(w) != 0 {
		t.Errorf("below 80%% it warns %q", w)
	}
	if left, err := a.Left(t.Context(), lang.Printer{}, who); err != nil || left < 2 || left > 2.02 {
		t.Errorf("%v is left, %v", left, err)
	}
	a.spend("2", who, 1)
	if w := a.Warnings(t.Context(), lang.Printer{}, who); len(w) != 1 || w[0] != "💸 Budget: $8.99 of $10.00 for today is spent." {
		t.Errorf("at 90%% it warns %q", w)
	}
	if w := a.Warnings(t.Context(), lang.Printer{}, who); len(w) != 0 {
		t.Errorf("it warns again: %q", w)
	}
	a.spend("3", who, 2)
	if why := a.refused(who); why != "$10.99 of $10.00 for today is spent" {
		t.Errorf("above the budget it says %q", why)
	}

	a.now = a.now.AddDate(0, 0, 1)
	if why := a.refused(who); why != "" {
		t.Errorf("the next day it says %q", why)
	}
	a.spend("4", who, 5)
	if why := a.refused(who); why != "$15.99 of $15.00 for this month is spent" {
		t.Errorf("above the budget of the month it says %q", why)
	}
}

func TestBudgetsAreLiftedForOneDay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	a := open(t, path, spending.Budget{Month: 1})
	who := spending.Spender{Person: user}
	a.spend("1", who, 2)
	if err := a.Lift(t.Context(), owner); err != nil || a.refused(who) != "" {
		t.Errorf("an owner does not lift it: %v, %q", err, a.refused(who))
	}
	a.now = a.now.AddDate(0, 0, 1)
	if a.refused(who) == "" {
		t.Error("it is still lifted the next day")
	}
}

func TestBudgetsOfUsersAndJobsCountTheirOwn(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "db"), spending.Budget{UserDay: 1, JobDay: 1})
	a.spend("1", spending.Spender{Person: user, Job: "backup"}, 2)
	for who, want := range map[spending.Spender]string{
		{Person: owner}:                "",
		{Person: user}:                 "$2.00 of your $1.00 for today is spent",
		{Person: owner, Job: "backup"}: "the job backup has spent $2.00 of $1.00 for today",
		{Person: owner, Job: "other"}:  "",
	} {
		if got := a.refused(who); got != want {
			t.Errorf("%+v: %q, want %q", who, got, want)
		}
	}
}
