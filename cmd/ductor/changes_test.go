package main

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// sh runs a script in the project, as the user would.
func (town *town) sh(script string) string {
	town.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = town.cfg.Projects.DefaultDir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		town.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// snapshots returns how many snapshots ductor stores: those before and after turns, and those of checkpoints.
func (town *town) snapshots() int {
	town.t.Helper()
	return len(strings.Fields(town.sh("git for-each-ref --format='%(refname)' refs/ductor")))
}

// awaitLook waits until ductor stores n snapshots.
func (town *town) awaitLook(n int) {
	town.t.Helper()
	for ctx := town.soon(); town.snapshots() < n; {
		if ctx.Err() != nil {
			town.t.Fatal("the files are not looked at")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A turn that changed files ends with a receipt. Its buttons show, undo, redo and commit the changes, also after a
// restart. A button that comes too late says why. /checkpoint and /diff do the same for several turns.
func TestAReceiptUndoesAndCommitsATurn(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "ask" })
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; echo '*.log' > .gitignore; git add .; git commit -qm one; echo staged > s.txt; git add s.txt`)
	town.say("/checkpoint the start")
	town.await("Checkpoint saved: 📌 the start")
	before := town.sh("git write-tree; git status --porcelain")
	town.say(
		`Change it. [[start]] [[ask cmd="echo two >> a.txt; echo new > n.txt; echo i > x.log"]] [[text "changed"]]`)
	asked := town.awaitButton("✅ Allow once")
	town.awaitLook(2)
	town.pressOn(asked, "✅ Allow once")
	card := town.await("2 files +2 −0")
	if !strings.Contains(card.Text, "Undo leaves ignored files as they are.") {
		t.Errorf("the receipt says %q", card.Text)
	}
	town.pressOn(card, "↩️ Undo")
	town.await("↩️ Undone. 2 files are as they were before the turn.")
	if got := town.sh("git write-tree; git status --porcelain"); got != before {
		t.Errorf("undone, git says %s, and before %s", got, before)
	}
	if got := town.sh("cat a.txt x.log"); got != "one\ni\n" {
		t.Errorf("undone, the files are %q", got)
	}
	town.stop()
	town.start()
	town.awaitMessage(func(m telegram.Message) bool {
		return m.ID == card.ID && m.HasButton("↪️ Redo") && !m.HasButton("↩️ Undo")
	})
	if a := town.pressOn(card, "✅ Commit"); a.Text != "This is undone already." {
		t.Errorf("a commit of what is undone: %q", a.Text)
	}
	town.press("↪️ Redo")
	town.await("↪️ Redone. 2 files are as they were after the turn.")
	town.awaitMessage(func(m telegram.Message) bool { // a press below the report changes the answer, too
		return m.ID == card.ID && m.HasButton("↩️ Undo") && !m.HasButton("↪️ Redo")
	})
	town.pressOn(card, "📝 Diff")
	_, shown := town.awaitFile("photo", "")
	if size, err := png.DecodeConfig(bytes.NewReader(shown)); err != nil || size.Width < 500 {
		t.Errorf("the diff is a picture of %+v, %v", size, err)
	}
	town.pressOn(card, "✅ Commit")
	first := town.await("Commit 2 files with this message?")
	town.awaitIdle() // a tap while the first question is being sent changes nothing
	town.pressOn(card, "✅ Commit")
	asked = town.awaitMessage(func(m telegram.Message) bool {
		return m.ID != first.ID && strings.HasPrefix(m.Text, "Commit 2 files with this message?")
	})
	town.awaitDeleted(first)
	town.stop()
	town.start() // the answer loses its button although the question is from before the restart
	town.chat.Person().Send(town.chat, "Count to two", telegram.ReplyTo(asked.ID))
	town.await("✅ Committed 2 files as ")
	town.awaitDeleted(asked)
	if got := town.sh(
		"git log -1 --format='%an %s'; git show --name-only --format=; git status --porcelain"); got != "Ann Count to two\na.txt\nn.txt\nA  s.txt\n" {
		t.Errorf("git says %q", got)
	}
	town.awaitMessage(func(m telegram.Message) bool {
		return m.ID == card.ID && m.HasButton("↩️ Undo") && !m.HasButton("✅ Commit")
	})
	town.say("/checkpoint list")
	list := town.awaitMessage(isPoints)
	for _, row := range list.Keyboard {
		if strings.Contains(row[0].Text, "the start") {
			town.pressOn(list, row[0].Text)
		}
	}
	question := town.awaitMessage(func(m telegram.Message) bool { return m.ID == list.ID && m.HasButton("⏪ Return") })
	town.pressOn(question, "⏪ Return")
	town.await("files are as they were then")
	if _, err := os.Stat(filepath.Join(town.cfg.Projects.DefaultDir, "n.txt")); err == nil {
		t.Error("a file that came later is still there")
	}
	town.say("/diff a.txt")
	town.await("Nothing has changed.")
	town.press("Commit")
	town.await("1 file +0 −1")
}

// The page of a session lists its turns, and restores the files from before or after one, also after a restart and
// from another session.
func TestFilesReturnToEitherSideOfATurn(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "ask" })
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; git add .; git commit -qm one`)
	for i, name := range []string{"two", "three"} {
		town.say(`Make %[1]s. [[start]] [[ask cmd="echo %[1]s > %[1]s.txt"]] [[text "made %[1]s"]]`, name)
		asked := town.awaitButton("✅ Allow once")
		town.awaitLook(2*i + 1)
		town.pressOn(asked, "✅ Allow once")
		town.awaitDone(i + 1)
		town.awaitLook(2*i + 2)
	}
	town.say("/new")
	town.await("New session")
	town.stop()
	town.start()
	for _, back := range []struct{ button, said, files string }{
		{"⏪ Before it", "2 files are as they were then: Before “Make two", "a.txt\n"},
		{"⏩ After it", "1 file is as it was then: After “Make two", "a.txt\ntwo.txt\n"},
	} {
		town.awaitAfter(town.say("/sessions"), "Sessions in this chat")
		town.pressThat("1. ")
		town.press("⏪ Files…")
		town.pressThat("Before “Make two")
		town.press(back.button)
		town.await(back.said)
		if got := town.sh("ls"); got != back.files {
			t.Errorf("%s: there are %q", back.button, got)
		}
	}
}

// pressThat presses the newest button whose text begins with this.
func (town *town) pressThat(begins string) {
	town.t.Helper()
	var name string
	m := town.awaitMessage(func(m telegram.Message) bool {
		for _, row := range m.Keyboard {
			if strings.HasPrefix(row[0].Text, begins) {
				name = row[0].Text
				return true
			}
		}
		return false
	})
	town.pressOn(m, name)
}

func isPoints(m telegram.Message) bool {
	return strings.HasPrefix(m.Text, "Tap a checkpoint or a turn")
}

// The buttons below the picture or file of a diff show it in the other theme, and show the changes since the
// session's start or the last commit.
func TestTheButtonsBelowADiff(t *testing.T) {
	town := newTown(t, nil)
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; git add .; git commit -qm one; echo two >> a.txt`)
	picture := func(not ...telegram.Message) (telegram.Message, []byte) {
		t.Helper()
		m := town.awaitMessage(func(m telegram.Message) bool {
			return m.Media != nil && m.Media.Kind == "photo" &&
				!slices.ContainsFunc(not, func(old telegram.Message) bool { return old.ID == m.ID })
		})
		data, _ := town.srv.FileData(m.Media.FileID)
		return m, data
	}
	town.say("/diff")
	light, shown := picture()
	town.pressOn(light, "🌙 Dark")
	dark, darkShown := picture(light)
	town.pressOn(dark, "☀️ Light")
	again, againShown := picture(light, dark)
	if bytes.Equal(shown, darkShown) || !bytes.Equal(shown, againShown) || dark.ReplyTo != light.ID {
		t.Errorf("the pictures have %d, %d and %d bytes", len(shown), len(darkShown), len(againShown))
	}
	if a := town.pressOn(dark, "Session"); a.Text != "These changes are no longer stored." {
		t.Errorf("since the session: %q", a.Text)
	}
	town.pressOn(dark, "✓ Commit")
	if _, shown := picture(light, dark, again); !bytes.Equal(shown, darkShown) {
		t.Error("the buttons below a dark picture show light ones")
	}
	town.sh(`seq 200 > a.txt`)
	town.say("/diff")
	file, data := town.awaitFile("document", "changes.diff")
	town.pressOn(file, "✓ Commit")
	second := town.awaitMessage(func(m telegram.Message) bool {
		return m.Media != nil && m.Media.Kind == "document" && m.ID != file.ID
	})
	if again, _ := town.srv.FileData(second.Media.FileID); !bytes.Equal(again, data) ||
		!bytes.Contains(data, []byte("+200")) {
		t.Errorf("the file has %d bytes, and the second one %d", len(data), len(again))
	}
}
