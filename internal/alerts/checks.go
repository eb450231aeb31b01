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

func over(a orchestrator.Alert, since func(time.Time) string) string {
	return strings.ReplaceAll(a.Over, "%s", since(a.Since))
}

// began is written into a text for when a trouble is over, whose beginning is not known before.
const began = "%s"

// Printer gives the language of the owner now.
type Printer func() lang.Printer

// Telegram finds that Telegram cannot be reached. Its beginning is not told, since nothing arrives then.
func Telegram(p Printer, state func() health.State) Check {
	return Check{"telegram", func(context.Context, func(string) bool) ([]Trouble, bool, error) {
		switch s := state(); s.Polling {
		case health.OK:
			return nil, true, nil
		case health.Failing:
			return []Trouble{{Key: "telegram", Over: p().Text("alert.telegram-over", began), Since: s.Answered}}, true, nil
		}
		return nil, false, nil
	}}
}

// The room below which a disk is nearly full: a share of the disk, within bounds. It has room again above a quarter more.
const (
	lowPart  = 20 // a twentieth
	leastLow = 500 << 20
	mostLow  = 10 << 30
)

// Disk finds that the disk of a directory has little room.
func Disk(p Printer, dir string, room func(dir string) (free, size uint64, err error)) Check {
	return Check{"disk", func(_ context.Context, before func(string) bool) ([]Trouble, bool, error) {
		free, size, err := room(dir)
		if err != nil {
			return nil, false, fmt.Errorf("ask for the room on the disk: %w", err)
		}
		low := min(max(size/lowPart, leastLow), mostLow)
		if before("disk") {
			low += low / 4
		}
		if free >= low {
			return nil, true, nil
		}
		return []Trouble{{Key: "disk", Text: p().Text("alert.disk", dir, free>>20), Over: p().Text("alert.disk-over", dir)}}, true, nil
	}}
}

// Rows finds tables with rows that cannot be decoded, which are passed over.
func Rows(p Printer, tables func() []string) Check {
	return Check{"row", func(context.Context, func(string) bool) (found []Trouble, known bool, err error) {
		for _, table := range tables() {
			found = append(found, Trouble{Key: "row/" + table, Text: p().Text("alert.row", table)})
		}
		return found, true, nil
	}}
}

// Room asks the kernel for the room on the disk of a directory.
func Room(dir string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// usedWithin is how lately an agent had turns whose log-in is missed.
const usedWithin = 30 * 24 * time.Hour

// LogIns finds agents that are installed, had turns lately and are not logged in.
func LogIns(p Printer, agents func(context.Context) []cli.AgentState, name func(cli.Agent) string,
	usage func(context.Context, orchestrator.UsageQuery) ([]orchestrator.UsageRow, error), now func() time.Time,
) Check {
	return Check{"log-in", func(ctx context.Context, _ func(string) bool) (found []Trouble, known bool, err error) {
		rows, err := usage(ctx, orchestrator.UsageQuery{Since: now().Add(-usedWithin), By: orchestrator.UsageByAgent})
		if err != nil {
			return nil, false, err
		}
		used := map[string]bool{}
		for _, r := range rows {
			used[r.Name] = true
		}
		states := agents(ctx)
		for _, s := range states {
			if s.Auth.State == cli.Installed && s.Auth.Problem == nil && used[string(s.Agent)] {
				found = append(found, Trouble{
					Key: "log-in/" + string(s.Agent), Text: p().Text("alert.log-in", name(s.Agent), s.Auth.Fix), Over: p().Text("alert.log-in-over", name(s.Agent)),
				})
			}
		}
		return found, len(states) > 0 && ctx.Err() == nil, nil
	}}
}

// failsInARow is how often a job fails before the owner is told.
const failsInARow = 3

// JobStore is the part of the store that knows jobs.
type JobStore interface {
	Jobs(ctx context.Context) ([]orchestrator.JobStatus, error)
	Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error)
}

// Jobs finds jobs whose last runs failed. It is over when one succeeds, and when the job is paused or deleted.
func Jobs(p Printer, store JobStore) Check {
	return Check{"job", func(ctx context.Context, before func(string) bool) (found []Trouble, known bool, err error) {
		all, err := store.Jobs(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, j := range all {
			if j.Job.Paused || j.Last == nil {
				continue
			}
			runs, err := store.Runs(ctx, j.Job.ID, failsInARow+2) // some may be open or skipped
			if err != nil {
				return nil, false, err
			}
			key := "job/" + string(j.Job.ID)
			if n := failed(runs); n >= failsInARow || n > 0 && before(key) {
				found = append(found, Trouble{Key: key, Text: p().Text("alert.job", j.Job.Name, failsInARow), Over: p().Text("alert.job-over", j.Job.Name)})
			}
		}
		return found, true, nil
	}}
}

// failed counts the runs that failed since the last one that did not, the newest first.
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

// Spending is what Budget looks at.
type Spending interface {
	// Limits are the budgets of all users; 0 is none.
	Limits() (day, month float64)
	Since(ctx context.Context, since time.Time) (float64, error)
	// Lifted reports whether the budgets are lifted for today.
	Lifted(ctx context.Context) (bool, error)
}

// Budget finds that most of a budget of all users is spent. It is over with its day or month, and when the budget is raised.
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
			found = append(found, Trouble{Key: "budget-day/" + today.Format(time.DateOnly), Text: text, Over: p().Text("alert.budget-day-over")})
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
			found = append(found, Trouble{Key: "budget-month/" + first.Format(time.DateOnly), Text: text, Over: p().Text("alert.budget-month-over")})
		}
		return found, true, nil
	}}
}

// nearlySpent gives what was spent since a moment, and whether that is most of a limit; a limit of 0 is none.
func nearlySpent(ctx context.Context, since time.Time, limit float64, spent func(ctx context.Context, since time.Time) (float64, error)) (float64, bool, error) {
	if limit <= 0 {
		return 0, false, nil
	}
	cost, err := spent(ctx, since)
	return cost, err == nil && cost*100 >= limit*spending.WarnAt, err
}
