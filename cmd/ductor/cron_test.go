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
	data := town.buttonData(page, "🚀 Run now")
	for range 2 { // the same button, before the phone shows its change
		town.chat.Person().TapData(page, data)
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

// TestAttackAGroupsJobOfARemovedUser tests that a group's job does not run on after the configuration no longer lists
// the user who made it, until another user resumes it.
func TestAttackAGroupsJobOfARemovedUser(t *testing.T) {
	const team = -5
	town := newTown(t, func(c *config.Config) {
		c.Telegram.AllowedUsers = []int64{owner, stranger}
		c.Telegram.AllowedGroups, c.Telegram.GroupTrigger = []int64{team}, "all"
	})
	group, ann := town.srv.Group(team, "Team"), town.srv.Private(stranger, "Ann").Person()
	boss := town.chat.Person()
	town.chat = group
	ann.Send(group, "/cron every weekday at 8:30 "+ran)
	town.pressAs(ann, town.awaitButton("✅ Add"), "✅ Add")
	page := town.awaitButton("🚀 Run now")
	town.stop()
	town.cfg.Telegram.AllowedUsers = []int64{owner}
	town.start()
	why := "Paused: the user who made it may no longer have jobs."
	if said := town.pressAs(boss, page, "🚀 Run now"); !strings.HasPrefix(said.Text, why) || town.timesRan() != 0 {
		t.Errorf("it ran %d times: %q", town.timesRan(), said.Text)
	}
	town.pressAs(boss, page, "⏸ Pause")
	town.pressAs(boss, town.awaitButton("▶ Resume"), "▶ Resume")
	town.pressAs(boss, town.awaitButton("⏸ Pause"), "🚀 Run now")
	eventually(t, "the job of the owner to run", func() bool { return town.timesRan() == 1 })
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
