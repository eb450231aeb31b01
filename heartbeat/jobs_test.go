package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/lang"
	"ductor/orchestrator"
)

// invalidEdits are edits that make a job invalid, with the sentence that explains each to the user.
var invalidEdits = []struct {
	edit func(*orchestrator.Job)
	why  string
}{
	{func(j *orchestrator.Job) { j.Session = "shared" },
		"The chat's session already has a folder. For a folder of its own, the job needs a session of its own."},
	{func(j *orchestrator.Job) { j.Dir = "/out" },
		"I may not work in /out: it is outside projects.roots in config.toml. /project lists where I may work."},
	{func(j *orchestrator.Job) { j.Timeout = time.Hour },
		"A time limit must be shorter than 1 h, which is agents.stale_after in config.toml."},
	{func(j *orchestrator.Job) { j.Prompt = " " }, "A job needs a prompt."},
	{func(j *orchestrator.Job) { j.Name = "\x07" }, "A name is one line of at most 64 bytes."},
	{func(j *orchestrator.Job) { j.QuietFrom, j.QuietTo = "22:00", "22:00" },
		"Quiet hours from 22:00 to 22:00 leave no time to run."},
	{func(j *orchestrator.Job) { j.QuietFrom = "now" },
		`Quiet hours are two times of day such as 22:00 and 07:00, not "now" and "".`},
	{func(j *orchestrator.Job) { j.Sandbox = "other" }, `sandbox can't be "other". It can be: off, docker.`},
	{func(j *orchestrator.Job) { j.Schedule = "soon" },
		`"soon" isn't a cron line. Write minute, hour, day, month and weekday, such as 30 8 * * 1-5.`},
	{func(j *orchestrator.Job) { j.Schedule = "every 30s" }, "An interval is a minute to a year, in whole seconds."},
	{func(j *orchestrator.Job) { j.Schedule = "0 9 31 2 *" }, "That day never comes. Change the schedule."},
	{func(j *orchestrator.Job) { j.Schedule = "* * * * * *" },
		"The times are too close to each other. Leave at least 10 s."},
}

// TestADraftIsAddedOnce also tests that an invalid edit changes nothing.
func TestADraftIsAddedOnce(t *testing.T) {
	var audited []string
	d := newRig(t, day, func(o *heartbeat.Options) {
		o.Stale = time.Hour
		o.Directory = func(path string) (string, error) {
			if path == "/out" {
				return "", orchestrator.ErrOutsideRoot
			}
			return "/real" + path, nil
		}
		o.Audit = func(_ context.Context, entries ...orchestrator.AuditEntry) error {
			for _, e := range entries {
				audited = append(audited, fmt.Sprint(e.What, " ", e.Tool, " ", e.Title, ", ", e.Reason))
			}
			return nil
		}
	})
	ctx := t.Context()
	j, err := d.ReadJob(orchestrator.ConversationID{Chat: 42}, "CRON_TZ=Asia/Tokyo 0 9 * * * look\nat it")
	if err != nil || j.Schedule != "0 9 * * *" || j.Zone != "Asia/Tokyo" || j.Prompt != "look\nat it" ||
		j.When != "every day at 9:00 Asia/Tokyo" {
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
	if st, err := d.EditJob(ctx, "chat/1", orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser},
		func(j *orchestrator.Job) error { j.Dir, j.Timeout = "/src", time.Minute; return nil }); err != nil ||
		st.Job.Dir != "/real/src" {
		t.Errorf("edited: %+v, %v", st, err)
	}
	for _, invalid := range invalidEdits {
		_, err := d.EditJob(ctx, "chat/1", orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser},
			func(j *orchestrator.Job) error { invalid.edit(j); return nil })
		if bad := (*orchestrator.BadJob)(nil); !errors.As(err, &bad) || bad.Why != invalid.why {
			t.Errorf("%v, want %q", err, invalid.why)
		}
	}
	st, err := d.Job(ctx, "chat/1", here)
	if err != nil || st.Job.Dir != "/real/src" || st.Job.Session != "own" || st.Job.Timeout != time.Minute ||
		st.Job.Prompt != "look\nat it" {
		t.Errorf("it is %+v, %v", st, err)
	}
	want := []string{
		"job added look at it, every day at 9:00 Asia/Tokyo",
		"job changed look at it, every day at 9:00 Asia/Tokyo",
	}
	if !slices.Equal(audited, want) {
		t.Errorf("audited: %q, want %q", audited, want)
	}
}

// An agent schedules a job with an offset from UTC that is not the user's. All texts show the user's clock, also after
// the default time zone has changed.
func TestAJobWithAnOffsetShowsTheTimeOfItsZone(t *testing.T) {
	var audited string
	h := newRig(t, friday, withZone("Europe/Berlin"), func(o *heartbeat.Options) {
		o.Audit = func(_ context.Context, entries ...orchestrator.AuditEntry) error {
			audited = entries[0].Reason
			return nil
		}
	})
	const line, berlin = "at 2026-12-24T18:00:00-12:00", "once, on Fri 25 Dec 2026 at 07:00"
	read, err := h.ReadJob(here, line+" look")
	if err != nil || read.When != berlin {
		t.Errorf("a request is read as %q, %v; want %q", read.When, err, berlin)
	}
	read.Conversation = here
	if st, err := h.CheckJob(read); err != nil || st.Job.When != berlin {
		t.Errorf("a draft shows %q, %v; want %q", st.Job.When, err, berlin)
	}
	if st, err := h.AddJob(t.Context(), read); err != nil || st.Job.When != berlin || audited != berlin {
		t.Errorf("a job shows %q, its audit %q, %v; want %q", st.Job.When, audited, err, berlin)
	}
	configured := orchestrator.Job{Name: "conf", Conversation: here, Prompt: "look"}
	configured.Schedule, configured.Zone = line, "Asia/Tokyo"
	if err := h.Sync(t.Context(), []orchestrator.Job{configured}); err != nil {
		t.Fatal(err)
	}
	h.replaceScheduler(withZone("America/New_York"))
	all, err := h.Jobs(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, st := range all {
		shown = append(shown, st.Job.When)
	}
	want := []string{"once, on Fri 25 Dec 2026 at 01:00", "once, on Fri 25 Dec 2026 at 15:00 Asia/Tokyo"}
	if !slices.Equal(shown, want) {
		t.Errorf("the list shows %q, want %q", shown, want)
	}
}

// An agent replaces the directory of a job by a link. An edit of the job does not make the job follow the link.
func TestAttackALinkInPlaceOfAJobsDirectory(t *testing.T) {
	target := "/src/shop"
	d := newRig(t, day, func(o *heartbeat.Options) {
		o.Directory = func(string) (string, error) { return target, nil }
	})
	if _, err := d.AddJob(t.Context(), orchestrator.Job{
		ID: "chat/1", Conversation: here, Prompt: "look", JobTiming: orchestrator.JobTiming{Schedule: "@daily"},
		JobTurn: orchestrator.JobTurn{Session: orchestrator.OwnSession, Dir: "/src/shop"},
	}); err != nil {
		t.Fatal(err)
	}
	target = "/src/open"
	edit := func(change func(*orchestrator.Job)) string {
		t.Helper()
		st, err := d.EditJob(t.Context(), "chat/1", orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser},
			func(j *orchestrator.Job) error { change(j); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return st.Job.Dir
	}
	if dir := edit(func(j *orchestrator.Job) { j.Prompt = "look again" }); dir != "/src/shop" {
		t.Errorf("after an edit of the prompt, the job works in %s", dir)
	}
	if read, err := d.ReadDir(here, "/src/shop"); err != nil || read != "/src/open" {
		t.Errorf("a user who chooses the same path means %q, %v", read, err)
	}
	if dir := edit(func(j *orchestrator.Job) { j.Dir = "/src/link" }); dir != "/src/open" {
		t.Errorf("after a user chose a link, the job works in %s", dir)
	}
}

// TestAnEditAndAPauseAtOnceLoseNeither: a job is paused while the result of an edit is being checked.
func TestAnEditAndAPauseAtOnceLoseNeither(t *testing.T) {
	var d *rig
	paused := make(chan error, 1)
	d = newRig(t, day, func(o *heartbeat.Options) {
		o.Directory = func(path string) (string, error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, err := d.PauseJob(context.Background(), "chat/1", orchestrator.Press{Conversation: here,
					Role: orchestrator.RoleUser})
				paused <- err
			}()
			select {
			case <-done:
			case <-time.After(100 * time.Millisecond): // it must wait for the edit
			}
			return path, nil
		}
	})
	if _, err := d.Add(t.Context(), orchestrator.Job{
		ID: "chat/1", Conversation: here, Prompt: "look",
		JobTiming: orchestrator.JobTiming{Schedule: "@daily"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.EditJob(t.Context(), "chat/1", orchestrator.Press{Conversation: here, Role: orchestrator.RoleUser},
		func(j *orchestrator.Job) error { j.Dir = "/src"; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
	if st, err := d.Job(t.Context(), "chat/1", here); err != nil || !st.Job.Paused || st.Job.Dir != "/src" {
		t.Errorf("it is %+v, %v", st, err)
	}
}

// A user can create only so many jobs, in however many conversations.
func TestAUsersJobsAreBounded(t *testing.T) {
	jobs := newRig(t, day)
	add := func(person orchestrator.PersonID, n int) error {
		_, err := jobs.AddJob(t.Context(), orchestrator.Job{
			ID:           orchestrator.JobID(fmt.Sprint(person, "/", n)),
			Conversation: orchestrator.ConversationID{Chat: -1, Topic: n / 10}, Person: person, Prompt: "look",
			JobTiming: orchestrator.JobTiming{Schedule: "0 1 * * *"},
		})
		return err
	}
	for n := range heartbeat.MostJobsOfUser {
		if err := add(9, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(9, 2*heartbeat.MostJobsOfUser); !errors.Is(err, orchestrator.ErrJobsFull) {
		t.Errorf("one more: %v", err)
	}
	if err := add(8, 2*heartbeat.MostJobsOfUser); err != nil {
		t.Errorf("another user: %v", err)
	}
}

// Jobs that have run at their only time make room for others. Only the last of them remain.
func TestFinishedJobsMakeRoom(t *testing.T) {
	h := newRig(t, day)
	h.wall = day
	add := func(id string, person orchestrator.PersonID, schedule string) {
		t.Helper()
		_, err := h.AddJob(t.Context(), orchestrator.Job{ID: orchestrator.JobID(id), Conversation: here, Person: person,
			Prompt: "look", JobTiming: orchestrator.JobTiming{Schedule: schedule}})
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(minutes int) string {
		return "at " + day.Add(time.Duration(minutes)*time.Minute).Format(time.DateTime)
	}
	add("paused", 9, at(1))
	if _, err := h.Pause(t.Context(), "paused", here); err != nil {
		t.Fatal(err)
	}
	add("other user", 8, at(1))
	add("daily", 9, "@daily")
	for n := range heartbeat.MostJobs - 3 {
		add(fmt.Sprint("once ", n), 9, at(100-n)) // the newest is due first
	}
	for range 100 {
		h.wall = h.wall.Add(time.Minute)
		h.Tick(t.Context())
	}
	add("now", 9, "@daily")
	all, err := h.Jobs(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	var got []orchestrator.JobID
	for _, st := range all {
		got = append(got, st.Job.ID)
	}
	want := []orchestrator.JobID{"paused", "other user", "daily", "once 0", "once 1", "once 2", "once 3", "once 4",
		"now"}
	if !slices.Equal(got, want) {
		t.Errorf("the jobs are %q, want %q", got, want)
	}
}

// A job fails while the chat is unreachable. Then it is not deleted before the chat shows its failure.
func TestAFinishedJobRemainsUntilItsFailureIsReported(t *testing.T) {
	h := newRig(t, day)
	h.wall = day
	add := func(n int) {
		t.Helper()
		j := orchestrator.Job{Conversation: here, Person: 9, Prompt: "look"}
		j.ID = orchestrator.JobID(fmt.Sprint("once ", n))
		j.Schedule = "at " + day.Add(time.Duration(n+1)*time.Minute).Format(time.DateTime)
		if _, err := h.AddJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	run := func() {
		h.wall = h.wall.Add(time.Minute)
		h.Tick(t.Context())
	}
	remains := func() bool {
		_, err := h.Job(t.Context(), "once 0", here)
		if err != nil && !errors.Is(err, orchestrator.ErrNoJob) {
			t.Fatal(err)
		}
		return err == nil
	}
	add(0)
	h.runner.refuse, h.chat.fail = orchestrator.ErrNotADir, heartbeat.ErrLater
	run()
	for n := range heartbeat.MostFinished {
		add(n + 1)
		run()
	}
	add(heartbeat.MostFinished + 1)
	if !remains() {
		t.Fatal("the job is deleted, and its failure is not reported")
	}
	h.chat.fail = nil
	run()
	if shown := h.chat.shown(); len(shown) == 0 || shown[0].Job.ID != "once 0" {
		t.Errorf("the reports are %+v, want the failure of the job first", shown)
	}
	add(heartbeat.MostFinished + 2)
	if remains() {
		t.Error("the job remains after its failure is reported")
	}
}

// inLanguage sets the language of the chat.
func inLanguage(t *testing.T, l lang.Language) func(o *heartbeat.Options) {
	t.Helper()
	choices, err := lang.OpenChoices(t.Context(), storedLanguage{l}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *heartbeat.Options) { o.Lang = choices }
}

// storedLanguage implements lang.Store.
type storedLanguage struct{ lang.Language }

func (s storedLanguage) Languages(context.Context) ([]lang.Choice, error) {
	return []lang.Choice{{ID: here.Chat, Chosen: s.Language}}, nil
}

func (storedLanguage) SaveLanguage(context.Context, lang.Choice) error { return nil }

// unclearSchedules are texts that are no schedules, or schedules that a job cannot have.
var unclearSchedules = []string{
	"bald mal", "every day", "every day at", "on friday at 9", "next week at 9", "weekly", "monthly",
	"every 3 bananas", "every day at nine", "every day at 25:00", "on the 1st of june at 9", "every 2 hours at 9",
	"every day at 9 and 17:30", "tomorrow at 9 and 10", "on 2026-13-45 at 9", "every 1.2.3h", "every 9999 days",
	"in 9999 days", strings.Repeat("every ", 20), "daily at 9 Mars/Crater", "CRON_TZ=Mars/Crater 0 9 * * *",
	"CRON_TZ=UTC TZ=UTC 0 9 * * *", "99 9 * * *", ", 9 * * *", "0 9 31 2 *", "* * * * * *", "every 5s",
	"at 2020-01-01 08:00",
}

// mistakenEdits make a job invalid.
var mistakenEdits = map[string]func(j *orchestrator.Job){
	"prompt":        func(j *orchestrator.Job) { j.Prompt = " " },
	"long prompt":   func(j *orchestrator.Job) { j.Prompt = strings.Repeat("look ", 20_000) },
	"name":          func(j *orchestrator.Job) { j.Name = "\x07" },
	"relative dir":  func(j *orchestrator.Job) { j.Dir = "src" },
	"dir outside":   func(j *orchestrator.Job) { j.Dir = "/out" },
	"missing dir":   func(j *orchestrator.Job) { j.Dir = "/gone" },
	"dir of chat":   func(j *orchestrator.Job) { j.Dir, j.Session = "/src", orchestrator.SharedSession },
	"session":       func(j *orchestrator.Job) { j.Session = "other" },
	"kind":          func(j *orchestrator.Job) { j.Kind = "other" },
	"missed":        func(j *orchestrator.Job) { j.Missed = "other" },
	"overlap":       func(j *orchestrator.Job) { j.Overlap = "other" },
	"sandbox":       func(j *orchestrator.Job) { j.Sandbox = "other" },
	"retries":       func(j *orchestrator.Job) { j.Retries = 11 },
	"backoff":       func(j *orchestrator.Job) { j.Backoff = -1 },
	"timeout":       func(j *orchestrator.Job) { j.Timeout = -1 },
	"long timeout":  func(j *orchestrator.Job) { j.Timeout = time.Hour },
	"quiet hours":   func(j *orchestrator.Job) { j.QuietFrom = "now" },
	"all quiet":     func(j *orchestrator.Job) { j.QuietFrom, j.QuietTo = "22:00", "22:00" },
	"quiet policy":  func(j *orchestrator.Job) { j.QuietFrom, j.QuietPolicy = "22:00", "other" },
	"quiet webhook": func(j *orchestrator.Job) { j.Kind, j.QuietPolicy = orchestrator.JobHook, "skip" },
	"zone":          func(j *orchestrator.Job) { j.Zone = "Mars/Crater" },
	"interval":      func(j *orchestrator.Job) { j.Schedule = "every day" },
	"time":          func(j *orchestrator.Job) { j.Schedule = "at noon" },
	"mode":          func(j *orchestrator.Job) { j.Rights.Mode = "other" },
	"rule":          func(j *orchestrator.Job) { j.Rights.Rules = []string{"*"} },
	"rule for plan": func(j *orchestrator.Job) { j.Rights.Rules = []string{cli.PlanTool} },
	"command":       func(j *orchestrator.Job) { j.Rights.Rules = []string{"Bash(rm -rf $HOME)"} },
}

// mistakes returns what the chat shows for each mistake in a job, by its cause.
func mistakes(t *testing.T, l lang.Language) map[string]string {
	t.Helper()
	d := newRig(t, day, inLanguage(t, l), func(o *heartbeat.Options) {
		o.Stale = time.Hour
		o.Directory = func(path string) (string, error) {
			return path, map[string]error{"/out": orchestrator.ErrOutsideRoot, "/gone": orchestrator.ErrNotADir}[path]
		}
	})
	shown := map[string]string{}
	collect := func(cause string, err error) {
		t.Helper()
		bad := (*orchestrator.BadJob)(nil)
		if !errors.As(err, &bad) {
			t.Errorf("%s: the form has no text for the error %v", cause, err)
			return
		}
		shown[cause] = bad.Why
	}
	for _, text := range unclearSchedules {
		_, _, err := d.ReadSchedule(here, text, "")
		collect("read the schedule "+text, err)
	}
	for _, text := range []string{"bald mal", "every day look", "every day at 25:00 look", "every day at 9"} {
		_, err := d.ReadJob(here, text)
		collect("read the job "+text, err)
	}
	for cause, edit := range mistakenEdits {
		j := orchestrator.Job{Conversation: here, Prompt: "look",
			JobTiming: orchestrator.JobTiming{Schedule: "every 1h"}}
		edit(&j)
		_, err := d.CheckJob(j)
		collect("check the "+cause, err)
	}
	return shown
}

// Each mistake that the form of a job can show is in the language of the chat. The examples in them stay English.
func TestMistakesInAJobAreTranslated(t *testing.T) {
	english := mistakes(t, "en")
	for _, l := range []lang.Language{"de", "zh"} {
		for cause, text := range mistakes(t, l) {
			if text == english[cause] {
				t.Errorf("%s: in %s it is %q", cause, l.Name(), text)
			}
		}
	}
	german := mistakes(t, "de")
	for cause, want := range map[string]string{
		"read the job bald mal": `Ich weiß nicht, wann "bald mal" ist. Schreib es auf Englisch, etwa "every weekday at`,
		"read the schedule on friday at 9": `"on friday" kann einmal oder immer heißen: schreib "next friday" oder ` +
			`"every friday". Schreib es auf Englisch, etwa "every weekday at 8:30"`,
		"check the all quiet": "Die Ruhezeit von 22:00 bis 22:00 lässt keine Zeit für Läufe.",
		"check the command":   `"Bash(rm -rf $HOME)" braucht in den Klammern einen Befehl aus einfachen Wörtern`,
	} {
		if !strings.HasPrefix(german[cause], want) {
			t.Errorf("%s: %q, want %q", cause, german[cause], want)
		}
	}
}
