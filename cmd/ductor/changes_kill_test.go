package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

// closeGit puts a git into PATH that waits while a file exists, and returns the file's path.
func closeGit(t testing.TB) (closed string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	closed = filepath.Join(bin, "closed")
	script := fmt.Sprintf("#!/bin/sh\nwhile test -e %s; do sleep 0.02; done\nexec %s \"$@\"\n", closed, git)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return closed
}

// If ductor is killed after an answer shows but before it compared the files, it compares them at the next start. The
// answer then gets its receipt once, and Undo works.
func TestFilesAreComparedAfterAKill(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "ask"
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; git add .; git commit -qm one`)
	closed := closeGit(t)
	path := town.writeConfig()
	d := startDaemon(t, "run", "-c", path)
	town.say(`[[start]] [[ask cmd="echo two >> a.txt; touch %s"]] [[text "changed"]]`, closed)
	asked := town.awaitButton("✅ Allow once")
	town.awaitLook(1)
	town.pressOn(asked, "✅ Allow once")
	if m := town.awaitDone(1); m.HasButton("↩️ Undo") {
		t.Fatalf("the files were compared: %q", m.Text)
	}
	d.kill()
	if err := os.Remove(closed); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "run", "-c", path)
	m := town.awaitMessage(func(m telegram.Message) bool { return m.HasButton("↩️ Undo") })
	if strings.Count(m.Text, "1 file +1 −0") != 1 || strings.Count(m.Text, "changed") != 1 ||
		!strings.Contains(m.Text, "✓") {
		t.Errorf("it shows %q", m.Text)
	}
	town.pressOn(m, "↩️ Undo")
	town.await("↩️ Undone.")
	if got := town.sh("cat a.txt"); got != "one\n" {
		t.Errorf("undone, the file is %q", got)
	}
}
