package heartbeat_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/heartbeat"
)

// friday is when the sentences of the tests are said.
var friday = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestSentences(t *testing.T) {
	for sentence, want := range map[string]heartbeat.Said{
		"every weekday at 8:30":                       {Schedule: "30 8 * * 1-5"},
		"Every Weekday at 8:30":                       {Schedule: "30 8 * * 1-5"},
		"on weekdays at 8.30":                         {Schedule: "30 8 * * 1-5"},
		"weekends at noon":                            {Schedule: "0 12 * * 0,6"},
		"every 2 hours":                               {Schedule: "every 2h"},
		"every two hours":                             {Schedule: "every 2h"},
		"every 90m":                                   {Schedule: "every 90m"},
		"every 90 minutes":                            {Schedule: "every 1h30m"},
		"every half an hour":                          {Schedule: "every 30m"},
		"hourly":                                      {Schedule: "every 1h"},
		"every hour":                                  {Schedule: "every 1h"},
		"on mondays at 7":                             {Schedule: "0 7 * * 1"},
		"mondays, wednesdays and fridays at 7":        {Schedule: "0 7 * * 1,3,5"},
		"every mon and thu at 9pm":                    {Schedule: "0 21 * * 1,4"},
		"every sunday at midnight":                    {Schedule: "0 0 * * 0"},
		"weekly on tuesday at 18:05":                  {Schedule: "5 18 * * 2"},
		"daily at 07:00 Europe/Paris":                 {Schedule: "0 7 * * *", Zone: "Europe/Paris"},
		"every day at 9 and 17":                       {Schedule: "0 9,17 * * *"},
		"every day at 7 pm":                           {Schedule: "0 19 * * *"},
		"every day at 12am UTC":                       {Schedule: "0 0 * * *", Zone: "UTC"},
		"every day 6:15":                              {Schedule: "15 6 * * *"},
		"every evening at 19:00":                      {Schedule: "0 19 * * *"},
		"on the 1st at 9":                             {Schedule: "0 9 1 * *"},
		"on the 1st and the 15th of every month at 9": {Schedule: "0 9 1,15 * *"},
		"monthly on the 3rd at 10:00":                 {Schedule: "0 10 3 * *"},
		"tomorrow at 9":                               {Schedule: "at 2026-11-21 09:00"},
		"today at 18:00":                              {Schedule: "at 2026-11-20 18:00"},
		"next friday at 9":                            {Schedule: "at 2026-11-27 09:00"},
		"next monday at 9":                            {Schedule: "at 2026-11-23 09:00"},
		"on 2026-12-24 at 18:00":                      {Schedule: "at 2026-12-24 18:00"},
		"in 20 minutes":                               {Schedule: "at 2026-11-20 12:20:00"},
		"in an hour":                                  {Schedule: "at 2026-11-20 13:00:00"},
		"in 3 days":                                   {Schedule: "at 2026-11-23 12:00:00"},
		"tomorrow at 9 Asia/Tokyo":                    {Schedule: "at 2026-11-21 09:00", Zone: "Asia/Tokyo"},
		"30 8 * * 1-5":                                {Schedule: "30 8 * * 1-5"},
		"30 8 * * 1-5 Europe/Paris":                   {Schedule: "30 8 * * 1-5", Zone: "Europe/Paris"},
		"0 30 8 * * *":                                {Schedule: "0 30 8 * * *"},
		"@daily":                                      {Schedule: "@daily"},
		"CRON_TZ=Asia/Tokyo 0 9 * * *":                {Schedule: "CRON_TZ=Asia/Tokyo 0 9 * * *"},
		"at 2026-11-22 08:00":                         {Schedule: "at 2026-11-22 08:00"},
	} {
		got, err := heartbeat.ParseSentence(sentence, friday, time.UTC)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", sentence, got, err, want)
		}
	}
}

// TestWhatIsNotUnderstoodSaysWhatIs: a sentence with two meanings, or none, is not guessed at.
func TestWhatIsNotUnderstoodSaysWhatIs(t *testing.T) {
	for _, sentence := range []string{
		"", "soon", "every", "every day", "every morning", "every other day at 9", "every fortnight", "on friday at 9",
		"every day at 25:00", "every day at 9:5", "every day at 13pm", "every day at 9 and 17:30", "every 3 bananas",
		"every 2 hours at 9", "daily at 9 Mars/Crater", "on the 32nd at 9", "on the 1st of june at 9", "monthly",
		"tomorrow", "in a while", "next week at 9", "every day at nine", strings.Repeat("every ", 20),
	} {
		if said, err := heartbeat.ParseSentence(sentence, friday, time.UTC); !errors.Is(err, heartbeat.ErrUnclear) {
			t.Errorf("%q is %+v, %v", sentence, said, err)
		}
	}
	for _, sentence := range []string{"every 10 seconds", "today at 9", "at 2020-01-01 08:00", "every 99999 days", "0 0 30 2 *"} {
		if said, err := heartbeat.ParseSentence(sentence, friday, time.UTC); err == nil {
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
		"in 20 minutes remind me of the oven":            {"at 2026-11-20 12:20:00", "remind me of the oven"},
		"daily at 7 and 19 water the plants":             {"0 7,19 * * *", "water the plants"},
		"tomorrow at 9":                                  {"at 2026-11-21 09:00", ""},
		"daily at 07:00 Europe/Paris read the Dow Jones": {"0 7 * * *", "read the Dow Jones"},
	} {
		said, what, err := heartbeat.ParseRequest(text, friday, time.UTC)
		if diff := cmp.Diff(want, asked{said.Schedule, what}); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	if _, _, err := heartbeat.ParseRequest("check src/main.go on friday at 9", friday, time.UTC); !errors.Is(err, heartbeat.ErrUnclear) {
		t.Errorf("no schedule in front: %v", err)
	}
}

// FuzzSentence: what is understood is a schedule that comes, and means the same when it is read again.
func FuzzSentence(f *testing.F) {
	for _, s := range []string{"every weekday at 8:30 check", "in 20 minutes", "on the 1st and 15th at 9", "next fri at 7 pm",
		"daily at 07:00 Europe/Paris\nx", "every half an hour", "30 8 * * 1-5 x", "every 2h:", "at 2026-11-22 08:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		said, what, err := heartbeat.ParseRequest(text, friday, time.UTC)
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
		plan, err := heartbeat.ParseSchedule(said.Schedule, loc, friday)
		if err != nil || !plan.Next(friday).After(friday) {
			t.Fatalf("%q is %+v, which never comes: %v", text, said, err)
		}
	})
}
