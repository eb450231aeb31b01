package alerts

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/internal/health"
	"ductor/lang"
	"ductor/orchestrator"
)

// alertStore is a Store that survives Watchers and records the owner's notices.
type alertStore struct {
	open map[string]orchestrator.Alert
	told []string
}

func (n *alertStore) Alerts(context.Context) (all []orchestrator.Alert, err error) {
	for _, a := range n.open {
		all = append(all, a)
	}
	return all, nil
}

func (n *alertStore) BeginAlert(_ context.Context, a orchestrator.Alert, notice *orchestrator.Message) error {
	n.open[a.Key] = a
	return n.record(notice)
}

func (n *alertStore) EndAlert(_ context.Context, key string, notice *orchestrator.Message) error {
	delete(n.open, key)
	return n.record(notice)
}

func (n *alertStore) record(m *orchestrator.Message) error {
	if m != nil {
		n.told = append(n.told, m.Key)
	}
	return nil
}

// watch runs a new Watcher with checks for a while, as a process of its own would.
func (n *alertStore) watch(t *testing.T, d time.Duration, checks ...Check) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	New(Options{
		Store: n, Checks: checks, Compose: func(text string, logIn orchestrator.LogInID) *orchestrator.Message {
			if logIn != "" {
				text += " [" + string(logIn) + "]"
			}
			return &orchestrator.Message{Key: text}
		}, Wake: func() {},
		Since: func(at time.Time) string { return at.UTC().Format("15:04") }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}).Run(ctx)
}

func english() lang.Printer { return lang.Printer{} }

func (n *alertStore) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(n.told, want) {
		t.Errorf("the owner was told %q, want %q", n.told, want)
	}
	n.told = nil
}

// The owner gets one notice when a trouble begins and one when it is over, regardless of restarts.
func TestOneNoticeAtTheBeginningAndOneAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, free := &alertStore{open: map[string]orchestrator.Alert{}}, uint64(100<<30)
		disk := Disk(english, "/state", func(string) (uint64, uint64, error) { return free, 200 << 30, nil })
		n.watch(t, time.Hour, disk)
		n.expect(t)
		free = 1 << 30
		n.watch(t, time.Hour, disk)
		n.watch(t, time.Hour, disk)
		n.expect(t, english().Text("alert.disk", "/state", uint64(1024)))
		free = 11 << 30 // above the limit, but not enough to end the trouble
		n.watch(t, time.Hour, disk)
		n.expect(t)
		free = 20 << 30
		n.watch(t, time.Hour, disk)
		n.watch(t, time.Hour, disk)
		n.expect(t, english().Text("alert.disk-over", "/state"))
	})
}

// While Telegram is unreachable, no notice is sent. Once it is back, the owner learns since when it was unreachable.
func TestAnOutageOfTelegramIsReportedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, polling := &alertStore{open: map[string]orchestrator.Alert{}}, health.OK
		heard := time.Now().Add(time.Hour + 57*time.Minute) // the check fails some minutes later
		away := Telegram(english, func() health.State { return health.State{Polling: polling, Answered: heard} })
		for _, polling = range []health.Status{health.Starting, health.OK, health.Failing, health.Failing, health.Starting, health.Stuck} {
			n.watch(t, time.Hour, away)
		}
		n.expect(t)
		polling = health.OK
		n.watch(t, time.Hour, away)
		n.expect(t, english().Text("alert.telegram-over", "01:57"))
	})
}

// If a check cannot determine the state, nothing changes.
func TestACheckThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &alertStore{open: map[string]orchestrator.Alert{"disk": {Kind: "disk", Key: "disk"}}}
		n.watch(t, time.Hour, Disk(english, "/state", func(string) (uint64, uint64, error) { return 0, 0, errors.New("gone") }))
		n.expect(t)
	})
}

// The owner learns that a recently used account has lost its log-in, but not of accounts that were never used.
func TestAnAgentIsLoggedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, state := &alertStore{open: map[string]orchestrator.Alert{}}, cli.Authenticated
		out := cli.Auth{State: cli.Installed, Fix: "Log in."}
		check := LogIns(english, func(context.Context) []cli.MenuEntry {
			return []cli.MenuEntry{
				{Agent: "claude", Auth: out},
				{Agent: "claude", Account: "work", Auth: cli.Auth{State: state, Fix: "Run claude."}},
				{Agent: "codex", Auth: cli.Auth{State: cli.Authenticated}}, {Agent: "codex", Account: "work", Auth: out},
				{Agent: "gemini", Auth: cli.Auth{State: cli.NotFound}},
			}
		}, func(_ context.Context, q orchestrator.UsageQuery) ([]orchestrator.UsageRow, error) {
			if q.By != orchestrator.UsageByAccount {
				t.Errorf("the usage is by %s", q.By)
			}
			return []orchestrator.UsageRow{{Name: ""}, {Name: "claude@work"}, {Name: "codex"}, {Name: "gemini"}}, nil
		}, time.Now)
		n.watch(t, time.Hour, check)
		n.expect(t)
		state = cli.Installed
		n.watch(t, time.Hour, check)
		n.expect(t, english().Text("alert.log-in", "Claude (work)", "Run claude.")+" [claude@work@]")
		state = cli.Authenticated
		n.watch(t, time.Hour, check)
		n.expect(t, english().Text("alert.log-in-over", "Claude (work)"))
	})
}

type jobStore struct {
	paused bool
	runs   []orchestrator.JobRun
}

func (s *jobStore) Jobs(context.Context) ([]orchestrator.JobStatus, error) {
	return []orchestrator.JobStatus{{Job: orchestrator.Job{ID: "j", Name: "report", Paused: s.paused}, Last: &orchestrator.JobRun{}}}, nil
}

func (s *jobStore) Runs(context.Context, orchestrator.JobID, int) ([]orchestrator.JobRun, error) {
	return s.runs, nil
}

// The owner gets a notice if a job failed three times in a row, and another one once a run succeeds or the job is
// paused.
func TestAJobFailsAgainAndAgain(t *testing.T) {
	const f, d, s = orchestrator.RunFailed, orchestrator.RunDone, orchestrator.RunSkipped
	said, over := english().Text("alert.job", "report", 3), english().Text("alert.job-over", "report")
	synctest.Test(t, func(t *testing.T) {
		n, store := &alertStore{open: map[string]orchestrator.Alert{}}, &jobStore{}
		for _, c := range []struct {
			states []orchestrator.JobRunState // newest first
			paused bool
			want   []string
		}{
			{[]orchestrator.JobRunState{f, f, d, f}, false, nil},
			{[]orchestrator.JobRunState{f, s, f, f}, false, []string{said}},
			{[]orchestrator.JobRunState{s, s, s, s, f}, false, nil},
			{[]orchestrator.JobRunState{d, f, f, f}, false, []string{over}},
			{[]orchestrator.JobRunState{f, f, f}, false, []string{said}},
			{[]orchestrator.JobRunState{f, f, f}, true, []string{over}},
		} {
			store.runs, store.paused = nil, c.paused
			for _, state := range c.states {
				store.runs = append(store.runs, orchestrator.JobRun{State: state})
			}
			n.watch(t, time.Hour, Jobs(english, store))
			n.expect(t, c.want...)
		}
	})
}

// spent provides the costs of all users, with a budget of 10 dollars a day.
type spent struct {
	cost   *float64
	lifted bool
}

func (*spent) Limits() (day, month float64)                        { return 10, 0 }
func (s *spent) Since(context.Context, time.Time) (float64, error) { return *s.cost, nil }
func (s *spent) Lifted(context.Context) (bool, error)              { return s.lifted, nil }

// The notice about a lifted budget says that it is lifted and does not announce an end.
func TestABudgetThatIsLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, cost := &alertStore{open: map[string]orchestrator.Alert{}}, 11.0
		n.watch(t, time.Hour, Budget(english, &spent{&cost, true}, time.Now))
		n.expect(t, english().Text("alert.budget-day-lifted", english().Cost(11), english().Cost(10)))
	})
}

// The notice comes at 80 % of the budget, and the trouble ends with the day.
func TestABudgetIsNearlySpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, cost := &alertStore{open: map[string]orchestrator.Alert{}}, 7.9
		check := Budget(english, &spent{&cost, false}, time.Now)
		n.watch(t, time.Hour, check)
		n.expect(t)
		cost = 8
		n.watch(t, time.Hour, check)
		n.watch(t, time.Hour, check)
		n.expect(t, english().Text("alert.budget-day", english().Cost(8), english().Cost(10)))
		time.Sleep(24 * time.Hour)
		cost = 0
		n.watch(t, time.Hour, check)
		n.expect(t, english().Text("alert.budget-day-over"))
	})
}

// The owner gets one alert for each window of a limit, although the used part falls below 80 % and rises again.
func TestALimitOfAPlanIsNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &alertStore{open: map[string]orchestrator.Alert{}}
		limit := cli.PlanLimit{Window: cli.LimitWindow{Span: 5 * time.Hour}, Resets: time.Now().Add(5 * time.Hour)}
		check := Limits(english, func(context.Context) ([]cli.AccountLimits, error) {
			return []cli.AccountLimits{{Agent: "claude", Limits: []cli.PlanLimit{limit}}}, nil
		}, time.Now)
		text := func() string {
			of := cli.AccountLimits{Agent: "claude", Limits: []cli.PlanLimit{limit}}
			return english().Text("alert.limit", of.Text(english(), time.Now()))
		}
		for _, limit.Used = range []float64{0.79, 0.8, 0.79, 1} {
			want := text()
			n.watch(t, 10*time.Minute, check)
			if limit.Used == 0.8 {
				n.expect(t, want)
			}
			n.expect(t)
		}
		time.Sleep(5 * time.Hour)
		n.watch(t, time.Minute, check)
		if n.expect(t); len(n.open) != 0 {
			t.Errorf("after the reset %d alerts are open", len(n.open))
		}
		limit.Resets, limit.Used = time.Now().Add(5*time.Hour), 0.9
		want := text()
		n.watch(t, time.Hour, check)
		n.expect(t, want)
	})
}
