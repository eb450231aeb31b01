package heartbeat_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/orchestrator"
)

// TestSuspend stops timers for eight hours while the wall clock continues. The scheduler notices the new time within
// Options.Poll, and applies the policy for missed runs.
func TestSuspend(t *testing.T) {
	for policy, want := range map[string][]string{
		orchestrator.MissedSkip: {"18:00"},
		orchestrator.MissedOnce: {"17:30", "18:00"},
		orchestrator.MissedAll:  {"17:30", "17:30", "17:30", "17:30", "17:30", "17:30", "17:30", "17:30", "18:00"},
	} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newRig(t, day.Add(9*time.Hour+30*time.Minute-8*time.Second))
				st := h.add(t, "0 * * * *", func(j *orchestrator.Job) { j.Missed = policy })
				h.start(t)
				time.Sleep(8 * time.Second)
				h.moveClock(8 * time.Hour) // from 9:30 to 17:30: 10:00 to 17:00 are missed
				time.Sleep(45 * time.Minute)
				h.stop()
				var got []string
				for _, at := range h.runner.times() {
					got = append(got, at.UTC().Format("15:04"))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				runs, err := h.Runs(t.Context(), st.Job.ID, here, 20)
				if err != nil {
					t.Fatal(err)
				}
				stand := 0
				for _, r := range runs {
					stand += r.StandsFor
				}
				if stand != 9 {
					t.Errorf("the runs stand for %d moments of 9", stand)
				}
			})
		})
	}
}

// TestAClockThatIsSetBack: no time runs twice, and a clock that was a year ahead does not block a job for a year.
func TestAClockThatIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day.Add(7*time.Hour+55*time.Minute))
		h.add(t, "0 8 * * *")
		h.start(t)
		ran := func(when string, want int) {
			t.Helper()
			if got := len(h.runner.times()); got != want {
				t.Errorf("%s: it ran %d times, want %d", when, got, want)
			}
		}
		time.Sleep(10 * time.Minute)
		ran("first morning", 1)
		h.moveClock(-30 * time.Minute) // 7:35 again
		time.Sleep(time.Hour)
		ran("a little back", 1)
		h.moveClock(-4 * time.Hour) // 4:35 again
		time.Sleep(8 * time.Hour)
		ran("hours back", 1)
		time.Sleep(24 * time.Hour)
		ran("second morning", 2)
		h.moveClock(year)
		time.Sleep(time.Minute)
		ran("a year ahead", 3)
		h.moveClock(-year)
		time.Sleep(24 * time.Hour)
		ran("and back", 4)
		h.stop()
	})
}

// TestQuietHours: due runs wait for the end of quiet hours or are skipped; a user may still run the job.
func TestQuietHours(t *testing.T) {
	for policy, want := range map[string][]string{
		orchestrator.QuietHold: {"21:00", "03:00", "07:00", "09:00"},
		orchestrator.QuietSkip: {"21:00", "03:00", "09:00"},
	} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newRig(t, day.Add(18*time.Hour))
				st := h.add(t, "0 9,21,23 * * *", func(j *orchestrator.Job) {
					j.QuietFrom, j.QuietTo, j.QuietPolicy = "22:00", "07:00", policy
				})
				h.start(t)
				time.Sleep(9 * time.Hour)
				if _, err := h.RunNow(t.Context(), st.Job.ID, here, "press 1"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(7 * time.Hour)
				h.stop()
				var got []string
				for _, at := range h.runner.times() {
					got = append(got, at.UTC().Format("15:04"))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestAClockThatIsSetBackToBeforeAJobWasMade: no schedule makes the job wait for the day when it was created.
func TestAClockThatIsSetBackToBeforeAJobWasMade(t *testing.T) {
	for schedule, want := range map[string]int{"every 2h": 12, "0 */2 * * *": 12, "0 8 * * *": 1, "30 0 8 * * *": 1} {
		t.Run(schedule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newRig(t, day.Add(40*24*time.Hour+7*time.Minute))
				h.add(t, schedule)
				h.start(t)
				time.Sleep(time.Minute)
				h.moveClock(-35 * 24 * time.Hour)
				time.Sleep(24 * time.Hour)
				h.stop()
				if got := len(h.runner.times()); got != want {
					t.Errorf("on the day after it ran %d times, want %d: %v", got, want, h.runner.times())
				}
			})
		})
	}
}
