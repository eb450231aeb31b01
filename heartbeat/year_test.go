package heartbeat_test

import (
	"testing"
	"testing/synctest"
	"time"

	"ductor/orchestrator"
)

// day is the first day of the tests' year.
var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const year = 365 * 24 * time.Hour

// TestAYear runs many kinds of jobs in Paris for a year, through both changes of the clock, and compares the times of
// their runs.
func TestAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paris := zone(t, "Europe/Paris")
		h := newRig(t, day.Add(-time.Hour), withSlowPoll, withZone("Europe/Paris"))
		counts := map[orchestrator.JobID]int{}
		for schedule, want := range map[string]int{
			"30 2 * * *":          365, // in the night of the clock changes
			"0 8 * * 1-5":         261,
			"0 0 1 * *":           12,
			"every 6h":            4 * 365,
			"0 * 25 * *":          11*24 + 25, // by elapsed hours: on one of these days the clock is set back
			"0 */6 * * *":         4 * 365,
			"0 9 29 2 *":          0,
			"at 2026-05-01 12:00": 1,
		} {
			counts[h.add(t, schedule, func(j *orchestrator.Job) { j.Prompt = schedule }).Job.ID] = want
		}
		h.start(t)
		time.Sleep(year + time.Minute)
		h.stop()
		got := map[orchestrator.JobID]int{}
		nights := map[string]int{}
		for i, o := range h.runner.asked {
			got[orchestrator.JobID(o.Wants.Own)]++
			if at := h.runner.at[i].In(paris); o.Prompt.Text == "30 2 * * *" {
				nights[at.Format(time.DateOnly)]++
				if clock := at.Format(time.TimeOnly); clock != "02:30:00" &&
					at.Format(time.DateTime) != "2026-03-29 03:00:00" {
					t.Errorf("the night's job ran at %s", at)
				}
			}
		}
		for id, want := range counts {
			if st := h.get(t, id); got[id] != want || st.Runs != want || st.CostUSD != float64(want)*0.25 {
				t.Errorf("%q was asked for %d times and ended %d for %v; want %d", st.Job.Schedule, got[id], st.Runs,
					st.CostUSD, want)
			}
		}
		if len(nights) != 365 {
			t.Errorf("the night's job ran in %d nights", len(nights))
		}
	})
}

// TestAYearOfADay runs daily jobs for a year in zones with unusual clock changes: by half an hour, in the southern
// summer, at midnight, and at a quarter to the hour elsewhere.
func TestAYearOfADay(t *testing.T) {
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "America/Santiago", "Pacific/Chatham"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loc := zone(t, name)
				start := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
				h := newRig(t, start.Add(-time.Minute), withSlowPoll, withZone(name))
				jobs := map[string]string{"10 15 0 * * *": "00:15:10", "20 15 2 * * *": "02:15:20",
					"0 12 * * *": "12:00:00"}
				for schedule := range jobs {
					h.add(t, schedule, func(j *orchestrator.Job) { j.Prompt = schedule })
				}
				quiet := h.add(t, "45 2 * * *", func(j *orchestrator.Job) {
					j.Prompt, j.QuietFrom, j.QuietTo = "quiet", "22:00", "07:00"
				})
				h.start(t)
				time.Sleep(time.Until(time.Now().Add(start.AddDate(1, 0, 0).Sub(start))))
				h.stop()
				jobs["quiet"] = "07:00:00"
				days := map[string]map[string]int{}
				for i, o := range h.runner.asked {
					at := h.runner.at[i].In(loc)
					if days[o.Prompt.Text] == nil {
						days[o.Prompt.Text] = map[string]int{}
					}
					days[o.Prompt.Text][at.Format(time.DateOnly)]++
					set := offset(at) != offset(at.Add(-time.Hour)) // a clock that is set forward may skip the time
					if clock := at.Format(time.TimeOnly); clock != jobs[o.Prompt.Text] && !set {
						t.Errorf("%q ran at %s", o.Prompt.Text, at)
					}
				}
				for prompt := range jobs {
					if len(days[prompt]) != 365 {
						t.Errorf("%q ran on %d days", prompt, len(days[prompt]))
					}
					for date, n := range days[prompt] {
						if n != 1 {
							t.Errorf("%q ran %d times on %s", prompt, n, date)
						}
					}
				}
				if st := h.get(t, quiet.Job.ID); st.Runs != 365 {
					t.Errorf("the quiet one ended %d times", st.Runs)
				}
			})
		})
	}
}

// TestAYearOfHours: by elapsed hours where clocks change by half an hour, each full hour of the wall clock once.
func TestAYearOfHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loc := zone(t, "Australia/Lord_Howe")
		h := newRig(t, day, withSlowPoll, withZone("Australia/Lord_Howe"))
		st := h.add(t, "0 * * * *")
		want := 0
		for at := day.Add(time.Minute); !at.After(day.Add(year)); at = at.Add(time.Minute) {
			if at.In(loc).Minute() == 0 {
				want++
			}
		}
		h.start(t)
		time.Sleep(year + time.Second)
		h.stop()
		if got := h.get(t, st.Job.ID).Runs; got != want {
			t.Errorf("it ran %d times, want %d", got, want)
		}
	})
}
