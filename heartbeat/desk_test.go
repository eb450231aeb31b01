package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/heartbeat"
	"ductor/orchestrator"
)

func TestWords(t *testing.T) {
	for schedule, want := range map[string]string{
		"30 8 * * 1-5":             "every weekday at 8:30",
		"0 30 8 * * 1-5":           "every weekday at 8:30",
		"0 9,17 * * *":             "every day at 9:00 and 17:00",
		"0 7 * * 1,5":              "on mondays and fridays at 7:00",
		"0 10 * * 0,6":             "on weekends at 10:00",
		"0 9 1,15,22,23 * *":       "on the 1st and 15th and 22nd and 23rd at 9:00",
		"0 * * * *":                "every hour",
		"5 * * * *":                "every hour at minute 5",
		"*/15 * * * *":             "every 15 minutes of the clock",
		"every 2h":                 "every 2 hours",
		"every 1h":                 "every hour",
		"every 90m":                "every 90 minutes",
		"every 90s":                "every 90 seconds",
		"at 2026-12-24 18:00":      "once, on Thu 24 Dec 2026 at 18:00",
		"at 2026-12-24 18:00:30":   "once, on Thu 24 Dec 2026 at 18:00:30",
		"@daily":                   "every day at 0:00",
		"@weekly":                  "on sundays at 0:00",
		"15 30 8 * * *":            "by the cron line 15 30 8 * * *",
		"0 9 1 * 1":                "by the cron line 0 9 1 * 1",
		"0 9 * 3 *":                "by the cron line 0 9 * 3 *",
		"0 9-17 * * *":             "by the cron line 0 9-17 * * *",
		"70 9 * * *":               "by the cron line 70 9 * * *",
		"0 9 0 * *":                "by the cron line 0 9 0 * *",
		"0 9 * * 7":                "by the cron line 0 9 * * 7",
		"*/7 * * * *":              "by the cron line */7 * * * *",
		"at no time that there is": "by the cron line at no time that there is",
	} {
		if got := heartbeat.Words(schedule); got != want {
			t.Errorf("%q is said %q, not %q", schedule, got, want)
		}
	}
}

// TestWordsAreUnderstood: what a sentence makes is said so that it is the same schedule once more.
func TestWordsAreUnderstood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := fmt.Sprintf("%d:%02d", rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"))
		sentence := rapid.SampledFrom([]string{"every day at ", "every weekday at ", "on weekends at ", "on mondays and fridays at ",
			"on the 1st and the 15th at ", "on the 3rd at ", "weekly on tuesday at "}).Draw(t, "days") + clock
		if rapid.Bool().Draw(t, "interval") {
			sentence = fmt.Sprintf("every %d %s", rapid.IntRange(1, 59).Draw(t, "n"), rapid.SampledFrom([]string{"minutes", "hours"}).Draw(t, "unit"))
		}
		said, err := heartbeat.ParseSentence(sentence, day, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		words := heartbeat.Words(said.Schedule)
		again, err := heartbeat.ParseSentence(words, day, time.UTC)
		if err != nil || again.Schedule != said.Schedule {
			t.Fatalf("%q is %q, which is said %q and that is %q, %v", sentence, said.Schedule, words, again.Schedule, err)
		}
	})
}

// TestADraftIsAddedOnce under the id it has, and what cannot be is said in a sentence and changes nothing.
func TestADraftIsAddedOnce(t *testing.T) {
	h := build(t, day)
	d := heartbeat.NewDesk(h.Scheduler, heartbeat.DeskOptions{Stale: time.Hour, Directory: func(path string) (string, error) {
		if path == "/out" {
			return "", orchestrator.ErrOutsideRoot
		}
		return "/real" + path, nil
	}})
	ctx := t.Context()
	j, err := d.ReadJob("CRON_TZ=Asia/Tokyo 0 9 * * * look\nat it")
	if err != nil || j.Schedule != "0 9 * * *" || j.Zone != "Asia/Tokyo" || j.Prompt != "look\nat it" || j.When != "every day at 9:00 Asia/Tokyo" {
		t.Fatalf("it is read as %+v, %v", j, err)
	}
	j.ID, j.Conversation = "chat/1", here
	for range 2 {
		if st, err := d.AddJob(ctx, j); err != nil || !st.Next.Equal(day.Add(24*time.Hour)) {
			t.Fatalf("added: %+v, %v", st, err)
		}
	}
	if all, err := d.Jobs(ctx, here); err != nil || len(all) != 1 {
		t.Errorf("there are %+v, %v", all, err)
	}
	if st, err := d.EditJob(ctx, "chat/1", orchestrator.Press{Conversation: here}, func(j *orchestrator.Job) error { j.Dir, j.Timeout = "/src", time.Minute; return nil }); err != nil || st.Job.Dir != "/real/src" {
		t.Errorf("edited: %+v, %v", st, err)
	}
	for what, change := range map[string]func(*orchestrator.Job){
		"A directory is for a session of the job's own: the chat's session has one already.": func(j *orchestrator.Job) { j.Session = "shared" },
		"/out is outside the places ductor may work in (projects.roots in config.toml).":     func(j *orchestrator.Job) { j.Dir = "/out" },
		"A time limit is shorter than 1h, which is agents.stale_after in config.toml.":       func(j *orchestrator.Job) { j.Timeout = time.Hour },
		"A job needs a prompt.":                                                       func(j *orchestrator.Job) { j.Prompt = " " },
		"A name is one line of at most 64 bytes.":                                     func(j *orchestrator.Job) { j.Name = "\x07" },
		"Quiet hours from 22:00 to 22:00 leave no time to run.":                       func(j *orchestrator.Job) { j.QuietFrom, j.QuietTo = "22:00", "22:00" },
		`Quiet hours are two times of day such as 22:00 and 07:00, not "now" and "".`: func(j *orchestrator.Job) { j.QuietFrom = "now" },
		`Sandbox is "off" or "docker", not "other".`:                                  func(j *orchestrator.Job) { j.Sandbox = "other" },
		`"soon" is no cron line: expected 5 to 6 fields, found 1: [soon].`:            func(j *orchestrator.Job) { j.Schedule = "soon" },
	} {
		_, err := d.EditJob(ctx, "chat/1", orchestrator.Press{Conversation: here}, func(j *orchestrator.Job) error { change(j); return nil })
		if bad := (*orchestrator.BadJob)(nil); !errors.As(err, &bad) || bad.Why != what {
			t.Errorf("%q: %v", what, err)
		}
	}
	st, err := d.Job(ctx, "chat/1", here)
	if err != nil || st.Job.Dir != "/real/src" || st.Job.Session != "own" || st.Job.Timeout != time.Minute || st.Job.Prompt != "look\nat it" {
		t.Errorf("it is %+v, %v", st, err)
	}
}

// TestAnEditAndAPauseAtOnceLoseNeither: a job is paused while what an edit makes of it is looked at.
func TestAnEditAndAPauseAtOnceLoseNeither(t *testing.T) {
	h := build(t, day)
	var d *heartbeat.Desk
	paused := make(chan error, 1)
	d = heartbeat.NewDesk(h.Scheduler, heartbeat.DeskOptions{Directory: func(path string) (string, error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := d.PauseJob(context.Background(), "chat/1", orchestrator.Press{Conversation: here})
			paused <- err
		}()
		select {
		case <-done:
		case <-time.After(100 * time.Millisecond): // it has to wait for the edit
		}
		return path, nil
	}})
	if _, err := h.Add(t.Context(), heartbeat.Job{ID: "chat/1", Conversation: here, Prompt: "look", Schedule: "@daily"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.EditJob(t.Context(), "chat/1", orchestrator.Press{Conversation: here}, func(j *orchestrator.Job) error { j.Dir = "/src"; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
	if st, err := d.Job(t.Context(), "chat/1", here); err != nil || !st.Job.Paused || st.Job.Dir != "/src" {
		t.Errorf("it is %+v, %v", st, err)
	}
}
