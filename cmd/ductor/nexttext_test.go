package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// After a button that asks for the name of a job, the user's next message is the name, although it is no reply, also
// after a restart. A button makes a prompt of it and restores the name.
func TestTheNextMessageIsTheTextThatWasAskedFor(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "bypass" })
	town.say(`/cron every weekday at 8:30 [[text "the CI is green"]]`)
	town.press("✏️ Change")
	town.press("⚙️ More")
	town.press("Name")
	town.await("Reply to this message with its new name.")
	town.stop()
	town.start()
	town.say(`CI report [[text "it runs as a prompt"]]`)
	town.await("New job: CI report")
	town.await("I used this as the text that I asked you for.")
	town.press("✖ No, a new prompt")
	town.await("is as before. Name:")
	town.awaitDone(1)
	town.await("it runs as a prompt")
}

// While ductor transcribes a voice message, the user taps a button that asks for the name of a job. The voice message
// is a prompt, because the user sent it before the question.
func TestAnEarlierVoiceMessageIsNotTheTextThatWasAskedFor(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	script := fmt.Sprintf(`while [ ! -e %q ]; do sleep 0.05; done; cat "$1"`, asked)
	town := listeningTown(t, script, func(cfg *config.Config) { cfg.Permissions.Mode = "bypass" })
	town.say(`/cron every weekday at 8:30 [[text "the CI is green"]]`)
	town.press("✏️ Change")
	town.press("⚙️ More")
	town.awaitButton("Name")
	town.chat.Person().SendVoice(town.chat, []byte(`[[text "it runs as a prompt"]]`))
	town.press("Name")
	town.await("Reply to this message with its new name.")
	if err := os.WriteFile(asked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	town.awaitDone(1)
	town.await("it runs as a prompt")
	town.say("CI report")
	town.await("New job: CI report")
}

// After a button that asks for the name of a job, the agent asks a question. The user's next message answers the newer
// question, and the message after that is the name.
func TestTheNextMessageAnswersTheNewestQuestion(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Agents.Default = "codex" })
	town.say("/status")
	idle := town.await("Nothing is running")
	town.say(`/cron every weekday at 8:30 [[text "the CI is green"]]`)
	town.press("✏️ Change")
	town.press("⚙️ More")
	town.press("Name")
	town.await("Reply to this message with its new name.")
	town.chat.Person().Send(town.chat, `[[start]] [[question "Which database?" echo=1]] [[text " is the answer"]]`,
		telegram.ReplyTo(idle.ID))
	asked := town.awaitButton("✖ Don't answer")
	town.awaitKnown(asked)
	town.say("MariaDB")
	if m := town.awaitDone(1); !strings.Contains(m.Text, "MariaDB") {
		t.Errorf("the turn got %q", m.Text)
	}
	town.say("CI report")
	town.await("New job: CI report")
}

// After /new, the next message starts the new session. It answers no older question of the agent or of the bot, but a
// reply to the question still does.
func TestTheNextMessageAfterNewStartsASession(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Agents.Default = "codex" })
	town.say("/status")
	idle := town.await("Nothing is running")
	town.say(`/cron every weekday at 8:30 [[text "the CI is green"]]`)
	town.press("✏️ Change")
	town.press("⚙️ More")
	town.press("Name")
	town.await("Reply to this message with its new name.")
	town.chat.Person().Send(town.chat, `[[start]] [[question "Which database?" echo=1]] [[text " is the answer"]]`,
		telegram.ReplyTo(idle.ID))
	asked := town.awaitButton("✖ Don't answer")
	town.awaitKnown(asked)
	town.say("/new")
	town.await("New session")
	sent := town.say(`[[start]] [[text "in the new session"]]`)
	town.awaitMessage(func(m telegram.Message) bool { return m.ID > sent.ID && strings.Contains(m.Text, "Queued") })
	town.chat.Person().Send(town.chat, "MariaDB", telegram.ReplyTo(asked.ID))
	town.await("MariaDB is the answer")
	town.await("in the new session")
	if strings.Contains(joined(town.chat.View()), "I used this as") {
		t.Errorf("the prompt was also a text that was asked for:\n%s", said(town.chat.View()))
	}
}

// The message of a commit is a reply: nobody can undo a commit from the chat. The next message is a prompt.
func TestTheNextMessageIsNoCommit(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "ask" })
	town.sh(`git init -q -b main; git config user.name Ann; git config user.email a@b; git commit -q --allow-empty -m none`)
	town.say(`[[start]] [[ask cmd="echo one >a.txt"]] [[text "done"]]`)
	asks := town.awaitButton("✅ Allow once")
	town.awaitLook(1) // at the files before the turn
	town.pressOn(asks, "✅ Allow once")
	town.press("✅ Commit")
	asked := town.await("Commit 1 file with this message?")
	town.say(`[[start]] [[text "it runs as a prompt"]]`)
	town.await("it runs as a prompt")
	if log := town.sh(`git log --format=%s`); log != "none\n" {
		t.Errorf("the commits are %q", log)
	}
	town.chat.Person().Send(town.chat, "Add a file", telegram.ReplyTo(asked.ID))
	town.await("✅ Committed 1 file")
	if log := town.sh(`git log --format=%s`); log != "Add a file\nnone\n" {
		t.Errorf("the commits are %q", log)
	}
}
