package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// A file in an answer to a question, or in the reason for a denial, reaches the agent in its sandbox. A typed path in
// ductor's form for files copies nothing into the sandbox.
func TestAFileInAnAnswerReachesASandbox(t *testing.T) {
	host := engineHost(t)
	town := newTown(t, func(c *config.Config) {
		boxes(t, host, c)
		c.Agents.Default, c.Permissions.Mode = "codex", "ask"
	})
	uploads := filepath.Join(town.cfg.Storage.Dir, environment.UploadsDir)
	other := filepath.Join(uploads, "other-chat", "typed.csv")
	if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, csvFile("").Data, 0o600); err != nil {
		t.Fatal(err)
	}
	user, asked := town.chat.Person(), telegram.Message{}
	ask := func(prompt, name, button string) telegram.Message {
		t.Helper()
		town.say(`%s [[tool cmd="touch %s; find %s -name '*%[2]s' -exec cp {} %[2]s ';'"]]`,
			prompt, name, uploads)
		before := asked.ID
		asked = town.awaitMessage(func(m telegram.Message) bool { return m.ID > before && m.HasButton(button) })
		town.awaitKnown(asked) // users are slower than that
		return asked
	}
	turns := 0
	sees := func(name, want string) {
		t.Helper()
		turns++
		town.awaitDone(turns)
		got, err := os.ReadFile(filepath.Join(town.cfg.Projects.DefaultDir, name))
		if string(got) != want || err != nil {
			t.Errorf("of %s the agent saw %q, %v", name, got, err)
		}
	}
	content := string(csvFile("").Data)

	question := ask(`[[start]] [[question "Which?"]]`, "answer.csv", "✖ Don't answer")
	user.SendDocument(town.chat, csvFile("answer.csv"), telegram.ReplyTo(question.ID))
	sees("answer.csv", content)

	question = ask(`[[start]] [[question "Which?"]]`, "typed.csv", "✖ Don't answer")
	typed := fmt.Sprintf(`[Attached file "typed.csv" (text/csv): %s]`, other)
	user.Send(town.chat, typed, telegram.ReplyTo(question.ID))
	sees("typed.csv", "")

	request := ask(`@claude [[start]] [[ask cmd="touch denied"]]`, "why.csv", "Deny with reason…")
	town.pressOn(request, "Deny with reason…")
	user.SendDocument(town.chat, csvFile("why.csv"))
	sees("why.csv", content)
}
