package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

const treeTable = `[[text "| tree | age |\n|--|--:|\n| oak | 800 |\n"]]`

// askedTown returns a town whose chat was asked whether it sees tables, after an answer with a table.
func askedTown(t *testing.T) (*town, telegram.Message) {
	t.Helper()
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Stream.Display = "bypass", "ask"
		c.Queue.MergeWindow = 10 * time.Second // a long prompt is several messages
	})
	town.say("no table")
	town.awaitDone(1)
	town.say(treeTable)
	first := town.awaitDone(2)
	if first.Rich != nil {
		t.Errorf("an answer is rich before a user was asked: %q", first.Text)
	}
	question := town.awaitButton("I see a table")
	if len(question.Rich) != 2 || question.Rich[0].Kind != "table" || question.ID < first.ID {
		t.Errorf("the question is %+v", question)
	}
	return town, question
}

// The chat is asked once, after the first answer with a table. If its user sees the table, the next answer is one
// growing rich message, which includes the outputs of tools. /display changes that for the next turn.
func TestAChatThatSeesTablesGetsRichAnswers(t *testing.T) {
	town, question := askedTown(t)
	if a := town.pressOn(question, "I see a table"); !strings.Contains(a.Text, "answers show tables from now on") {
		t.Errorf("the press is answered with %q", a.Text)
	}
	town.awaitNoButton("I see a table")
	const tool = `[[tool cmd="echo out-of-the-tool; until test -e go; do sleep 0.02; done"]] `
	town.say(`[[start]] [[text "I look."]] ` + tool + treeTable)
	town.await("I look.")
	town.makeFile("go", nil)
	rich := town.awaitDone(3)
	var found []string
	for _, b := range rich.Rich {
		found = append(found, b.Kind)
	}
	if !slices.Contains(found, "table") || !slices.Contains(found, "details") ||
		!strings.Contains(rich.Text, "out-of-the-tool") {
		t.Errorf("the rich answer has the blocks %v: %q", found, rich.Text)
	}
	if len(rich.Versions) < 2 || len(rich.Versions[0].Rich) == 0 {
		t.Errorf("it did not grow: %d versions", len(rich.Versions))
	}
	town.say(`[[start]] [[text %q]]`, strings.Repeat("An oak is a tree. ", 600))
	if long := town.awaitDone(4); len(long.Text) < 9000 {
		t.Errorf("a long answer has %d bytes in its last message", len(long.Text))
	}
	town.say("/display plain")
	town.await("Set, from the next turn on.")
	town.say(treeTable)
	if plain := town.awaitDone(5); plain.Rich != nil {
		t.Errorf("after /display plain an answer is rich: %q", plain.Text)
	}
	for _, m := range town.chat.View().FromBot() {
		if m.ID > question.ID && strings.Contains(m.Text, "What do you see?") {
			t.Errorf("the chat was asked once more: %q", m.Text)
		}
	}
}

// If the user sees "not supported", or does not answer, the chat keeps plain answers. It is not asked again, also
// after a restart.
func TestAChatThatSeesNoTablesKeepsPlainAnswers(t *testing.T) {
	for name, answers := range map[string]bool{"answered": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			town, question := askedTown(t)
			if answers {
				if a := town.pressOn(question, "I see “not supported”"); !strings.Contains(a.Text, "stay plain") {
					t.Errorf("the press is answered with %q", a.Text)
				}
			}
			town.leave()
			town.start()
			town.say(treeTable)
			if m := town.awaitDone(3); m.Rich != nil {
				t.Errorf("an answer is rich: %q", m.Text)
			}
			town.say("/display")
			shown := town.await("How should this chat show answers?")
			if !strings.Contains(shown.Text, "plain") {
				t.Errorf("/display says %q", shown.Text)
			}
			n := 0
			for _, m := range town.chat.View().FromBot() {
				if strings.Contains(m.Text, "What do you see?") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("the chat was asked %d times", n)
			}
		})
	}
}

// After a restart, a rich card continues in its message.
func TestARichCardContinuesAfterARestart(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode, c.Stream.Display = "bypass", "rich" })
	town.say(
		`[[start]] [[text "I look."]] [[tool cmd="touch started; while [ ! -e go ]; do sleep 0.05; done; echo out-of-the-tool"]] ` + treeTable)
	awaitFile(t, town.cfg.Projects.DefaultDir+"/started")
	begun := town.await("I look.")
	if begun.Rich == nil {
		t.Fatalf("the card is plain: %q", begun.Text)
	}
	town.leave()
	town.start()
	town.makeFile("go", nil)
	done := town.awaitDone(1)
	if done.ID != begun.ID || !strings.Contains(done.Text, "out-of-the-tool") ||
		!strings.Contains(done.Text, "oak | 800") {
		t.Errorf("message %d continued in %d: %q", begun.ID, done.ID, done.Text)
	}
	for _, m := range town.chat.View().FromBot() {
		if m.ID != done.ID && strings.Contains(m.Text, "oak") {
			t.Errorf("the answer is shown twice: %q", m.Text)
		}
	}
}

// A server without rich messages cannot show the table in the question, so the chat is not asked.
func TestAnOldServerIsNotAskedAboutTables(t *testing.T) {
	town := surroundings(t, func(c *config.Config) { c.Permissions.Mode, c.Stream.Display = "bypass", "ask" })
	srv := telegram.New(telegram.Options{Without: []string{"sendRichMessage"}})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	town.srv, town.chat, town.cfg.Telegram.APIBase = srv, srv.Private(owner, "Owner"), srv.URL()
	town.start()
	town.say(treeTable)
	town.awaitDone(1)
	asked := func() bool {
		return slices.ContainsFunc(srv.Calls(telegram.Writes), func(c telegram.Call) bool {
			return c.Method == "sendRichMessage"
		})
	}
	eventually(t, "the question to be tried", asked)
	town.awaitIdle()
	for _, m := range town.chat.View().FromBot() {
		if m.HasButton("I see a table") {
			t.Errorf("the chat is asked %q", m.Text)
		}
	}
}
