package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
)

// After a button that asks for the name of a job, the user's next message is the name, although it is no reply, also
// after a restart. A button makes a prompt of it.
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
	town.await("It runs as a prompt, too.")
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
	town.say(`/cron every weekday at 8:30 [[text "the CI is green"]]`)
	town.press("✏️ Change")
	town.press("⚙️ More")
	town.press("Name")
	town.await("Reply to this message with its new name.")
	town.say(`/new [[start]] [[question "Which database?" echo=1]] [[text " is the answer"]]`)
	asked := town.awaitButton("✖ Don't answer")
	town.awaitKnown(asked)
	town.say("MariaDB")
	if m := town.awaitDone(1); !strings.Contains(m.Text, "MariaDB") {
		t.Errorf("the turn got %q", m.Text)
	}
	town.say("CI report")
	town.await("New job: CI report")
}
