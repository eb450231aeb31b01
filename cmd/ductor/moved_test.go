package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
)

// A group may become a supergroup, for example to get topics. Once the owner allows it, the chat continues under its
// new id with its session, its agent's memory, its language and its schedules.
func TestAGroupThatBecomesASupergroupGoesOn(t *testing.T) {
	const was, is = -42, -1000000000042
	town := surroundings(t, nil)
	user := town.chat.Person()
	private, group := town.chat, town.srv.Group(was, "Team")
	path := town.writeConfig()
	town.edit(path, fmt.Sprintf("allowed_users = [%d]", owner),
		fmt.Sprintf("allowed_users = [%d]\nallowed_groups = [%d]\ngroup_trigger = \"all\"", owner, was))
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
	in(group, "/cron every weekday at 8:30 look", "montags bis freitags um 8:30")
	if _, err := user.Press(town.soon(), town.awaitButton("✅ Anlegen"), "✅ Anlegen"); err != nil {
		t.Fatal(err)
	}

	now := group.Upgrade(is, user)
	town.chat = private
	town.await(fmt.Sprintf("until telegram.allowed_groups has %d in the place of %d", is, was))
	town.edit(path, fmt.Sprint("[", was, "]"), fmt.Sprint("[", is, "]"))
	in(private, "/reload", "I read config.toml again.")

	in(now, `[[text "the second answer"]]`, "the second answer")
	town.awaitDone(1)
	in(now, "/status", "2 Nachrichten")
	in(now, "/cron", "montags bis freitags um 8:30")
}

// waiting is a prompt whose turn answers "one", waits for the file go, answers "two", and names the file out.txt.
const waiting = `[[start]] [[text "one"]] [[tool cmd="echo 12 > out.txt; touch began; until test -e go; do sleep 0.02; done"]] [[text "two\n\n[[file: out.txt]]\n"]]`

// awaitDelivered waits until all turns have ended and their outcomes were shown, as far as their chats accept them.
func (town *town) awaitDelivered() {
	town.t.Helper()
	db, err := store.OpenReadOnly(town.t.Context(), town.database(), store.Options{})
	if err != nil {
		town.t.Fatal(err)
	}
	defer db.Close()
	eventually(town.t, "every turn to be delivered", func() bool {
		open, err := db.OpenTurns(town.t.Context())
		return err == nil && len(open) == 0
	})
}

// If a group becomes a supergroup during a turn, the whole answer and its file arrive under the new id.
func TestAnAnswerFollowsItsGroup(t *testing.T) {
	const was, is = -42, -1000000000042
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Telegram.AllowedGroups, c.Telegram.GroupTrigger = "bypass", []int64{was}, "all"
	})
	user, group := town.chat.Person(), town.srv.Group(was, "Team")
	town.chat = group
	user.Send(group, waiting)
	town.await("one")
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "began"))
	town.chat = group.Upgrade(is, user)
	town.makeFile("go", nil)
	card := town.awaitDone(1)
	if !strings.Contains(card.Text, "one") || !strings.Contains(card.Text, "two") || card.ReplyTo != 0 {
		t.Errorf("the new group has %q, a reply to %d", card.Text, card.ReplyTo)
	}
	town.awaitFile("document", "out.txt")
}

// If a group becomes a supergroup while a card is open, the card appears under the new id, and Allow works there.
func TestAnOpenCardFollowsItsGroup(t *testing.T) {
	const was, is = -42, -1000000000042
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Telegram.AllowedGroups, c.Telegram.GroupTrigger = "ask", []int64{was, is}, "all"
	})
	user, group := town.chat.Person(), town.srv.Group(was, "Team")
	town.chat = group
	user.Send(group, `[[start]] [[ask cmd="touch made"]] [[text "that was all"]]`)
	town.awaitButton("✅ Allow once")
	town.chat = group.Upgrade(is, user)
	if _, err := user.Press(town.soon(), town.awaitButton("✅ Allow once"), "✅ Allow once"); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "made"))
}

// TestAnOpenCardFollowsItsGroupOverARestart tests the same when the group moves before or after a restart.
func TestAnOpenCardFollowsItsGroupOverARestart(t *testing.T) {
	const was, is = -42, -1000000000042
	for name, restart := range map[string]func(town *town, move func()){
		"moved before": func(town *town, move func()) {
			move()
			town.awaitButton("✅ Allow once")
			town.leave()
			town.start()
		},
		"moved in between": func(town *town, move func()) { town.leave(); move(); town.start() },
		"moved after":      func(town *town, move func()) { town.leave(); town.start(); move() },
		"restarted again": func(town *town, move func()) {
			town.leave()
			move()
			town.start()
			town.awaitButton("✅ Allow once")
			town.leave()
			town.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) {
				c.Permissions.Mode, c.Telegram.AllowedGroups, c.Telegram.GroupTrigger = "ask", []int64{was, is}, "all"
			})
			user, group := town.chat.Person(), town.srv.Group(was, "Team")
			town.chat = group
			user.Send(group, `[[start]] [[ask cmd="touch made"]] [[text "that was all"]]`)
			town.awaitButton("✅ Allow once")
			restart(town, func() { town.chat = group.Upgrade(is, user) })
			answer, err := user.Press(town.soon(), town.awaitButton("✅ Allow once"), "✅ Allow once")
			if err != nil || answer.Text != "Allowed." {
				t.Errorf("the press is answered with %+v: %v", answer, err)
			}
			awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "made"))
			town.await("that was all")
		})
	}
}

// A user blocks the bot during a turn. When the bot may write again, it offers the answer, and Show again shows all
// of it, also after a restart.
func TestAnAnswerIsKeptWhileTheBotIsBlocked(t *testing.T) {
	for name, before := range map[string]string{"before the first word": "", "after it": "one"} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
			user := town.chat.Person()
			if before == "" {
				town.say("%s", strings.Replace(waiting, `[[text "one"]] `, "", 1)+`[[text "one"]]`)
			} else {
				town.say("%s", waiting)
				town.await(before)
			}
			awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "began"))
			user.Block()
			town.makeFile("go", nil)
			town.awaitDelivered()
			town.stop()
			town.start()
			user.Unblock()
			town.say("/status")
			town.press("👁 Show again")
			if card := town.awaitDone(1); !strings.Contains(card.Text, "one") || !strings.Contains(card.Text, "two") {
				t.Errorf("shown again: %q", card.Text)
			}
			town.awaitFile("document", "out.txt")
			if n := len(ended(town.chat.View())); n != 1 {
				t.Errorf("%d messages have the answer", n)
			}
		})
	}
}

// If the bot may not write in a group, the user of the turn and the owner learn that in private. When it may write
// again, Show again shows the answer.
func TestAGroupThatDoesNotLetTheBotWrite(t *testing.T) {
	const team = -42
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Telegram.AllowedGroups, c.Telegram.GroupTrigger = "bypass", []int64{team}, "all"
		c.Telegram.AllowedUsers = []int64{owner, neighbour}
	})
	asker := town.srv.Private(neighbour, "Neighbour").Person()
	asker.Send(town.srv.Private(neighbour, "Neighbour"), "/help")
	town.say("/help")
	group := town.srv.Group(team, "Team")
	group.SetBot(telegram.Restricted, town.chat.Person())
	asker.Send(group, `[[text "only for the group"]]`)
	for _, private := range []*telegram.Chat{town.chat, town.srv.Private(neighbour, "Neighbour")} {
		told, err := private.AwaitText(town.soon(), "I can't write in “Team”")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(told.Text, "only for the group") {
			t.Errorf("the answer is shown elsewhere: %q", told.Text)
		}
	}
	town.awaitDelivered()
	group.SetBot(telegram.Member, town.chat.Person())
	asker.Send(group, "/status")
	town.chat = group
	offer := town.awaitButton("👁 Show again")
	if _, err := asker.Press(town.soon(), offer, "👁 Show again"); err != nil {
		t.Fatal(err)
	}
	town.await("only for the group")
}
