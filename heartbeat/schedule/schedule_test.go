package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/heartbeat/schedule"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

const stamp = "2006-01-02 15:04:05 -0700"

// dueTimes lists the next times of schedules, above all around changes of the clock.
var dueTimes = []struct {
	name, line, zone, after string
	want                    []string
}{
	{"a cron line", "30 8 * * 1-5", "Europe/Paris", "2026-11-20 09:00:00 +0100",
		[]string{"2026-11-23 08:30:00 +0100", "2026-11-24 08:30:00 +0100"}},
	{"seconds", "*/30 0 9 * * *", "UTC", "2026-11-20 09:00:00 +0000",
		[]string{"2026-11-20 09:00:30 +0000", "2026-11-21 09:00:00 +0000"}},
	{"a zone of its own wins", "CRON_TZ=Asia/Tokyo 0 9 * * *", "Europe/Paris", "2026-06-01 00:00:00 +0000",
		[]string{"2026-06-02 09:00:00 +0900"}},
	{"a word", "@daily", "Europe/Paris", "2026-06-01 12:00:00 +0200", []string{"2026-06-02 00:00:00 +0200"}},
	{"left out when the clock is set forward: made up for right after", "30 2 * * *", "Europe/Paris",
		"2026-03-28 03:00:00 +0100",
		[]string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:30:00 +0200"}},
	{"two that are left out are one", "15,45 2 * * *", "Europe/Paris", "2026-03-28 03:00:00 +0100",
		[]string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:15:00 +0200"}},
	{"comes twice when the clock is set back: the first time", "30 2 * * *", "Europe/Paris",
		"2026-10-24 03:00:00 +0200",
		[]string{"2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"}},
	{"asked in between the two", "30 2 * * *", "Europe/Paris", "2026-10-25 02:10:00 +0100",
		[]string{"2026-10-26 02:30:00 +0100"}},
	{"every hour goes by real hours, back", "0 * * * *", "Europe/Paris", "2026-10-25 01:30:00 +0200",
		[]string{"2026-10-25 02:00:00 +0200", "2026-10-25 02:00:00 +0100", "2026-10-25 03:00:00 +0100"}},
	{"every hour goes by real hours, forward", "0 * * * *", "Europe/Paris", "2026-03-29 01:30:00 +0100",
		[]string{"2026-03-29 03:00:00 +0200", "2026-03-29 04:00:00 +0200"}},
	{"America", "30 2 * * *", "America/New_York", "2026-03-07 12:00:00 -0500",
		[]string{"2026-03-08 03:00:00 -0400", "2026-03-09 02:30:00 -0400"}},
	{"half an hour is enough", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00 +1030",
		[]string{"2026-10-04 02:30:00 +1100", "2026-10-05 02:15:00 +1100"}},
	{"a midnight that is not there", "0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00:00 -0300",
		[]string{"2018-11-04 01:00:00 -0200", "2018-11-05 00:00:00 -0200"}},
	{"a day that is not there", "0 9 * * *", "Pacific/Apia", "2011-12-29 12:00:00 -1000",
		[]string{"2011-12-31 00:00:00 +1400", "2011-12-31 09:00:00 +1400"}},
	{"an interval knows no clocks", "every 12h", "Europe/Paris", "2026-10-24 18:00:00 +0200",
		[]string{"2026-10-25 02:00:00 +0200", "2026-10-25 13:00:00 +0100"}},
	{"once", "at 2026-11-22 08:00", "Europe/Paris", "2026-11-20 00:00:00 +0100",
		[]string{"2026-11-22 08:00:00 +0100"}},
	{"once, at a moment that is not there", "at 2026-03-29 02:30", "Europe/Paris", "2026-03-20 00:00:00 +0100",
		[]string{"2026-03-29 03:00:00 +0200"}},
	{"a leap day", "0 9 29 2 *", "UTC", "2026-01-01 00:00:00 +0000", []string{"2028-02-29 09:00:00 +0000"}},
}

func TestDueTimes(t *testing.T) {
	for _, c := range dueTimes {
		t.Run(c.name, func(t *testing.T) {
			at, err := time.Parse(stamp, c.after)
			if err != nil {
				t.Fatal(err)
			}
			anchor := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			plan, err := schedule.Parse(c.line, zone(t, c.zone), anchor)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range c.want {
				at = plan.Next(at)
				got = append(got, at.Format(stamp))
				if c.line[:3] == "eve" {
					got[len(got)-1] = at.In(zone(t, c.zone)).Format(stamp)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidSchedules(t *testing.T) {
	for _, line := range []string{"", "hello", "* * *", "* * * * * * *", "60 * * * *", ", * * * *", "0 , * * *",
		"*/0 * * * *",
		"TZ=", "TZ=0", "CRON_TZ=Nowhere/Land 0 9 * * *", "CRON_TZ=../../etc/passwd 0 9 * * *", "CRON_TZ= 0 9 * * *",
		"CRON_TZ=UTC TZ=UTC 0 9 * * *", "CRON_TZ=Local 0 9 * * *", "@never", "@every 2h x",
		"every", "every 5s", "every -2h", "every 9000h", "every 90.5s", "at noon", "at 2026-13-01 08:00",
		"at 2026-02-30 08:00"} {
		if _, err := schedule.Parse(line, time.UTC, time.Time{}); err == nil {
			t.Errorf("%q is taken for a schedule", line)
		}
	}
}

// TestAYearOfADailyJobHasEachDayOnce in every zone and for every time of day: one run on every day, despite changes of
// the clock.
func TestAYearOfADailyJobHasEachDayOnce(t *testing.T) {
	zones := []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/St_Johns",
		"Africa/Casablanca",
		"Asia/Kathmandu", "America/Santiago", "Pacific/Chatham", "UTC"}
	rapid.Check(t, func(t *rapid.T) {
		loc, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		minute, hour := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 23).Draw(t, "hour")
		year := rapid.IntRange(2020, 2030).Draw(t, "year")
		plan, err := schedule.Parse(strings.Join([]string{itoa(minute), itoa(hour), "* * *"}, " "), loc, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(year, 1, 1, 0, 0, 0, 0, loc).Add(-time.Second)
		day := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		for ; day.Year() == year; day = day.AddDate(0, 0, 1) {
			next := plan.Next(at)
			if !next.After(at) || next.YearDay() != day.YearDay() || next.Year() != year {
				t.Fatalf("after %s comes %s, and not a moment of %s", at, next, day.Format(time.DateOnly))
			}
			if next.Hour() != hour || next.Minute() != minute {
				if _, before := next.Add(-time.Second).Zone(); before == offset(next) {
					t.Fatalf("%s is not the time of day, and no clock was set then", next)
				}
			}
			at = next
		}
	})
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

func itoa(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }

// TestMomentsGoForward: for every line and zone, the next time is later, and no due time lies in between.
func TestMomentsGoForward(t *testing.T) {
	field := func(most int) *rapid.Generator[string] {
		return rapid.OneOf(rapid.Just("*"), rapid.Just("*/7"), rapid.Map(rapid.IntRange(1, most), itoa))
	}
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join([]string{field(59).Draw(t, "minute"), field(23).Draw(t, "hour"), field(28).Draw(t, "day"),
			field(12).Draw(t, "month"), field(6).Draw(t, "weekday")}, " ")
		loc, err := time.LoadLocation(rapid.SampledFrom([]string{"Europe/Paris", "America/Sao_Paulo",
			"Australia/Lord_Howe"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := schedule.Parse(line, loc, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(1_500_000_000, 1_900_000_000).Draw(t, "from"), 0)
		next := plan.Next(from)
		if next.IsZero() {
			return
		}
		between := from.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(from))-1).Draw(t, "between")))
		if again := plan.Next(between); !again.Equal(next) || !next.After(from) {
			t.Fatalf("%q: after %s comes %s, but after %s in between comes %s", line, from, next, between, again)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{"30 8 * * 1-5", "CRON_TZ=Asia/Tokyo 0 9 * * *", "@daily", "every 2h",
		"at 2026-11-22 08:00", "TZ=0",
		"1-5/2,7 */3 ? JAN-MAR sun", "* * * * * *", "0 0 30 2 *"} {
		f.Add(line, int64(1_790_000_000))
	}
	paris := zone(f, "Europe/Paris")
	f.Fuzz(func(t *testing.T, line string, from int64) {
		from %= 4_000_000_000
		at := time.Unix(from, 0)
		plan, err := schedule.Parse(line, paris, time.Unix(1_700_000_000, 0))
		if err != nil {
			return
		}
		for range 3 {
			next := plan.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q: after %s comes %s", line, at, next)
			}
			at = next
		}
	})
}
