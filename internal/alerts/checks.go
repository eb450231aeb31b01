package alerts

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"ductor/cli"
	"ductor/internal/health"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/spending"
)

func overText(a orchestrator.Alert, since func(time.Time) string) string {
	return strings.ReplaceAll(a.Over, "%s", since(a.Since))
}

// beganPlaceholder stands for the start time in Trouble.Over.
const beganPlaceholder = "%s"

// Printer returns the owner's current language.
type Printer func() lang.Printer

// Telegram checks whether Telegram is reachable. It sends the owner one notice, after the problem has ended.
func Telegram(p Printer, state func() health.State) Check {
	return Check{"telegram", func(context.Context, func(string) bool) ([]Trouble, bool, error) {
		switch s := state(); s.Polling {
		case health.OK:
			return nil, true, nil
		case health.Failing:
			return []Trouble{{Key: "telegram", Over: p().Text("alert.telegram-over", beganPlaceholder),
				Since: s.Answered}}, true, nil
		}
		return nil, false, nil
	}}
}

// A disk is almost full if its free space is below a limit: 1/lowPart of its size, but at least minLow and at most
// maxLow bytes. The problem ends when the free space reaches 1.25 times the limit.
const (
	lowPart = 20
	minLow  = 500 << 20
	maxLow  = 10 << 30
)

// Disk checks the free space on the disk that contains dir. In production, room is the function Room.
func Disk(p Printer, dir string, room func(dir string) (free, size uint64, err error)) Check {
	return Check{"disk", func(_ context.Context, existed func(string) bool) ([]Trouble, bool, error) {
		free, size, err := room(dir)
		if err != nil {
			return nil, false, fmt.Errorf("get the free disk space: %w", err)
		}
		low := min(max(size/lowPart, minLow), maxLow)
		if existed("disk") {
			low += low / 4
		}
		if free >= low {
			return nil, true, nil
		}
		return []Trouble{{Key: "disk", Text: p().Text("alert.disk", dir, free>>20),
			Over: p().Text("alert.disk-over", dir)}}, true, nil
	}}
}

// Rows checks for database rows that ductor skips because it cannot decode them. The function tables returns the names
// of the tables with such rows.
func Rows(p Printer, tables func() []string) Check {
	return Check{"row", func(context.Context, func(string) bool) (found []Trouble, known bool, err error) {
		for _, table := range tables() {
			found = append(found, Trouble{Key: "row/" + table, Text: p().Text("alert.row", table)})
		}
		return found, true, nil
	}}
}

// Room returns the free space and the size of the disk that contains dir, in bytes.
func Room(dir string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// usedWithin is the maximum age of an account's last turn. LogIns skips accounts whose last turn is older.
const usedWithin = 30 * 24 * time.Hour

// LogIns checks whether the accounts with recent turns are logged in. The function accounts returns the accounts of all
// agents on this machine.
func LogIns(p Printer, accounts func(context.Context) []cli.MenuEntry,
	usage func(context.Context, orchestrator.UsageQuery) ([]orchestrator.UsageRow, error), now func() time.Time,
) Check {
	return Check{"log-in", func(ctx context.Context, _ func(string) bool) (found []Trouble, known bool, err error) {
		rows, err := usage(ctx, orchestrator.UsageQuery{Since: now().Add(-usedWithin), By: orchestrator.UsageByAccount})
		if err != nil {
			return nil, false, err
		}
		used := map[string]bool{}
		for _, r := range rows {
			used[r.Name] = true
		}
		all := accounts(ctx)
		for _, a := range all {
			of, name := a.Account.Of(a.Agent), a.Account.NameOf(p(), a.Agent)
			if a.Err == nil && a.Auth.State == cli.Installed && a.Auth.Problem == nil && used[of] {
				found = append(found, Trouble{
					Key: "log-in/" + of, Text: p().Text("alert.log-in", name, a.Auth.Fix),
					Over:  p().Text("alert.log-in-over", name),
					LogIn: orchestrator.AgentEnv{Agent: a.Agent, Account: a.Account}.LogInID(),
				})
			}
		}
		return found, len(all) > 0 && ctx.Err() == nil, nil
	}}
}

// Limits checks whether a limit of an agent's plan is almost reached. A plan can have several limits, each for its own
// period of time. Each limit is a separate problem. The owner gets no notice when such a problem ends.
func Limits(p Printer, limits func(context.Context) ([]cli.AccountLimits, error), now func() time.Time) Check {
	return Check{"limit", func(ctx context.Context, existed func(string) bool) (found []Trouble, known bool,
		err error) {
		at := now()
		all, err := limits(ctx)
		for _, a := range all {
			for _, l := range a.Current(at).Limits {
				key := fmt.Sprintf("limit/%s/%s/%s/%s/%d", a.Agent, a.Account, l.Window.Span, l.Window.Of,
					l.Resets.Unix())
				if l.Used >= cli.NearLimit || existed(key) {
					a.Limits = []cli.PlanLimit{l}
					found = append(found, Trouble{Key: key, Text: p().Text("alert.limit", a.Text(p(), at))})
				}
			}
		}
		return found, err == nil, err
	}}
}

// failsInARow is the number of consecutive failures of a job after which the owner gets a notice.
const failsInARow = 3

type JobStore interface {
	Jobs(ctx context.Context) ([]orchestrator.JobStatus, error)
	Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error)
}

// Jobs checks for jobs whose last runs have failed. The problem ends when a run succeeds, or when the job is paused or
// deleted.
func Jobs(p Printer, store JobStore) Check {
	return Check{"job", func(ctx context.Context, existed func(string) bool) (found []Trouble, known bool, err error) {
		all, err := store.Jobs(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, j := range all {
			if j.Job.Paused || j.Last == nil {
				continue
			}
			// Load two extra runs, because failed does not count runs that are still running or were skipped.
			runs, err := store.Runs(ctx, j.Job.ID, failsInARow+2)
			if err != nil {
				return nil, false, err
			}
			key := "job/" + string(j.Job.ID)
			if n := failed(runs); n >= failsInARow || n > 0 && existed(key) {
				found = append(found, Trouble{Key: key, Text: p().Text("alert.job", j.Job.Name, failsInARow),
					Over: p().Text("alert.job-over", j.Job.Name)})
			}
		}
		return found, true, nil
	}}
}

// failed returns the number of failed runs since the last successful or aborted run. The runs are sorted, the newest
// first.
func failed(runs []orchestrator.JobRun) (n int) {
	for _, r := range runs {
		switch r.State {
		case orchestrator.RunFailed:
			n++
		case orchestrator.RunDone, orchestrator.RunAborted:
			return n
		}
	}
	return n
}

// Spending provides the budgets that all users share, and the costs of all users.
type Spending interface {
	// Limits returns the budgets. 0 means no budget.
	Limits() (day, month float64)
	Since(ctx context.Context, since time.Time) (float64, error)
	// Lifted reports whether an owner has lifted the budgets for today.
	Lifted(ctx context.Context) (bool, error)
}

// Budget checks whether a budget that all users share is almost spent. The problem ends when the budget is raised, or
// when its day or month is over.
func Budget(p Printer, s Spending, now func() time.Time) Check {
	return Check{"budget", func(ctx context.Context, _ func(string) bool) (found []Trouble, known bool, err error) {
		day, month := s.Limits()
		lifted, err := s.Lifted(ctx)
		if err != nil {
			return nil, false, err
		}
		at := now().Local()
		today := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location())
		cost, much, err := nearlySpent(ctx, today, day, s.Since)
		if err != nil {
			return nil, false, err
		}
		if much {
			text := p().Text("alert.budget-day", p().Cost(cost), p().Cost(day))
			if lifted {
				text = p().Text("alert.budget-day-lifted", p().Cost(cost), p().Cost(day))
			}
			found = append(found, Trouble{Key: "budget-day/" + today.Format(time.DateOnly), Text: text,
				Over: p().Text("alert.budget-day-over")})
		}
		first := today.AddDate(0, 0, 1-at.Day())
		if cost, much, err = nearlySpent(ctx, first, month, s.Since); err != nil {
			return nil, false, err
		}
		if much {
			text := p().Text("alert.budget-month", p().Cost(cost), p().Cost(month))
			if lifted {
				text = p().Text("alert.budget-month-lifted", p().Cost(cost), p().Cost(month))
			}
			found = append(found, Trouble{Key: "budget-month/" + first.Format(time.DateOnly), Text: text,
				Over: p().Text("alert.budget-month-over")})
		}
		return found, true, nil
	}}
}

// nearlySpent returns the cost since a time, and whether this cost is close to limit. A limit of 0 means no limit.
func nearlySpent(ctx context.Context, since time.Time, limit float64,
	spent func(ctx context.Context, since time.Time) (float64, error)) (float64, bool, error) {
	if limit <= 0 {
		return 0, false, nil
	}
	cost, err := spent(ctx, since)
	return cost, err == nil && cost*100 >= limit*spending.WarnAt, err
}
