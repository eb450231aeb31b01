package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// job returns a configured job.
func job(schedule, prompt string) heartbeat.JobSettings {
	return heartbeat.JobSettings{
		Enabled: true, Prompt: prompt, JobTiming: orchestrator.JobTiming{Schedule: schedule},
	}
}

// shown counts the bot's messages that contain part.
func (town *town) shown(part string) (n int) {
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, part) {
			n++
		}
	}
	return n
}

// jobTown returns a town with a job that is due a few seconds after the start.
func jobTown(t *testing.T, name, prompt string) (town *town, due time.Time) {
	t.Helper()
	return dueTown(t, func(c *config.Config, schedule string) {
		c.Jobs = map[string]heartbeat.JobSettings{name: job(schedule, prompt)}
	})
}

// dueTown returns a town with a schedule that is due a few seconds after the start.
func dueTown(t *testing.T, change func(c *config.Config, schedule string)) (town *town, due time.Time) {
	t.Helper()
	for wait := 8 * time.Second; ; wait *= 2 { // on a slow machine the time passes during the start
		town = newTown(t, func(c *config.Config) {
			due = time.Now().Add(wait).Truncate(time.Second)
			change(c, "at "+due.Format(time.DateTime))
		})
		if time.Now().Before(due) {
			return town, due
		}
		town.stop()
	}
}

func TestAJobOfTheConfigurationAnswersInTheChatOnce(t *testing.T) {
	town, _ := jobTown(t, "morning", `[[text "good morning"]]`)
	town.say(`[[text "before"]]`)
	town.await("good morning")
	town.awaitDone(2)
	town.say("what was said? [[history]]")
	if m := town.awaitDone(3); strings.Contains(m.Text, "good morning") || !strings.Contains(m.Text, "before") {
		t.Errorf("the job ran in the session of the chat: %q", m.Text)
	}
	town.stop()
	town.start()
	town.say(`[[text "after"]]`)
	town.awaitDone(4)
	if n := town.shown("good morning"); n != 1 {
		t.Errorf("the job's answer is shown %d times", n)
	}
}

func TestARunThatIsDueWhileDuctorIsGoneIsMadeUpForOnce(t *testing.T) {
	town, due := jobTown(t, "once", `[[text "made up for"]]`)
	town.stop()
	eventually(t, "the moment to be over", func() bool { return time.Now().After(due) })
	for range 2 {
		town.start()
		town.await("made up for")
		town.stop()
	}
	if n := town.shown("made up for"); n != 1 {
		t.Errorf("it is shown %d times", n)
	}
}

func TestAJobThatCannotRunSaysWhy(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		j := job("*/10 * * * * *", "x")
		j.Dir = c.Projects.DefaultDir + "/gone"
		c.Jobs = map[string]heartbeat.JobSettings{"lost": j}
	})
	town.await("It did not run: the folder ")
}

func TestAScheduleThatSaysNothingIsRefused(t *testing.T) {
	for schedule, want := range map[string]string{
		"now and then": "jobs.odd.schedule", "tomorrow at 9": "another day at each start",
		"*/1 * * * * *": "Leave at least",
	} {
		c := config.Default()
		c.Jobs = map[string]heartbeat.JobSettings{"odd": job(schedule, "x")}
		if _, err := app.Jobs(c, environment.NewPolicy(c)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schedule, err)
		}
	}
	c := config.Default()
	j := job("every day at 9", "x")
	j.Rights.Rules = []string{"Bash(rm $HOME)"}
	c.Jobs = map[string]heartbeat.JobSettings{"odd": j}
	if _, err := app.Jobs(c, environment.NewPolicy(c)); err == nil || !strings.Contains(err.Error(), "jobs.odd.rules") {
		t.Errorf("a rule that cannot be read: %v", err)
	}
}

const hookSecret = "a secret of the tests"

func TestAWebhookStartsATurn(t *testing.T) {
	addr := unusedAddr(t)
	town := newTown(t, func(c *config.Config) {
		c.Webhooks.Listen = addr
		c.Webhooks.Hooks = map[string]webhook.HookSettings{"deploy": {
			Caller: webhook.Caller{Auth: "github", Secret: hookSecret, BodyMaxKB: 64, PerMinute: 60},
			Prompt: `[[text "the hook ran"]]`,
		}}
	})
	const body = `{"version": "1.2.3"}`
	call := func(secret string) int {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		req, err := http.NewRequestWithContext(town.soon(), http.MethodPost, "http://"+addr+"/hooks/deploy",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct {
		secret string
		want   int
	}{{"another secret of them", http.StatusUnauthorized}, {hookSecret, http.StatusAccepted},
		{hookSecret, http.StatusConflict}} {
		if got := call(c.secret); got != c.want {
			t.Errorf("with %q it is answered %d, not %d", c.secret, got, c.want)
		}
	}
	town.await("the hook ran")
	town.awaitDone(1)
	if n := town.shown("the hook ran"); n != 1 {
		t.Errorf("it is shown %d times", n)
	}
}

// TestARunThatIsFarTooOldIsEndedAndToldOnce tests runs of a user and of a job on this host. A button repeats them.
func TestARunThatIsFarTooOldIsEndedAndToldOnce(t *testing.T) {
	// A run hangs until the file go exists, also if only its child processes end.
	const waits = `[[tool cmd="test -e go || sleep 600"]]`
	const hang = waits + waits + `[[text "it came to its end"]]`
	for name, job := range map[string]bool{"of a person": false, "of a job": true} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) {
				c.Agents.StaleAfter = 4 * time.Second
				c.Permissions.Mode = "bypass"
			})
			if job {
				town.say("/cron every day at 9 %s", hang)
				town.press("✅ Add")
				town.press("🚀 Run now")
			} else {
				town.say("%s", hang)
			}
			m := town.await("took too long and was stopped")
			if !m.HasButton("🔁 Run again") {
				t.Errorf("it offers %v", m.Keyboard)
			}
			checkNoProcessIn(t, town.cfg.Projects.DefaultDir)
			town.stop()
			town.cfg.Agents.StaleAfter = time.Hour // the next run may take longer on a slow machine
			town.start()
			town.makeFile("go", nil)
			town.press("🔁 Run again")
			town.await("it came to its end")
			if n := town.shown("took too long and was stopped"); n != 1 {
				t.Errorf("it is told %d times", n)
			}
		})
	}
}

// The chat shows a short form of a long result of a job, with a complete file: the agent's own summary, otherwise one
// by the summary model, otherwise the end.
func TestALongResultOfAJobIsShortened(t *testing.T) {
	for name, c := range map[string]struct{ prompt, model, want string }{
		"block": {`[[text n=21 size=1000]] [[text "<SUMMARY>the short of it</SUMMARY>"]]`, "codex",
			"\n\nthe short of it\n\n⋯"},
		"model": {`[[text n=21 size=1000]]`, "codex", "Summarize this result of another agent"},
		"end":   {`[[text n=21 size=1000]] [[text "and its end"]]`, "", "and its end\n\n⋯"},
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(cfg *config.Config) { cfg.Sessions.SummaryModel = c.model })
			town.say("/cron every day at 9 %s", c.prompt)
			town.press("✅ Add")
			town.press("🚀 Run now")
			file, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool { return m.Media != nil })
			if err != nil {
				town.fatal(err)
			}
			if data, _ := town.srv.FileData(file.Media.FileID); len(data) < 21_000 {
				t.Errorf("the file has %d bytes", len(data))
			}
			if town.awaitDone(1); town.shown(c.want) != 1 {
				t.Errorf("it says %+v", town.chat.View().FromBot())
			}
		})
	}
}
