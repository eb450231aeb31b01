package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

// damage is a way to damage the files of a database.
type damage struct {
	how    string
	at     float64 // position in the file, from 0 to 1
	length int
	seed   uint64
}

const (
	garbage   = "garbage"
	zeros     = "zeros"
	cutOff    = "cut off"
	header    = "header"
	fileGone  = "gone"
	logGone   = "log gone"
	logCut    = "log cut off"
	logChange = "log changed"
)

func drawDamage(t *rapid.T) damage {
	return damage{
		how: rapid.SampledFrom([]string{garbage, garbage, garbage, zeros, zeros, cutOff, header, fileGone,
			logGone, logCut,
			logChange}).Draw(t, "how"),
		at:     rapid.Float64Range(0, 0.999).Draw(t, "at"),
		length: rapid.SampledFrom([]int{512, 4096, 16384}).Draw(t, "length"), seed: rapid.Uint64().Draw(t, "seed"),
	}
}

// apply damages a database.
func (r damage) apply(path string) error {
	if strings.HasPrefix(r.how, "log") {
		if path += "-wal"; !exists(path) {
			return nil
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	at, fill := int64(r.at*float64(info.Size())), make([]byte, r.length)
	switch r.how {
	case fileGone, logGone:
		return os.Remove(path)
	case cutOff, logCut:
		return os.Truncate(path, at)
	case zeros:
		at = at / 4096 * 4096
	case header:
		at = 0
		fallthrough
	default:
		random := rand.New(rand.NewPCG(r.seed, 1))
		for i := range fill {
			fill[i] = byte(random.Uint32())
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fill[:min(int64(len(fill)), info.Size()-at)], at)
	return errors.Join(err, f.Close())
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// healthyDatabase is a database before it is damaged, with the turns in it.
type healthyDatabase struct {
	dir   string
	turns map[cli.TurnID]orchestrator.Turn
}

// The turns of a healthy database that TestLawADamagedDatabase checks.
const (
	waitedAtBackup = "waited at the backup" // and is done
	ranAtBackup    = "ran at the backup"    // and is done
	runsNow        = "runs"
	waitsNow       = "waits"
)

// newHealthyDatabase creates a database with turns before and after a backup in the directory backups. Its process
// closes it, or is killed.
func newHealthyDatabase(t *testing.T, killed, backup bool) healthyDatabase {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "ductor.db")
	db, err := Open(ctx, path, Options{Now: func() time.Time { return noon }})
	must(t, err)
	newSession(t, db, "s", chatA, noon)
	update := int64(0)
	enqueue := func(id string) orchestrator.Turn {
		update++
		turn := newTurn(cli.TurnID(id), update)
		turn.Session = "s"
		get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: update, Raw: []byte("{}")}}))
		must(t, db.EnqueueTurn(ctx, turn))
		return turn
	}
	start := func(turn orchestrator.Turn, run cli.RunID) {
		turn.Started = noon
		get[bool](t)(db.StartTurn(ctx, turn, cli.Start{Run: run, Output: 5}))
	}
	finish := func(id string) {
		must(t, db.FinishTurn(ctx, cli.TurnID(id), noon, orchestrator.Outcome{State: orchestrator.TurnDone,
			Text: strings.Repeat(id+" ", 10+int(update)*7%400)}))
		must(t, db.SaveSteps(ctx, cli.TurnID(id), noon, []orchestrator.Step{{Number: 1, Tool: "Bash", Title: id,
			Output: strings.Repeat("o", 900)}}))
		must(t, db.MarkDelivered(ctx, cli.TurnID(id)))
	}
	whole := func(from, to int) {
		for i := from; i < to; i++ {
			id := fmt.Sprint("turn ", i)
			start(enqueue(id), "gone")
			finish(id)
		}
	}
	whole(0, 25)
	then := enqueue(waitedAtBackup)
	start(enqueue(ranAtBackup), "gone")
	if backup {
		must(t, BackUp(ctx, path, filepath.Join(dir, "backups"), noon, time.Hour, 1<<30))
	}
	start(then, "gone")
	finish(waitedAtBackup)
	finish(ranAtBackup)
	whole(25, 50)
	start(enqueue(runsNow), "live")
	enqueue(waitsNow)
	must(t, db.Flush(ctx))
	s := healthyDatabase{dir: t.TempDir(), turns: allTurns(t, db)}
	if !killed {
		must(t, db.Close())
	}
	must(t, os.CopyFS(s.dir, os.DirFS(dir)))
	must(t, db.Close())
	return s
}

func allTurns(t testing.TB, db *DB) map[cli.TurnID]orchestrator.Turn {
	turns, err := sqlite.Many(t.Context(), db.file, scanTurn, `SELECT `+turnColumns+` FROM turns`)
	must(t, err)
	all := map[cli.TurnID]orchestrator.Turn{}
	for _, turn := range turns {
		turn.Outcome.Text, turn.Prompt.Text = "", "" // damage inside a text may go unnoticed
		all[turn.ID] = turn
	}
	return all
}

// TestLawADamagedDatabase damages the files at random. ductor always starts with a consistent database, in which no
// finished turn waits or runs, and reports missing turns. The damaged files are preserved.
func TestLawADamagedDatabase(t *testing.T) {
	databases := map[string]func() healthyDatabase{}
	for _, killed := range []bool{false, true} {
		for _, backup := range []bool{false, true} {
			databases[fmt.Sprint("killed ", killed, " backup ",
				backup)] = sync.OnceValue(func() healthyDatabase { return newHealthyDatabase(t, killed, backup) })
		}
	}
	names := []string{"killed false backup false", "killed false backup true", "killed true backup false",
		"killed true backup true"}
	if f := flag.Lookup("rapid.checks"); !testprogram.Long() && f.Value.String() == f.DefValue {
		must(t, flag.Set("rapid.checks", "20"))
		defer func() { must(t, flag.Set("rapid.checks", f.DefValue)) }()
	}
	found := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s, r := databases[rapid.SampledFrom(names).Draw(rt, "sound")](), drawDamage(rt)
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		must(t, os.CopyFS(dir, os.DirFS(s.dir)))
		l := &damageTrial{rt: rt, t: t, before: s, path: filepath.Join(dir, "ductor.db")}
		must(t, r.apply(l.path))
		found[r.how+": "+l.start()]++
		must(t, os.RemoveAll(dir))
	})
	t.Log(found)
}

// damageTrial is one trial of TestLawADamagedDatabase.
type damageTrial struct {
	rt     *rapid.T
	t      *testing.T
	path   string
	before healthyDatabase
	rescue Rescue
}

// start starts with a damaged database and returns a word for the result.
func (l *damageTrial) start() string {
	ctx := l.t.Context()
	left := map[string][]byte{}
	for _, end := range []string{"", "-wal"} {
		if text, err := os.ReadFile(l.path + end); err == nil && len(text) > 0 {
			left["ductor.db"+end] = text
		}
	}
	backups := filepath.Join(filepath.Dir(l.path), "backups")
	var db *DB
	err := orchestrator.ErrDamaged
	if !Lost(l.path, backups) {
		db, err = Open(ctx, l.path, Options{})
	}
	if err == nil && !exists(l.path+"-open") && db.isNew(l.t) {
		must(l.t, db.Close())
		return "new" // indistinguishable from a first start
	}
	if err == nil {
		if err = db.CheckPages(ctx); err != nil {
			_ = db.file.Close()
		}
	}
	said := "not found"
	if err != nil {
		if errors.Is(err, sqlite.ErrForeign) || errors.Is(err, sqlite.ErrNewer) {
			return "refused" // the header names another program or version
		}
		if !errors.Is(err, orchestrator.ErrDamaged) {
			l.rt.Fatalf("Open returned %v", err)
		}
		notice := orchestrator.Message{Key: "notice", State: orchestrator.Pending, Content: []byte("damaged")}
		l.rescue = Rescue{
			Path: l.path, Cause: err, Backups: backups, Now: time.Now,
			HasOutput: func(run cli.RunID, output int64) bool { return run == "live" && output == 5 },
			Notices:   func(*DB) ([]orchestrator.Message, error) { return []orchestrator.Message{notice}, nil },
		}
		must(l.t, l.rescue.Run(ctx))
		if db == nil { // otherwise this process has changed the files
			for name, text := range left {
				if now, err := os.ReadFile(filepath.Join(l.rescue.Dir, name)); err != nil || !bytes.Equal(now, text) {
					l.rt.Errorf("%s changed: %v", name, err)
				}
			}
		}
		if db, err = Open(ctx, l.path, Options{}); err != nil {
			l.rt.Fatalf("the new database: %v", err)
		}
		if owed := get[[]orchestrator.Message](l.t)(db.OwedMessages(ctx)); len(owed) != 1 {
			l.rt.Errorf("%d notices are owed", len(owed))
		}
		said = fmt.Sprintf("copied %v, stale %v, backup %v", l.rescue.Copied, l.rescue.LostWrites,
			!l.rescue.BackupTime.IsZero())
	}
	l.check(db, said == "not found" || l.rescue.Complete())
	if tables := db.Unreadable(); len(tables) > 0 {
		said += fmt.Sprint(", passed over rows of ", tables)
	}
	must(l.t, db.Close())
	if err := Check(ctx, l.path); err != nil {
		l.rt.Errorf("the database afterwards: %v", err)
	}
	return said
}

// isNew reports whether a database is empty.
func (db *DB) isNew(t testing.TB) bool {
	n, err := sqlite.One(t.Context(), db.file, sqlite.Value[int],
		`SELECT EXISTS (SELECT 1 FROM inbox) + EXISTS (SELECT 1 FROM turns) + EXISTS (SELECT 1 FROM sessions)`)
	must(t, err)
	return n == 0
}

func (l *damageTrial) check(db *DB, whole bool) {
	now := allTurns(l.t, db)
	for id, was := range l.before.turns {
		is, there := now[id]
		switch {
		case !there && whole && !slices.Contains(db.Unreadable(), "turns"):
			l.rt.Errorf("%q is missing, but the rescue did not report it", id)
		case !there:
		case whole && is.State != was.State:
			l.rt.Errorf("%q is %s, and was %s", id, is.State, was.State)
		case is.State == orchestrator.TurnQueued && id != waitsNow:
			l.rt.Errorf("%q waits although it is done", id)
		}
	}
	for _, open := range get[[]cli.OpenTurn](l.t)(db.RunningTurns(l.t.Context())) {
		if open.Start.Run != "unknown" && open.Turn != runsNow {
			l.rt.Errorf("%q would be continued in %q", open.Turn, open.Start.Run)
		}
	}
	if !whole && get[time.Time](l.t)(db.LastRescue(l.t.Context())).IsZero() {
		l.rt.Errorf("messages that were handled may be handled again")
	}
	for _, u := range get[[]orchestrator.Update](l.t)(db.PendingUpdates(l.t.Context(), 0, 99)) {
		l.rt.Errorf("the update %d is handled again", u.ID)
	}
}

// TestFinishRescue interrupts a rescue after each of its moves. The next start finishes it, or starts again if nothing
// was moved.
func TestFinishRescue(t *testing.T) {
	s := newHealthyDatabase(t, true, true)
	for step := range 6 { // number of finished moves
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(s.dir)))
		path := filepath.Join(dir, "ductor.db")
		must(t, damage{how: header, length: 4096}.apply(path))
		next := openAt(t, path+draftSuffix)
		newSession(t, next, "rescued", chatA, noon)
		must(t, next.Close())
		if step > 0 {
			must(t, os.Rename(path+draftSuffix, path+nextSuffix+"20261129T000000.000"))
		}
		if step > 1 {
			must(t, os.Mkdir(filepath.Join(dir, damagedPrefix+"20261129T000000.000"), 0o700))
		}
		for i, end := range sqlite.FileSuffixes() {
			if exists(path+end) && i+1 < step {
				must(t, os.Rename(path+end, filepath.Join(dir, damagedPrefix+"20261129T000000.000", "ductor.db"+end)))
			}
		}
		must(t, FinishRescue(path))
		db, err := Open(t.Context(), path, Options{})
		if step == 0 { // the damaged database is still in its place
			if !errors.Is(err, orchestrator.ErrDamaged) {
				t.Errorf("step %d: Open returned %v", step, err)
			}
			continue
		}
		must(t, err)
		get[orchestrator.Session](t)(db.Session(t.Context(), "rescued"))
		must(t, db.Close())
		if !exists(filepath.Join(DamagedDirs(dir)[0], "ductor.db-wal")) {
			t.Errorf("step %d: the damaged files were not moved", step)
		}
	}
}

// TestBackupsAreLimitedByAgeAndSize also tests that the newest backup always stays.
func TestBackupsAreLimitedByAgeAndSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	path := filepath.Join(t.TempDir(), "ductor.db")
	openAt(t, path)
	const day = 24 * time.Hour
	for i := range 5 {
		must(t, BackUp(t.Context(), path, dir, noon.Add(time.Duration(i)*day), 2*day, 1<<30))
	}
	all := Backups(dir)
	if len(all) != 3 || !all[0].Made.Equal(noon.Add(4*day)) || !all[2].Made.Equal(noon.Add(2*day)) {
		t.Errorf("%+v", all)
	}
	for _, b := range all {
		info, err := os.Stat(b.Path)
		if must(t, err); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", b.Path, info.Mode().Perm())
		}
		must(t, Check(t.Context(), b.Path))
	}
	must(t, BackUp(t.Context(), path, dir, noon.Add(5*day), 9*day, 1))
	if all := Backups(dir); len(all) != 1 || !all[0].Made.Equal(noon.Add(5*day)) {
		t.Errorf("%+v", all)
	}
}
