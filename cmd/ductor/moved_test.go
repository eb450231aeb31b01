package main

import (
	"fmt"
	"testing"

	"ductor/internal/sim/telegram"
)

// A group that becomes a supergroup, as one does that gets topics, goes on under its new id once the owner allowed that: in its
// session, with its agent's memory, its language and its schedules.
func TestAGroupThatBecomesASupergroupGoesOn(t *testing.T) {
	const was, is = -42, -1000000000042
	town := surroundings(t, nil)
	user := town.chat.Person()
	private, group := town.chat, town.srv.Group(was, "Team")
	path := town.writeConfig()
	town.edit(path, fmt.Sprintf("allowed_users = [%d]", owner), fmt.Sprintf("allowed_users = [%d]\nallowed_groups = [%d]\ngroup_trigger = \"all\"", owner, was))
	startDaemon(t, "run", "-c", path)
	in := func(c *telegram.Chat, text, want string) {
		t.Helper()
		town.chat = c
		user.Send(c, text)
		town.await(want)
	}
	in(group, "/language de", "Ich schreibe ab jetzt Deutsch.")
	in(group, `[[text "the first answer"]]`, "the first answer")
	town.awaitDone(1)
	in(group, "/cron every weekday at 8:30 look", "werktags um 8:30")
	if _, err := user.Press(town.soon(), town.awaitButton("✅ Anlegen"), "✅ Anlegen"); err != nil {
		t.Fatal(err)
	}

	now := group.Upgrade(is, user)
	town.chat = private
	town.await(fmt.Sprintf("until telegram.allowed_groups has %d in the place of %d", is, was))
	town.edit(path, fmt.Sprint("[", was, "]"), fmt.Sprint("[", is, "]"))
	in(private, "/reload", "config.toml was read again.")

	in(now, `[[text "the second answer"]]`, "the second answer")
	town.awaitDone(1)
	in(now, "/status", "2 Nachrichten")
	in(now, "/cron", "werktags um 8:30")
}
