package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
)

// keepAsClaude writes a session into Claude's files, in Claude's format.
func (town *town) keepAsClaude(id, prompt string) {
	town.t.Helper()
	dir := town.cfg.Projects.DefaultDir
	kept := filepath.Join(os.Getenv("HOME"), ".claude", "projects",
		strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(dir))
	if err := os.MkdirAll(kept, 0o700); err != nil {
		town.t.Fatal(err)
	}
	line := fmt.Sprintf(`{"type":"user","sessionId":%q,"cwd":%q,"message":{"role":"user","content":%q}}`+"\n", id, dir,
		prompt)
	if err := os.WriteFile(filepath.Join(kept, id+".jsonl"), []byte(line), 0o600); err != nil {
		town.t.Fatal(err)
	}
}

// The list of the terminal's sessions omits all sessions that an agent began for ductor: a deleted one of another
// chat, the answer to a question to a model, and a session of an agent that has another name in the configuration.
func TestAttackFromTheTerminalIntoOtherChats(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Telegram.AllowedUsers = append(c.Telegram.AllowedUsers, neighbour)
		c.Agents.ACP = overACP("gem", c.Agents.Gemini.Path)
	})
	theirs := *town
	theirs.chat = town.srv.Private(neighbour, "Neighbour")
	theirs.say(`what all earn [[text "noted"]]`)
	theirs.awaitDone(1)
	theirs.say("/new")
	theirs.await("New session")
	theirs.say("/sessions")
	theirs.press(theirs.await("Tap one to open it").Keyboard[0][0].Text)
	theirs.press("🗑 Delete")
	theirs.await("Delete \"what all earn")
	theirs.press("🗑 Delete")
	theirs.await("There are no sessions here yet")
	theirs.say(`@gem whom we dismiss [[text "listed"]]`)
	theirs.awaitDone(2)
	theirs.say(`/consult claude What of the merger? [[text "It is secret."]]`)
	theirs.await("It is secret.")

	begun := 0
	err := filepath.WalkDir(filepath.Join(os.Getenv("HOME"), ".ductor-sim"),
		func(path string, d fs.DirEntry, err error) error {
			if id, is := strings.CutSuffix(filepath.Base(path), ".jsonl"); is {
				town.keepAsClaude(id, "said in another chat")
				begun++
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	if begun != 3 {
		t.Fatalf("the agents began %d sessions", begun)
	}
	town.keepAsClaude("8e3ffff2-cb0a-4ae2-a20a-982fd57eae5c", "begun in a terminal")
	town.keepAsClaude("8e3ffff2-cb0a-4ae2-a20a-982fd57eae5d",
		"<instructions>\nThe user reads your answers in a chat. To send a file")
	town.say("/sessions")
	town.await("There are no sessions here yet")
	town.press("💻 From the terminal")
	if list := town.await("Terminal sessions"); strings.Contains(list.Text, "in another chat") ||
		strings.Contains(list.Text, "\n2. ") || !strings.Contains(list.Text,
		"1. Claude, just now\n    “begun in a terminal”") {
		t.Errorf("the list is %q", list.Text)
	}
}
