package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/app/environment"
	"ductor/internal/sim/telegram"
	"ductor/internal/testprogram"
)

// The test makes a backup while chats stream, and restores it on an empty machine. Waiting prompts run once,
// interrupted turns report that and can be repeated with a button, and later messages are answered once.
func TestABackupOfChatsThatStream(t *testing.T) {
	people := 5
	if testprogram.Long() {
		people = 20
	}
	town := surroundings(t, nil)
	town.extra = "max_live = 24"
	config := town.writeConfig()
	allowed, chats := fmt.Sprintf("allowed_users = [%d", owner), make([]*telegram.Chat, people)
	for i := range chats {
		chats[i] = town.srv.Private(telegram.UserID(100+i), fmt.Sprint("Person ", i))
		allowed += fmt.Sprint(", ", 100+i)
	}
	replaceIn(t, config, fmt.Sprintf("allowed_users = [%d", owner), allowed)
	o := &ordeal{town: town, config: config}
	o.rise()
	state, gate := town.cfg.Storage.Dir, filepath.Join(town.cfg.Projects.DefaultDir, "gate")
	for i, c := range chats {
		c.Person().Send(c,
			fmt.Sprintf(
				`[[start]] [[text "begun %d %s" delay=20ms chunk=4]] [[tool cmd="while [ ! -e %s ]; do sleep 0.1; done"]] [[text "end %d"]]`,
				i, strings.Repeat("and on ", 100), gate, i))
	}
	for i, c := range chats {
		if _, err := c.AwaitMessage(town.soon(), func(m telegram.Message) bool {
			return strings.Contains(m.Text, fmt.Sprintf("begun %d ", i))
		}); err != nil {
			town.fatal(err)
		}
		c.Person().SendDocument(c, telegram.File{Name: "n.txt", Data: []byte("42")},
			telegram.WithCaption(fmt.Sprintf(`[[start]] [[text "waited %d"]]`, i)))
	}
	town.awaitTurns(2 * people)

	archive := filepath.Join(t.TempDir(), "backup.tar.gz")
	if code, out, said := runDuctor(t, "backup", archive, "-c", config); code != exitOK ||
		!strings.Contains(out, "checked") {
		t.Fatalf("backup: exit %d: %s%s", code, out, said)
	}
	if code, _, said := runDuctor(t, "restore", archive, "-c", config); code != exitInstance ||
		!strings.Contains(said, "stop it first") {
		t.Errorf("a restore over a running ductor: exit %d: %s", code, said)
	}
	o.daemon.kill()
	town.endRuns()
	// Runners write to the state until they end.
	eventually(t, "the state to go", func() bool { return os.RemoveAll(state) == nil })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range chats {
		c.Person().Send(c, fmt.Sprintf(`[[start]] [[text "later %d"]]`, i))
	}
	if code, out, said := runDuctor(t, "restore", archive, "-c", config); code != exitOK {
		t.Fatalf("restore: exit %d: %s%s", code, out, said)
	}
	uploads, err := filepath.Glob(filepath.Join(state, environment.UploadsDir, "*", "*"))
	if err != nil || len(uploads) < people {
		t.Errorf("%d files of users were restored: %v", len(uploads), err)
	}
	o.rise()
	for i, c := range chats {
		checkShownOnce(town, c, fmt.Sprint("waited ", i))
		checkShownOnce(town, c, fmt.Sprint("later ", i))
	}
	for i, c := range chats {
		m, err := c.AwaitText(town.soon(), "nterrupted")
		if err == nil {
			_, err = c.Person().Press(town.soon(), m, "🔁 Run again")
		}
		if err != nil {
			town.fatal(err)
		}
		checkShownOnce(town, c, fmt.Sprint("end ", i))
	}
	town.awaitRecorded()
}

// checkShownOnce waits until a chat shows an answer, and fails if it shows it twice.
func checkShownOnce(town *town, c *telegram.Chat, answer string) {
	town.t.Helper()
	count := func(v telegram.View) (n int) {
		for _, m := range ended(v) {
			n += strings.Count(m.Text, answer)
		}
		return n
	}
	v, err := c.Await(town.soon(), func(v telegram.View) bool { return count(v) > 0 })
	if err != nil {
		town.fatal(fmt.Errorf("%s: %w\n%s", answer, err, said(c.View())))
	}
	if n := count(v); n != 1 {
		town.t.Errorf("%q is shown %d times", answer, n)
	}
}

// awaitTurns waits until the store has n turns.
func (town *town) awaitTurns(n int) {
	town.t.Helper()
	db := openDatabase(town.t, town.database())
	defer db.Close()
	eventually(town.t, fmt.Sprint(n, " turns"), func() bool {
		var turns int
		err := db.QueryRow(`SELECT count(*) FROM turns`).Scan(&turns)
		return err == nil && turns == n
	})
}

func replaceIn(t testing.TB, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s holds no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkRestoreRefused checks that a restore over other state writes nothing, not even the configuration.
func (town *town) checkRestoreRefused(archive string) {
	town.t.Helper()
	empty := filepath.Join(town.cfg.Storage.Dir, "ductor.db-shm")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		town.t.Fatal(err)
	}
	above := town.t.TempDir()
	code, out, said := runDuctor(town.t, "restore", archive, "-c", filepath.Join(above, "new", "config.toml"))
	if code != exitFailure || !strings.Contains(said, "--force") || strings.Contains(out, "wrote") {
		town.t.Errorf("a restore over other state: exit %d: %s%s", code, out, said)
	}
	if left, err := os.ReadDir(above); err != nil || len(left) > 0 {
		town.t.Errorf("a restore that was refused left %v, %v", left, err)
	}
	if _, err := os.Stat(empty); err != nil {
		town.t.Errorf("a restore that was refused removed a file: %v", err)
	}
}

// On an empty machine, an archive with secrets restores its configuration. Without secrets, restore names what is
// missing.
func TestARestoreOnAnEmptyMachine(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	o := &ordeal{town: town, config: config}
	o.rise()
	town.say(`[[start]] [[text "remembered"]]`)
	town.awaitDone(1)
	bare, whole := filepath.Join(t.TempDir(), "bare"), filepath.Join(t.TempDir(), "whole")
	for _, args := range [][]string{{"backup", bare, "-c", config}, {"backup", whole, "--with-secrets", "-c", config}} {
		if code, _, said := runDuctor(t, args...); code != exitOK {
			t.Fatalf("%q: exit %d: %s", args, code, said)
		}
		if info, err := os.Stat(args[1]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", args[1], info, err)
		}
	}
	o.daemon.kill()
	if code, _, said := runDuctor(t, "restore", whole, "-c", config); code != exitFailure ||
		!strings.Contains(said, "--force") {
		t.Errorf("a restore over other state: exit %d: %s", code, said)
	}
	town.checkRestoreRefused(whole)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	missing := filepath.Join(t.TempDir(), "config.toml")
	if code, out, said := runDuctor(t, "restore", bare, "-c", missing); code != exitOK ||
		!strings.Contains(out, "write one before you start ductor") {
		t.Errorf("a restore without configuration: exit %d: %s%s", code, out, said)
	}
	if code, out, said := runDuctor(t, "restore", whole, "--force", "-c", missing); code != exitOK ||
		!strings.Contains(out, "the previous state is in") {
		t.Errorf("a restore with the configuration: exit %d: %s%s", code, out, said)
	}
	if got, err := os.ReadFile(missing); err != nil || !strings.Contains(string(got), town.srv.Token()) {
		t.Errorf("the restored configuration is %q: %v", got, err)
	}
}
