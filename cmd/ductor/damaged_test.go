package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/app"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/internal/testprogram"
)

const saysDamaged = "My database was damaged"

// damagedTown is a town whose ductor has stopped, and whose files the test damages.
type damagedTown struct {
	*ordeal
	path string            // of the database
	left map[string][]byte // the files after the damage
}

// backedUp is the time of a wreck's backup.
type backedUp int

const (
	never backedUp = iota
	early
	late // while a turn runs and another one waits
)

// newDamagedTown makes ductor answer a prompt, start a turn that outlives it, and queue another one.
func newDamagedTown(t *testing.T, backup backedUp, killed bool) *damagedTown {
	t.Helper()
	town := surroundings(t, nil)
	town.extra = "[retention]\nbackups_days = 0" // ductor makes none a minute after its start
	w := &damagedTown{ordeal: town.ordeal(1), path: town.database()}
	w.runPrompt("one")
	if backup == early {
		w.backUp()
	}
	w.runPrompt("two")
	w.say(`[[start]] [[tool cmd="echo three >> ran; until [ -e gate ]; do sleep 0.05; done"]] [[text "answer three"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "ran"))
	eventually(t, "a tool of the third turn", func() bool { return w.runCount("three") == 1 })
	w.say(`[[start]] [[tool cmd="echo four >> ran"]] [[text "answer four"]]`)
	town.awaitTurns(4)
	if err := town.srv.AwaitAcknowledged(town.soon()); err != nil {
		t.Fatal(err)
	}
	if backup == late {
		w.backUp()
	}
	if killed {
		w.daemon.kill()
		return w
	}
	if err := w.daemon.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := w.daemon.exit(t); code != exitOK {
		t.Fatalf("ductor ends with %d", code)
	}
	return w
}

func (w *damagedTown) backUp() {
	w.t.Helper()
	err := store.BackUp(w.t.Context(), w.path, filepath.Join(w.cfg.Storage.Dir, app.BackupsDir), time.Now(), time.Hour,
		1<<30)
	if err != nil {
		w.t.Fatal(err)
	}
}

// releaseTurn lets the turn end that outlived ductor.
func (w *damagedTown) releaseTurn() {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.cfg.Projects.DefaultDir, "gate"), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// isRunning reports whether the last ductor still runs.
func (w *damagedTown) isRunning() bool {
	select {
	case <-w.daemon.done:
		return false
	default:
		return true
	}
}

// runPrompt sends a prompt that leaves a mark, and waits for its answer.
func (w *damagedTown) runPrompt(what string) {
	w.t.Helper()
	w.say(`[[start]] [[tool cmd="echo %[1]s >> ran"]] [[text "answer %[1]s"]]`, what)
	checkShownOnce(w.town, w.chat, "answer "+what)
}

// runCount counts how often the agent ran a prompt.
func (w *damagedTown) runCount(what string) int {
	text, _ := os.ReadFile(filepath.Join(w.cfg.Projects.DefaultDir, "ran"))
	return strings.Count(string(text), what+"\n")
}

// damage changes a file of the database and starts ductor again.
func (w *damagedTown) damage(how func(path string) error) {
	w.t.Helper()
	if err := how(w.path); err != nil {
		w.t.Fatal(err)
	}
	w.left = map[string][]byte{}
	for _, end := range []string{"", "-wal"} {
		if text, err := os.ReadFile(w.path + end); err == nil {
			w.left[app.DatabaseFile+end] = text
		}
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // the dates of messages have whole seconds
	w.rise()
	w.await(saysDamaged)
}

// checkMovedAside checks that the damaged files were moved unchanged.
func (w *damagedTown) checkMovedAside() {
	w.t.Helper()
	asides := store.DamagedDirs(w.cfg.Storage.Dir)
	if len(asides) != 1 {
		w.t.Fatalf("moved aside: %q", asides)
	}
	for name, want := range w.left {
		got, err := os.ReadFile(filepath.Join(asides[0], name))
		if err != nil || !bytes.Equal(got, want) {
			w.t.Errorf("%s is not as it was: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(asides[0]); err != nil ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return !strings.HasPrefix(e.Name(), app.DatabaseFile)
		}) {
		w.t.Errorf("beside what was damaged are %v, %v", entries, err)
	}
	_, out, _ := runDuctor(w.t, "doctor", "-c", w.config)
	if !strings.Contains(out, asides[0]) {
		w.t.Errorf("doctor does not name %s:\n%s", asides[0], out)
	}
}

// checkChatWorks checks that the chat works, and that nothing ran or was shown twice, also after another start.
func (w *damagedTown) checkChatWorks() {
	w.t.Helper()
	w.releaseTurn()
	w.runPrompt("five")
	w.daemon.kill()
	w.rise()
	w.runPrompt("six")
	for _, what := range []string{"one", "two", "three", "four", "five", "six"} {
		if n := w.runCount(what); n > 1 {
			w.t.Errorf("%q ran %d times", what, n)
		}
	}
	if n := strings.Count(joined(w.chat.View()), saysDamaged); n != 1 {
		w.t.Errorf("the owner is told %d times", n)
	}
}

// checkOffered checks that a turn with an unknown end says so, and that its button runs it again.
func (w *damagedTown) checkOffered(what string) {
	w.t.Helper()
	ran := w.runCount(what)
	m := w.awaitMessage(func(m telegram.Message) bool { return m.HasButton("🔁 Run again") })
	if _, err := w.chat.Person().Press(w.soon(), m, "🔁 Run again"); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, what+" once more", func() bool { return w.runCount(what) == ran+1 })
}

// overwriteMiddle overwrites the middle of a file with garbage.
func overwriteMiddle(path string, n int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	junk := make([]byte, n)
	for i := range junk {
		junk[i] = byte(rand.Uint32())
	}
	_, wrote := f.WriteAt(junk, info.Size()/2)
	return errors.Join(err, wrote, f.Close())
}

// If no page of the database is readable, ductor continues with its backup. It does not run anything that may have
// run since, and tells the owner what is missing.
func TestADamagedDatabaseIsContinuedFromItsBackup(t *testing.T) {
	w := newDamagedTown(t, early, false)
	w.damage(func(path string) error { return os.WriteFile(path, []byte("no database"), 0o600) })
	w.await("so I continue with the backup of")
	w.checkMovedAside()
	w.checkChatWorks()
}

// A turn that ran at the time of the backup and outlived ductor is answered from its output. A prompt that waited
// then may have run since, so the chat offers it.
func TestABackupIsContinuedByTheOutputOfAgents(t *testing.T) {
	w := newDamagedTown(t, late, true)
	w.releaseTurn()
	w.damage(func(path string) error { return os.WriteFile(path, []byte("no database"), 0o600) })
	checkShownOnce(w.town, w.chat, "answer three")
	w.checkOffered("four")
	checkShownOnce(w.town, w.chat, "answer four")
	w.checkChatWorks()
}

func TestADamagedDatabaseWithoutABackup(t *testing.T) {
	w := newDamagedTown(t, never, false)
	w.damage(func(path string) error { return os.WriteFile(path, []byte("no database"), 0o600) })
	w.await("there is no backup, so I start from scratch")
	w.checkMovedAside()
	w.checkChatWorks()
}

// An emptied database looks like a new one, but backups exist.
func TestAnEmptiedDatabase(t *testing.T) {
	w := newDamagedTown(t, early, false)
	w.damage(func(path string) error { return os.Truncate(path, 0) })
	w.await("so I continue with the backup of")
	w.checkChatWorks()
}

// A database without its log is older than the chat. Waiting prompts are offered, and a turn continues if its output
// is complete.
func TestADatabaseThatLostItsLog(t *testing.T) {
	for name, how := range map[string]func(path string) error{
		"gone":    func(path string) error { return os.Remove(path + "-wal") },
		"changed": func(path string) error { return overwriteMiddle(path+"-wal", 16) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newDamagedTown(t, map[bool]backedUp{true: early}[name == "gone"], true)
			w.damage(how)
			w.await("log is missing or damaged")
			w.checkMovedAside()
			w.checkChatWorks()
		})
	}
}

// If all rows can be read, nothing is lost: the turn that outlived ductor continues, and the waiting one runs.
func TestADamagedIndexLosesNothing(t *testing.T) {
	w := newDamagedTown(t, early, false)
	w.damage(func(path string) error { return overwriteIndex(t, path, "turns_of") })
	w.await("Nothing seems to be missing")
	w.checkMovedAside()
	w.checkChatWorks()
	checkShownOnce(w.town, w.chat, "answer three")
	checkShownOnce(w.town, w.chat, "answer four")
}

// ductor starts despite a row whose damaged text SQLite does not detect. The chat names it, and other turns continue.
func TestADamagedRowIsPassedOver(t *testing.T) {
	w := newDamagedTown(t, never, false)
	db, err := sql.Open("sqlite3", w.path)
	if err != nil {
		t.Fatal(err)
	}
	// The third turn ran. The fourth waits.
	_, err = db.Exec(`UPDATE turns SET updates = '[1, \x00' WHERE state = 'queued'`)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	w.rise()
	w.await("can't be read any more (turns)")
	w.releaseTurn()
	checkShownOnce(w.town, w.chat, "answer three")
	w.runPrompt("five")
	if len(store.DamagedDirs(w.cfg.Storage.Dir)) > 0 {
		t.Error("the database was moved aside")
	}
}

// If a read finds damage while ductor runs, the same process continues with another database.
func TestADatabaseIsDamagedWhileDuctorRuns(t *testing.T) {
	town := surroundings(t, nil)
	w := &damagedTown{ordeal: town.ordeal(1), path: town.database()}
	w.runPrompt("one")
	w.say(`[[start]] [[tool cmd="echo two >> ran; until [ -e gate ]; do sleep 0.05; done"]] [[text "answer two"]]`)
	eventually(t, "a tool", func() bool { return w.runCount("two") == 1 })
	eventually(t, "an empty log", func() bool { return emptyLog(t, w.path) })
	if err := overwriteIndex(t, w.path, "sqlite_autoindex_steps_1"); err != nil { // which was not read yet
		t.Fatal(err)
	}
	w.press("🪜 Steps")
	w.await(saysDamaged)
	w.releaseTurn()
	checkShownOnce(town, w.chat, "answer two")
	w.runPrompt("three")
	if w.runCount("two") != 1 || !w.isRunning() {
		t.Errorf("the turn ran %d times, or ductor ended", w.runCount("two"))
	}
}

// ductor makes a backup soon after its start, and checks it. It removes one that was interrupted.
func TestABackupIsMadeByItself(t *testing.T) {
	town := surroundings(t, nil)
	draft := filepath.Join(town.cfg.Storage.Dir, app.BackupsDir, "ductor-20261129T110618Z.db.new-journal")
	if err := errors.Join(os.MkdirAll(filepath.Dir(draft), 0o700), os.WriteFile(draft, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	o := town.ordeal(1)
	town.say(`[[start]] [[text "one"]]`)
	checkShownOnce(town, town.chat, "one")
	var made []store.Backup
	eventually(t, "a backup", func() bool {
		made = store.Backups(filepath.Join(town.cfg.Storage.Dir, app.BackupsDir))
		return len(made) == 1
	})
	if err := store.Check(t.Context(), made[0].Path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(draft); err == nil {
		t.Error("the incomplete backup is left")
	}
	if _, out, _ := runDuctor(t, "doctor", "-c", o.config); !strings.Contains(out, made[0].Path) {
		t.Errorf("doctor does not name %s:\n%s", made[0].Path, out)
	}
}

// TestCorruptionsAtRandomOffsets repeatedly damages the files of a ductor that was killed or stopped. Afterwards the
// chat works, and earlier prompts ran at most once. For those that did not run, the chat offers them or says what is
// missing.
func TestCorruptionsAtRandomOffsets(t *testing.T) {
	rounds := 100
	if !testprogram.Long() {
		rounds = 2
	}
	town := surroundings(t, nil)
	w := &damagedTown{ordeal: town.ordeal(rand.Uint64()), path: town.database()}
	seed := rand.Uint64()
	if text := os.Getenv("DUCTOR_TEST_SEED"); text != "" {
		_, _ = fmt.Sscan(text, &seed)
	}
	t.Log("seed ", seed)
	w.random = rand.New(rand.NewPCG(seed, 1))
	for n := range rounds {
		w.runPrompt(fmt.Sprint("before-", n))
		if w.random.IntN(3) == 0 {
			w.backUp()
		}
		last := fmt.Sprint("last-", n)
		w.say(`[[start]] [[tool cmd="sleep 0.%d; echo %s >> ran"]] [[text "answer %s"]]`, w.random.IntN(3), last, last)
		if err := town.srv.AwaitAcknowledged(town.soon()); err != nil {
			t.Fatal(err)
		}
		if w.random.IntN(2) == 0 {
			_ = w.daemon.cmd.Process.Signal(syscall.SIGTERM)
			w.daemon.exit(t)
		} else {
			w.daemon.kill()
		}
		told := strings.Count(joined(w.chat.View()), saysDamaged)
		what := w.corrupt()
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		w.rise()
		w.runPrompt(fmt.Sprint("after-", n))
		said := joined(w.chat.View())
		if runs := w.runCount(last); runs > 1 || runs == 0 && strings.Count(said, saysDamaged) == told {
			t.Fatalf("round %d, %s: it ran %d times", n, what, runs)
		}
		if runs := w.runCount(fmt.Sprint("before-", n)); runs != 1 {
			t.Fatalf("round %d, %s: what was answered ran %d times", n, what, runs)
		}
	}
}

// corrupt damages one file of the database at a random offset.
func (w *damagedTown) corrupt() string {
	w.t.Helper()
	path, log := w.path, w.path+"-wal"
	if _, err := os.Stat(log); err == nil && w.random.IntN(2) == 0 {
		path = log
	}
	info, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	at := w.random.Int64N(max(info.Size(), 1))
	what := fmt.Sprintf("%s at %d of %d", filepath.Base(path), at, info.Size())
	switch w.random.IntN(6) {
	case 0:
		what, err = "cut off "+what, os.Truncate(path, at)
	case 1:
		what, err = "removed "+what, os.Remove(path)
	default:
		junk := make([]byte, min(1<<w.random.IntN(14), info.Size()-at))
		for i := range junk {
			junk[i] = byte(w.random.Uint32())
		}
		var f *os.File
		if f, err = os.OpenFile(path, os.O_RDWR, 0); err == nil {
			_, err = f.WriteAt(junk, at)
			err = errors.Join(err, f.Close())
		}
		what = fmt.Sprint(len(junk), " bytes in ", what)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return what
}
