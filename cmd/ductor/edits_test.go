package main

import (
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
)

// An edit that changes no words does nothing. An edit that corrects a command or adds the bot's mention acts once.
func TestEditsActWhereTheyChangeSomething(t *testing.T) {
	const id = -100
	town := newTown(t, func(c *config.Config) { c.Telegram.AllowedGroups, c.Permissions.Mode = []int64{id}, "bypass" })
	begun := time.Now()
	owner, group := town.chat.Person(), town.srv.Supergroup(id, "Team")

	old := town.say(`[[text "an old answer"]]`)
	town.awaitDone(1)
	running := town.say(`[[start]] [[tool cmd="touch begun; until [ -e go ]; do sleep 0.05; done"]] [[text "the end"]]`)
	awaitFile(t, town.cfg.Projects.DefaultDir+"/begun")
	owner.Edit(running, running.Text)
	owner.Edit(old, old.Text)
	mistyped := town.say("/statsu")
	town.await("/statsu")
	for _, m := range town.chat.View().FromBot() {
		if m.HasButton("🔁 Start over") {
			t.Errorf("an edit without a change asks %q", m.Text)
		}
	}
	owner.Edit(mistyped, "/status")
	town.await("Running for")
	owner.Edit(running, running.Text+" and more")
	town.awaitButton("🔁 Start over")
	owner.Edit(mistyped, "/stop")
	town.await("Aborted")
	owner.Edit(mistyped, "/stop") // has no effect
	town.say(`[[text "a later answer"]]`)
	town.await("a later answer")
	if n := strings.Count(town.chat.Transcript(), "Ductor: Stopped."); n != 1 {
		t.Errorf("it stopped %d times:\n%s", n, town.chat.Transcript())
	}

	// Edits of older messages have no effect.
	eventually(t, "a second after the start", func() bool { return time.Now().Unix() > begun.Unix() })
	unmeant := owner.Send(group, `look here [[text "mentioned"]]`)
	mentioned := owner.Edit(unmeant, `@ductor_bot look here [[text "mentioned"]]`)
	if _, err := group.AwaitText(town.soon(), "mentioned"); err != nil {
		town.fatal(err)
	}
	owner.Edit(mentioned, mentioned.Text)
	owner.Send(group, `@ductor_bot [[text "the last"]]`)
	if _, err := group.AwaitText(town.soon(), "the last"); err != nil {
		town.fatal(err)
	}
	eventually(t, "both answers to end", func() bool { return len(ended(group.View())) >= 2 })
	if n := len(ended(group.View())); n != 2 {
		t.Errorf("%d answers, want two:\n%s", n, group.Transcript())
	}
}
