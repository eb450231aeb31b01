package main

import (
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
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

const lateEdit = "This has already run. Send it again to run the new text."

// lateEdits returns the messages of the bot about edits of prompts that have run.
func (town *town) lateEdits() (all []telegram.Message) {
	for _, m := range town.chat.View().FromBot() {
		if m.Text == lateEdit {
			all = append(all, m)
		}
	}
	return all
}

// An edit of a prompt that has run gets one silent answer for each message.
func TestAnEditOfAPromptThatRan(t *testing.T) {
	town := newTown(t, nil)
	said := town.say(`[[start]] [[text "the answer"]]`)
	town.awaitDone(1)
	town.awaitIdle()
	user := town.chat.Person()
	user.Edit(said, `[[start]] [[text "the better answer"]]`)
	if m := town.await(lateEdit); m.ReplyTo != said.ID || !m.Silent {
		t.Errorf("the answer to the edit is %+v", m)
	}
	user.Edit(said, `[[start]] [[text "the best answer"]]`)
	user.Edit(said, "/model codex")
	command := town.say(`[[start]] [[text "another answer"]]`)
	town.awaitDone(2)
	town.awaitIdle()
	user.Edit(command, "/model codex")
	town.awaitMessage(func(m telegram.Message) bool { return m.Text == lateEdit && m.ReplyTo == command.ID })
	model := town.say(`[[start]] [[text "a third answer"]]`)
	town.awaitDone(3)
	town.awaitIdle()
	user.Edit(model, "@codex "+model.Text)
	town.awaitMessage(func(m telegram.Message) bool { return m.Text == lateEdit && m.ReplyTo == model.ID })
	if all := town.lateEdits(); len(all) != 3 {
		t.Errorf("edits of three messages get %d answers: %+v", len(all), all)
	}
	if m, found := town.chat.View().Find("the better answer"); found && m.From.Bot {
		t.Errorf("an edit ran: %q", m.Text)
	}
	if status := town.answer("/status", "Folder: "); strings.Contains(status, "Codex ·") {
		t.Errorf("an edit into a command changed the agent: %q", status)
	}
}
