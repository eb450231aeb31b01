package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// theTree prints the state that Undo must restore: files, the index, the stash and HEAD.
const theTree = `git rev-parse HEAD; git write-tree; git status --porcelain; git stash list; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum`

// One typical conversation with each real agent: a long turn ends with one audible message. The test opens its steps,
// an output, the diff and the receipt. Undo restores the exact tree, and Commit works. A picture that the agent drew
// arrives, and a voice message becomes a prompt.
func TestOneConversationWithEachRealAgent(t *testing.T) {
	for _, agent := range realagent.Some("claude", "codex", "gemini", "copilot") {
		t.Run(agent, func(t *testing.T) {
			ear := filepath.Join(t.TempDir(), "ear")
			if err := os.WriteFile(ear, []byte("#!/bin/sh\ncat \"$1\"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			town, _ := realTown(t, agent, func(c *config.Config) {
				c.Notify.Mode, c.Voice.Command, c.Permissions.Mode = "always", []string{ear}, "ask"
			})
			town.runLongTurn()
			town.undoAndCommit()
			town.chat.Person().SendVoice(town.chat, []byte(`[[text "the voice was heard"]]`))
			town.await("the voice was heard")
		})
	}
}

// runLongTurn runs a turn that changes files of all kinds and draws a picture.
func (town *town) runLongTurn() {
	t := town.t
	t.Helper()
	chart := picture(t)
	town.makeFile("drawn.png", chart)
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; echo '*.log' > .gitignore
		head -c 300 /dev/zero > b.bin; echo goes > gone.txt; echo moves > old.txt; git add .; git commit -qm one
		echo staged > s.txt; git add s.txt; echo stashed > a.txt; git stash -q; git stash apply -q; echo untracked > u.txt`)
	prompt := town.say(
		`Change it. [[start]] [[text "I begin at once, and take my time. " chunk=1 delay=300ms]] [[tool cmd="echo two >> a.txt; head -c 400 /dev/zero > b.bin; rm gone.txt; mv old.txt new.txt; echo more >> u.txt; mkdir -p d; echo n > d/n.txt; cp drawn.png chart.png; expr 40 + 2"]] [[text "It is done.\n\n[[file: chart.png | A chart]]"]]`)
	// Users need some time, in which the snapshot before the turn ends.
	asked := town.awaitButton("✅ Allow once")
	town.awaitLook(1)
	town.pressOn(asked, "✅ Allow once")
	m, data := town.awaitFile("photo", "")
	if m.Text != "A chart" || !bytes.Equal(data, chart) {
		t.Errorf("the picture arrives with %q", m.Text)
	}
	card := town.awaitButton("🪜 Steps")
	town.pressOn(card, "🪜 Steps")
	list := town.await("1 step")
	town.pressOn(list, "1")
	if step := town.await("\n42"); step.ID != list.ID || !hasKind(step, "expandable_blockquote") {
		t.Errorf("the step says %q: %+v", step.Text, step.Entities)
	}
	for _, m := range town.chat.View().FromBot() {
		if m.ID > prompt.ID && strings.Contains(m.Text, "✅ Done") {
			t.Errorf("the end is announced to a user who has just pressed: %q", m.Text)
		}
	}
}

// undoAndCommit presses the buttons of the receipt.
func (town *town) undoAndCommit() {
	t := town.t
	t.Helper()
	after := town.sh(theTree)
	receipt := town.awaitMessage(func(m telegram.Message) bool { return m.HasButton("↩️ Undo") })
	if !strings.Contains(receipt.Text, " files +") {
		t.Errorf("the receipt says %q", receipt.Text)
	}
	town.pressOn(receipt, "📝 Diff")
	town.awaitMessage(func(m telegram.Message) bool {
		return m.ID > receipt.ID && m.Media != nil && m.Text != "A chart"
	})
	town.pressOn(receipt, "↩️ Undo")
	town.await("↩️ Undone.")
	if got := town.sh(
		`cat a.txt u.txt gone.txt old.txt s.txt; wc -c < b.bin; ls; git stash list | wc -l; git status --porcelain`); got !=
		"stashed\nuntracked\ngoes\nmoves\nstaged\n300\na.txt\nb.bin\ndrawn.png\ngone.txt\nold.txt\ns.txt\nu.txt\n1\n M a.txt\nA  s.txt\n?? u.txt\n" {
		t.Errorf("undone, the tree is %q", got)
	}
	town.press("↪️ Redo")
	town.await("↪️ Redone.")
	if got := town.sh(theTree); got != after {
		t.Errorf("done again, the tree is\n%s\nand was\n%s", got, after)
	}
	town.pressOn(receipt, "✅ Commit")
	asked := town.await("with this message?")
	town.chat.Person().Send(town.chat, "Change it all", telegram.ReplyTo(asked.ID))
	town.await("✅ Committed ")
	if got := town.sh(`git log -1 --format=%s; git status --porcelain`); got != "Change it all\nA  s.txt\n" {
		t.Errorf("committed, git says %q", got)
	}
}
