package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/app"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// amend replaces a text in a file of the owner.
func amend(t testing.TB, path, old, now string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s does not hold %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestIntakeUnderAttack tests that strangers fill neither the disk nor the log, and that no message of the owner is
// dropped because an old message had the same number.
func TestIntakeUnderAttack(t *testing.T) {
	town := surroundings(t, nil)
	town.handledLongAgo(700000001, 700000020) // the first numbers of the simulated Telegram
	path, log := town.writeConfig(), filepath.Join(t.TempDir(), "log")
	amend(t, path, `level = "debug"`, fmt.Sprintf("level = \"debug\"\nfile = %q", log))
	d := startDaemon(t, "run", "-c", path)

	town.say(`[[text "numbered as one of long ago"]]`)
	town.await("numbered as one of long ago")
	began := time.Now()
	town.flood(400, "stored-in-full")
	town.say(`[[text "after the flood"]]`)
	town.await("after the flood")
	if err := town.srv.AwaitAcknowledged(town.soon()); err != nil { // otherwise the next poll acknowledges lower numbers too
		town.fatal(err)
	}
	town.srv.CountFrom(700000001 - 500)
	town.say(`[[text "numbered below the last one"]]`)
	town.await("numbered below the last one")

	d.kill()
	if n := countIn(t, log, "turned a stranger away"); n < 1 || n > 1+int(time.Since(began)/time.Minute) {
		t.Errorf("the log has %d lines on strangers", n)
	}
	for _, name := range []string{app.DatabaseFile, app.DatabaseFile + "-wal"} {
		if n := countIn(t, filepath.Join(town.cfg.Storage.Dir, name), "stored-in-full"); n > 0 {
			t.Errorf("%s holds what strangers wrote, %d times", name, n)
		}
	}
}

// TestCrashesOverWhatWasStoredEnd tests that ductor gives up an update or a turn that crashes it repeatedly, reports
// that, and continues to serve. A fatal signal replaces the panic: both end the process in the same way.
func TestCrashesOverWhatWasStoredEnd(t *testing.T) {
	town := surroundings(t, nil)
	path := town.writeConfig()
	amend(t, path, fmt.Sprintf("allowed_users = [%d]", owner),
		fmt.Sprintf("allowed_users = [%d, %d]", owner, neighbour))
	other := town.srv.Private(neighbour, "Neighbour")
	stuck := town.srv.Inject(telegram.Fault{Method: "getFile", Kind: telegram.Hang, Times: telegram.Always})
	d := startDaemon(t, "run", "-c", path)
	town.say(`[[start]] [[tool cmd="touch works"]] [[hang]]`)
	other.Person().SendDocument(other, telegram.File{Name: "x", Data: []byte("x")}, telegram.WithCaption("read it"))
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "works"))
	for crashes := range 2 {
		eventually(t, "the file to be fetched", func() bool { return stuck.Hits() > crashes })
		d.crash(t)
		if n := town.shown("Given up"); n > 0 || len(other.View().FromBot()) > 0 {
			t.Errorf("after %d crashes something is given up", crashes)
		}
		d = startDaemon(t, "run", "-c", path)
	}
	town.await("Given up: ductor crashed more than once while this ran")
	if _, err := other.AwaitText(town.soon(), "I crashed more than once on this message"); err != nil {
		town.fatal(err)
	}
	town.say(`[[start]] [[text "serving on"]]`)
	town.await("serving on")
	if n := stuck.Hits(); n != 2 {
		t.Errorf("the file that was given up is fetched %d times", n)
	}
}

// crash ends a daemon with a fatal signal, and waits for its end.
func (d *daemon) crash(t testing.TB) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	d.exit(t)
}

// handledLongAgo stores handled updates from ten days ago.
func (town *town) handledLongAgo(from, to int64) {
	town.t.Helper()
	db, err := store.Open(town.t.Context(), town.database(),
		store.Options{Now: func() time.Time { return time.Now().AddDate(0, 0, -10) }})
	if err != nil {
		town.t.Fatal(err)
	}
	defer db.Close()
	var ids []int64
	var updates []orchestrator.Update
	for id := from; id <= to; id++ {
		ids, updates = append(ids, id), append(updates, orchestrator.Update{ID: id, Raw: []byte("{}")})
	}
	if _, err := db.AppendUpdates(town.t.Context(), updates); err != nil {
		town.t.Fatal(err)
	}
	if err := db.FinishUpdates(town.t.Context(), ids); err != nil {
		town.t.Fatal(err)
	}
}

// flood makes many strangers write: messages, edits and presses of 10 kB each.
func (town *town) flood(n int, marked string) {
	town.t.Helper()
	text := strings.Repeat(marked+" ", 10<<10/(len(marked)+1))
	for i := range n {
		id := 1000 + i
		from := fmt.Sprintf(`"from":{"id":%d,"is_bot":false,"first_name":"X"}`, id)
		message := fmt.Sprintf(`{"message_id":%d,"date":1,%s,"chat":{"id":%d,"type":"private"},"text":%q}`, i, from, id,
			text)
		switch i % 3 {
		case 0:
			town.srv.InjectUpdate("message", message)
		case 1:
			town.srv.InjectUpdate("edited_message", message)
		default:
			town.srv.InjectUpdate("callback_query", fmt.Sprintf(`{"id":"%d",%s,"data":"x","message":%s}`, id, from,
				message))
		}
	}
	if err := town.srv.AwaitAcknowledged(town.soon()); err != nil {
		town.t.Fatal(err)
	}
}

func countIn(t testing.TB, path, part string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), part)
}
