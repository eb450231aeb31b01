package main

import (
	"strings"
	"testing"

	"ductor/heartbeat"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// TestJobsInTheChat follows a user with a phone: a sentence, the draft, a change, a run, its result, the history, a
// pause, and the deletion. ductor restarts between all steps.
func TestJobsInTheChat(t *testing.T) {
	town := newTown(t, nil)
	restart := func() { town.stop(); town.start() }

	town.answer("/cron", "There are no jobs in this chat")
	town.answer("/cron now and then look", "every weekday at 8:30")
	town.say(`/cron every weekday at 8:30 Europe/Berlin [[text "the CI is green"]]`)
	if m := town.await("New job:"); !strings.Contains(m.Text, "every weekday at 8:30 Europe/Berlin, next: ") ||
		!strings.Contains(m.Text, " 08:30") {
		t.Errorf("it understood %q", m.Text)
	}

	restart()
	town.press("✏️ Change")
	town.await("\nProject: same as the chat\nModel: same as the chat\n\n") // and no other fields
	town.press("⚙️ More")
	town.press("Name")
	m := town.await("Reply to this message with its new name.")
	restart()
	town.chat.Person().Send(town.chat, "CI report", telegram.ReplyTo(m.ID))
	town.await("New job: CI report")
	town.press("✅ Add")
	town.await("hasn't run yet")

	restart()
	page := town.await("⏰ CI report\nevery weekday")
	for range 2 { // the same button, before it changes
		if _, err := town.chat.Person().Tap(page, "🚀 Run now"); err != nil {
			t.Fatal(err)
		}
	}
	first := town.awaitDone(1)
	if !strings.HasPrefix(first.Text, "⏰ CI report\n") || !strings.Contains(first.Text, "the CI is green") {
		t.Errorf("its card says %q", first.Text)
	}
	town.say(`[[text "something else"]]`)
	town.awaitDone(2)
	if n := town.shown("the CI is green\n"); n != 1 {
		t.Errorf("a button that was pressed twice ran it %d times", n)
	}

	town.press("📜 History")
	town.await("The last runs, newest first.\n\n✓")
	town.press("‹ Back")
	restart()
	town.press("⏸ Pause")
	town.await("every weekday at 8:30 Europe/Berlin, paused")
	town.press("▶ Resume")
	town.await("every weekday at 8:30 Europe/Berlin, next: ")
	town.press("🗑 Delete")
	town.press("🗑 Yes, delete it")
	town.await("There are no jobs in this chat")
}

// TestTheSameResultDisturbsNobody tests that a job with an unchanged result adds a note below its last result, and
// that a new result is a new message.
func TestTheSameResultDisturbsNobody(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Jobs = map[string]heartbeat.JobSettings{"ci": job("*/10 * * * * *", `[[text "all green"]]`)}
	})
	m := town.await("🔁 Same result as on ")
	if !strings.Contains(m.Text, "⏰ ci\n") || !strings.Contains(m.Text, "all green") {
		t.Errorf("the result says %q", m.Text)
	}
	town.stop()
	town.cfg.Jobs["ci"] = job("*/10 * * * * *", `[[text "all red"]]`)
	town.start()
	town.await("all red")
	if n := town.shown("all green"); n != 1 {
		t.Errorf("the old result is shown %d times", n)
	}
}
