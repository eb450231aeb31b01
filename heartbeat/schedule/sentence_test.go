package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/heartbeat/schedule"
)

// friday is the time at which the tests parse sentences.
var friday = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestSentences(t *testing.T) {
	for sentence, want := range map[string]schedule.Spec{
		"every weekday at 8:30":                       {Line: "30 8 * * 1-5"},
		"Every Weekday at 8:30":                       {Line: "30 8 * * 1-5"},
		"on weekdays at 8.30":                         {Line: "30 8 * * 1-5"},
		"weekends at noon":                            {Line: "0 12 * * 0,6"},
		"every 2 hours":                               {Line: "every 2h"},
		"every two hours":                             {Line: "every 2h"},
		"every 90m":                                   {Line: "every 90m"},
		"every 90 minutes":                            {Line: "every 1h30m"},
		"every half an hour":                          {Line: "every 30m"},
		"hourly":                                      {Line: "every 1h"},
		"every hour":                                  {Line: "every 1h"},
		"on mondays at 7":                             {Line: "0 7 * * 1"},
		"mondays, wednesdays and fridays at 7":        {Line: "0 7 * * 1,3,5"},
		"every mon and thu at 9pm":                    {Line: "0 21 * * 1,4"},
		"every sunday at midnight":                    {Line: "0 0 * * 0"},
		"weekly on tuesday at 18:05":                  {Line: "5 18 * * 2"},
		"daily at 07:00 Europe/Paris":                 {Line: "0 7 * * *", Zone: "Europe/Paris"},
		"every day at 9 and 17":                       {Line: "0 9,17 * * *"},
		"every day at 7 pm":                           {Line: "0 19 * * *"},
		"every day at 12am UTC":                       {Line: "0 0 * * *", Zone: "UTC"},
		"each weekday at 7":                           {Line: "0 7 * * 1-5"},
		"on workdays at 7":                            {Line: "0 7 * * 1-5"},
		"every week on monday at 7":                   {Line: "0 7 * * 1"},
		"every month on the 2nd at 7":                 {Line: "0 7 2 * *"},
		"on the 5th of each month at 7":               {Line: "0 7 5 * *"},
		"tues, weds and thurs at 7":                   {Line: "0 7 * * 2,3,4"},
		"every minute":                                {Line: "every 1m"},
		"every day 6:15":                              {Line: "15 6 * * *"},
		"every evening at 19:00":                      {Line: "0 19 * * *"},
		"on the 1st at 9":                             {Line: "0 9 1 * *"},
		"on the 1st and the 15th of every month at 9": {Line: "0 9 1,15 * *"},
		"monthly on the 3rd at 10:00":                 {Line: "0 10 3 * *"},
		"tomorrow at 9":                               {Line: "at 2026-11-21 09:00"},
		"today at 18:00":                              {Line: "at 2026-11-20 18:00"},
		"next friday at 9":                            {Line: "at 2026-11-27 09:00"},
		"next monday at 9":                            {Line: "at 2026-11-23 09:00"},
		"on 2026-12-24 at 18:00":                      {Line: "at 2026-12-24 18:00"},
		"in 20 minutes":                               {Line: "at 2026-11-20T12:20:00Z"},
		"in an hour":                                  {Line: "at 2026-11-20T13:00:00Z"},
		"in half an hour":                             {Line: "at 2026-11-20T12:30:00Z"},
		"on mondays and on fridays at 7 p.m.":         {Line: "0 19 * * 1,5"},
		"every day at 12pm and 17":                    {Line: "0 12,17 * * *"},
		"in 3 days":                                   {Line: "at 2026-11-23 12:00:00"},
		"tomorrow at 9 Asia/Tokyo":                    {Line: "at 2026-11-21 09:00", Zone: "Asia/Tokyo"},
		"30 8 * * 1-5":                                {Line: "30 8 * * 1-5"},
		"30 8 * * 1-5 Europe/Paris":                   {Line: "30 8 * * 1-5", Zone: "Europe/Paris"},
		"0 30 8 * * *":                                {Line: "0 30 8 * * *"},
		"@daily":                                      {Line: "@daily"},
		"CRON_TZ=Asia/Tokyo 0 9 * * *":                {Line: "CRON_TZ=Asia/Tokyo 0 9 * * *"},
		"at 2026-11-22 08:00":                         {Line: "at 2026-11-22 08:00"},
	} {
		got, err := schedule.ParseSentence(sentence, friday, time.UTC)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", sentence, got, err, want)
		}
	}
}

// TestSpansWhenClocksChange: hours and shorter units are elapsed time, days and weeks are days of the calendar.
func TestSpansWhenClocksChange(t *testing.T) {
	for _, c := range []struct{ now, sentence, want string }{
		{"2026-10-25T02:10:00+01:00", "in 20 minutes", "2026-10-25T02:30:00+01:00"}, // clocks show 02:10 again
		{"2026-10-25T02:40:00+02:00", "in 30 minutes", "2026-10-25T02:10:00+01:00"},
		{"2026-10-25T02:10:00+02:00", "in 20 minutes", "2026-10-25T02:30:00+02:00"},
		{"2026-10-24T23:00:00+02:00", "in 8h", "2026-10-25T06:00:00+01:00"},
		{"2026-10-24T23:00:00+02:00", "in 24 hours", "2026-10-25T22:00:00+01:00"},
		{"2026-10-24T23:00:00+02:00", "in a day", "2026-10-25T23:00:00+01:00"},
		{"2026-10-24T23:00:00+02:00", "in 2 weeks", "2026-11-07T23:00:00+01:00"},
		{"2026-03-29T01:00:00+01:00", "in 2 hours", "2026-03-29T04:00:00+02:00"},
		{"2026-03-28T02:30:00+01:00", "in one day", "2026-03-29T03:00:00+02:00"}, // clocks skip 02:30
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := schedule.ParseSentence(c.sentence+" Europe/Berlin", now, time.UTC)
		if err != nil {
			t.Errorf("%s at %s: %v", c.sentence, c.now, err)
			continue
		}
		berlin := zone(t, spec.Zone)
		plan, err := schedule.Parse(spec.Line, berlin, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Next(now).In(berlin).Format(time.RFC3339); got != c.want {
			t.Errorf("%s at %s is %s, want %s", c.sentence, c.now, got, c.want)
		}
	}
}

// TestReasonIsOfTheClosestForm: the error is about the form that matched the most words.
func TestReasonIsOfTheClosestForm(t *testing.T) {
	for sentence, want := range map[string]string{
		"soon":                      `I don't know when "soon" is`,
		"every morning":             "Write at what time",
		"every friday":              "Write at what time",
		"every day at nine":         `"nine" isn't a time of day`,
		"every 3 bananas":           `"banana" isn't a unit of time`,
		"every 2 hours at 9":        `I don't know what "at 9" means there`,
		"on friday at 9":            `"on friday" could mean once or always: write "next friday" or "every friday"`,
		"on thurs at 9":             `"on thurs" could mean once or always: write "next thurs" or "every thurs"`,
		"next week at 9":            `Write on which day, such as "next friday at 9"`,
		"weekly":                    "Write on which day of the week",
		"monthly":                   `Write on which day of the month, such as "on the 1st"`,
		"on the 1st of june at 9":   "I only understand days of every month",
		"every day at 9 and 17:30":  "All times of a job need the same minute; make two jobs",
		"tomorrow at 9 and 10":      "A job that runs once needs exactly one time of day",
		"every day at 9 and always": `"always" isn't a time of day`,
	} {
		_, err := schedule.ParseSentence(sentence, friday, time.UTC)
		if !errors.Is(err, schedule.ErrUnclear) || !strings.HasPrefix(err.Error(), want+". ") {
			t.Errorf("%q: %v, want %q", sentence, err, want)
		}
	}
}

// TestUnclearSentences: ParseSentence does not guess at sentences with two meanings or none.
func TestUnclearSentences(t *testing.T) {
	for _, sentence := range []string{
		"", "soon", "every", "every day", "every morning", "every other day at 9", "every fortnight", "on friday at 9",
		"every day at 25:00", "every day at 9:5", "every day at 13pm", "every day at 9 and 17:30", "every 3 bananas",
		"every 2 hours at 9", "daily at 9 Mars/Crater", "on the 32nd at 9", "on the 1st of june at 9", "monthly",
		"tomorrow", "in a while", "next week at 9", "every day at nine", strings.Repeat("every ", 20),
	} {
		if said, err := schedule.ParseSentence(sentence, friday, time.UTC); !errors.Is(err, schedule.ErrUnclear) {
			t.Errorf("%q is %+v, %v", sentence, said, err)
		}
	}
	for _, sentence := range []string{"every 10 seconds", "today at 9", "at 2020-01-01 08:00", "every 99999 days",
		"0 0 30 2 *"} {
		if said, err := schedule.ParseSentence(sentence, friday, time.UTC); err == nil {
			t.Errorf("%q is %+v", sentence, said)
		}
	}
}

func TestARequestIsWhenAndWhat(t *testing.T) {
	type asked struct{ When, What string }
	for text, want := range map[string]asked{
		"every weekday at 8:30 check the CI":             {"30 8 * * 1-5", "check the CI"},
		"every weekday at 8:30: check the CI":            {"30 8 * * 1-5", "check the CI"},
		"every weekday at 8:30, check src/main.go":       {"30 8 * * 1-5", "check src/main.go"},
		"every 2 hours\nlook at the logs\nand tell me":   {"every 2h", "look at the logs\nand tell me"},
		"30 8 * * 1-5\n3 things to do":                   {"30 8 * * 1-5", "3 things to do"},
		"30 8 * * 1-5 say what is new":                   {"30 8 * * 1-5", "say what is new"},
		"in 20 minutes remind me of the oven":            {"at 2026-11-20T12:20:00Z", "remind me of the oven"},
		"daily at 7 and 19 water the plants":             {"0 7,19 * * *", "water the plants"},
		"daily at 7 and water the plants":                {"0 7 * * *", "and water the plants"},
		"tomorrow at 9":                                  {"at 2026-11-21 09:00", ""},
		"daily at 07:00 Europe/Paris read the Dow Jones": {"0 7 * * *", "read the Dow Jones"},
	} {
		said, what, err := schedule.ParseRequest(text, friday, time.UTC)
		if diff := cmp.Diff(want, asked{said.Line, what}); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	if _, _, err := schedule.ParseRequest("check src/main.go on friday at 9", friday,
		time.UTC); !errors.Is(err, schedule.ErrUnclear) {
		t.Errorf("no schedule in front: %v", err)
	}
}

// TestARequestWithAWrongTime: the error names the wrong time, and not the schedule's missing part.
func TestARequestWithAWrongTime(t *testing.T) {
	for text, want := range map[string]string{
		"every day at 25:00 check the CI":     `"25:00" isn't a time of day`,
		"tomorrow at 13pm check the CI":       `"13pm" isn't a time of day`,
		"every friday at 9:75\ncheck the CI":  `"9:75" isn't a time of day`,
		"every friday check the CI":           "Write at what time",
		"every day and 3 times check the tea": "Write at what time",
	} {
		_, _, err := schedule.ParseRequest(text, friday, time.UTC)
		if err == nil || !strings.HasPrefix(err.Error(), want+". ") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzSentence: a valid sentence has a time to come, and parsing its line again returns the same schedule.
func FuzzSentence(f *testing.F) {
	for _, s := range []string{"every weekday at 8:30 check", "in 20 minutes", "on the 1st and 15th at 9",
		"next fri at 7 pm",
		"daily at 07:00 Europe/Paris\nx", "every half an hour", "30 8 * * 1-5 x", "every 2h:", "at 2026-11-22 08:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		said, what, err := schedule.ParseRequest(text, friday, time.UTC)
		if err != nil {
			return
		}
		if !strings.Contains(text, what) {
			t.Fatalf("%q asks for %q, which is not in it", text, what)
		}
		loc := time.UTC
		if said.Zone != "" {
			loc = zone(t, said.Zone)
		}
		plan, err := schedule.Parse(said.Line, loc, friday)
		if err != nil || !plan.Next(friday).After(friday) {
			t.Fatalf("%q is %+v, which never comes: %v", text, said, err)
		}
	})
}
