package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/heartbeat/schedule"
	"ductor/lang"
)

func TestDescribe(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for line, want := range map[string]string{
		"30 8 * * 1-5":                 "every weekday at 8:30",
		"0 30 8 * * 1-5":               "every weekday at 8:30",
		"0 9,17 * * *":                 "every day at 9:00 and 17:00",
		"0 7 * * 1,5":                  "on mondays and fridays at 7:00",
		"0 10 * * 0,6":                 "on weekends at 10:00",
		"0 9 1,15,22,23 * *":           "on the 1st and 15th and 22nd and 23rd at 9:00",
		"0 * * * *":                    "every hour",
		"5 * * * *":                    "every hour at minute 5",
		"*/15 * * * *":                 "every 15 minutes of the clock",
		"every 2h":                     "every 2 hours",
		"every 1h":                     "every hour",
		"every 90m":                    "every 90 minutes",
		"every 90s":                    "every 90 seconds",
		"at 2026-12-24 18:00":          "once, on Thu 24 Dec 2026 at 18:00",
		"at 2026-12-24 18:00:30":       "once, on Thu 24 Dec 2026 at 18:00:30",
		"at 2026-12-24T18:00:00+01:00": "once, on Thu 24 Dec 2026 at 18:00",
		"at 2026-12-24T18:00:00-12:00": "once, on Fri 25 Dec 2026 at 07:00",
		"at 2026-07-24T18:00:00Z":      "once, on Fri 24 Jul 2026 at 20:00",
		"@daily":                       "every day at 0:00",
		"@weekly":                      "on sundays at 0:00",
		"15 30 8 * * *":                "by the cron line 15 30 8 * * *",
		"0 9 1 * 1":                    "by the cron line 0 9 1 * 1",
		"0 9 * 3 *":                    "by the cron line 0 9 * 3 *",
		"0 9-17 * * *":                 "by the cron line 0 9-17 * * *",
		"70 9 * * *":                   "by the cron line 70 9 * * *",
		"0 9 0 * *":                    "by the cron line 0 9 0 * *",
		"0 9 * * 7":                    "by the cron line 0 9 * * 7",
		"*/7 * * * *":                  "by the cron line */7 * * * *",
		"at no time that there is":     "by the cron line at no time that there is",
	} {
		if got := schedule.Describe(lang.Printer{}, line, berlin); got != want {
			t.Errorf("%q is described as %q, not %q", line, got, want)
		}
	}
}

// TestParseSentenceReadsDescriptions: parsing a schedule's description returns the same schedule.
func TestParseSentenceReadsDescriptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := fmt.Sprintf("%d:%02d", rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"))
		sentence := rapid.SampledFrom([]string{"every day at ", "every weekday at ", "on weekends at ",
			"on mondays and fridays at ",
			"on the 1st and the 15th at ", "on the 3rd at ", "weekly on tuesday at "}).Draw(t, "days") + clock
		if rapid.Bool().Draw(t, "interval") {
			sentence = fmt.Sprintf("every %d %s", rapid.IntRange(1, 59).Draw(t, "n"),
				rapid.SampledFrom([]string{"minutes", "hours"}).Draw(t, "unit"))
		}
		said, err := schedule.ParseSentence(sentence, friday, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		words := schedule.Describe(lang.Printer{}, said.Line, time.UTC)
		again, err := schedule.ParseSentence(words, friday, time.UTC)
		if err != nil || again.Line != said.Line {
			t.Fatalf("%q is %q, which is described as %q and that is %q, %v", sentence, said.Line, words,
				again.Line, err)
		}
	})
}
