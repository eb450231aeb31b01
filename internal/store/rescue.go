package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// Rescue puts a database in place of a damaged one, which is moved aside. The new one has all rows that can be read of the damaged
// one, and others of the newest backup. Nothing of which it is unknown whether it ran since will run by itself.
type Rescue struct {
	Path    string
	Why     error                                        // what Open says
	Backups string                                       // the directory of backups
	Kept    func(run cli.RunID, output int64) bool       // reports whether all that a run printed from there on can be read
	Notices func(db *DB) ([]orchestrator.Message, error) // to those who use ductor, in the new database; what Rescued has is set
	Now     func() time.Time
	Rescued
}

// Rescued says what became of a damaged database.
type Rescued struct {
	Aside   string    // the directory in which its files are
	Last    time.Time // when it was written last, at the latest
	Stale   bool      // the newest of it is lost
	Empty   bool      // nothing of it could be read
	Lacking []string  // the tables of which rows may be lost
	Backup  time.Time // when the backup was made that has other rows; zero without one
}

// Whole reports whether all is there.
func (r Rescued) Whole() bool { return !r.Stale && len(r.Lacking) == 0 }

// The names in the directory to which a damaged database is moved, whose own name begins with AsidePrefix.
const (
	AsidePrefix = "damaged-"
	draftName   = "draft.db" // it is being made
	copyName    = "copy.db"  // of the backup
	nextName    = "next.db"  // it is complete, and takes the place of the damaged one
)

// Run makes the new database, and then moves both to their places. Where it is killed, the next start begins anew or, after the
// first move, finishes it; see FinishRescue.
func (r *Rescue) Run(ctx context.Context) error {
	state := filepath.Dir(r.Path)
	r.Stale, r.Last = errors.Is(r.Why, sqlite.ErrLogLost), r.lastWrite()
	forgetDrafts(state)
	r.Aside = filepath.Join(state, AsidePrefix+r.Now().UTC().Format("20060102T150405.000"))
	err := os.Mkdir(r.Aside, 0o700)
	if err == nil {
		if err = r.rebuild(ctx, filepath.Join(r.Aside, draftName)); err != nil {
			err = errors.Join(err, os.RemoveAll(r.Aside)) // nothing was moved there
		}
	}
	if err == nil {
		err = replace(r.Path, r.Aside)
		_ = os.Remove(r.Aside) // if there was no file
	}
	return wrap("rescue a damaged database", err)
}

// lastWrite is when the database or its log changed last or, where one is gone, their directory. What has just looked at them may have
// made an empty log.
func (r *Rescue) lastWrite() (last time.Time) {
	for _, path := range []string{r.Path, r.Path + "-wal"} {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	if info, err := os.Stat(filepath.Dir(r.Path)); err == nil && (r.Stale || last.IsZero()) && info.ModTime().After(last) {
		last = info.ModTime()
	}
	return last
}

// rebuild makes the new database.
func (r *Rescue) rebuild(ctx context.Context, draft string) (err error) {
	db, err := Open(ctx, draft, Options{Now: r.Now})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, db.Close()); err == nil {
			err = Check(ctx, draft)
		}
		if err == nil {
			err = sqlite.Place(draft, filepath.Join(r.Aside, nextName))
			remove(draft) // the log that the check made, in which nothing is
		}
	}()
	if r.Lacking, err = db.file.Salvage(ctx, r.Path); err != nil {
		return err
	}
	if r.Empty, err = db.isEmpty(ctx); err != nil {
		return err
	}
	if r.Stale {
		err = r.settle(ctx, db)
	}
	if err == nil && len(r.Lacking) > 0 {
		err = r.fill(ctx, db)
	}
	if err == nil {
		err = db.file.DropOrphans(ctx)
	}
	if err == nil && !r.Whole() {
		err = db.noteRescue(ctx, r.Last)
	}
	if err != nil {
		return err
	}
	notices, err := r.Notices(db)
	for _, m := range notices {
		err = errors.Join(err, db.SaveMessage(ctx, m))
	}
	return err
}

// fill adds rows of the newest backup to the tables that lack some.
func (r *Rescue) fill(ctx context.Context, db *DB) error {
	for _, b := range Backups(r.Backups) {
		copied := filepath.Join(r.Aside, copyName)
		err := Copy(ctx, b.Path, copied) // which checks it
		if errors.Is(err, sqlite.ErrCorrupt) || errors.Is(err, sqlite.ErrForeign) || errors.Is(err, sqlite.ErrNewer) {
			continue // an older one may be well
		}
		if err != nil {
			return err
		}
		old, err := Open(ctx, copied, Options{Now: r.Now})
		if err != nil {
			return err
		}
		if err = errors.Join(r.settle(ctx, old), old.Close()); err != nil {
			return err
		}
		r.Backup = b.Made
		_, err = db.file.Salvage(ctx, copied, r.Lacking...)
		remove(copied)
		return err
	}
	return nil
}

// settle makes a database fit to be used again after it was used: what waited in it may have run since, and what was granted in it
// may have been taken back. Turns that ran continue if all that their agents printed is there.
func (r *Rescue) settle(ctx context.Context, db *DB) error {
	open, err := db.RunningTurns(ctx)
	if err != nil {
		return err
	}
	return db.write(ctx, func(t tx) error {
		for _, o := range open {
			if o.Background || r.Kept(o.Start.Run, o.Start.Output) {
				continue
			}
			if _, err := t.Exec(`UPDATE turns SET run = 'unknown' WHERE id = ?`, string(o.Turn)); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			`UPDATE turns SET state = 'running', started = queued, run = 'unknown' WHERE state = 'queued' AND delivered = 0`,
			`UPDATE turns SET delivered = 1 WHERE state <> 'running' AND delivered = 0`,
			// The chat may show more of them than is known here.
			`DELETE FROM cards WHERE turn IN (SELECT id FROM turns WHERE state = 'running' AND run = 'unknown')`,
			`DELETE FROM messages WHERE turn IN (SELECT id FROM turns WHERE state = 'running' AND run = 'unknown')`,
			`UPDATE messages SET content = NULL, state = CASE WHEN state IN ('pending', 'sending') THEN 'unknown' ELSE state END`,
			`UPDATE inbox SET raw = x'', handled = max(handled, received, 1)`,
			`UPDATE job_runs SET told = 1, state = CASE WHEN state IN ('waiting', 'asked') THEN 'skipped' ELSE state END`,
			`DELETE FROM background`, `DELETE FROM rules`, `DELETE FROM users`, `DELETE FROM invitations`,
			`UPDATE conversations SET permission = '', bypass_until = 0`,
			`UPDATE asks SET state = 'withdrawn' WHERE state = 'open' AND turn IN (SELECT id FROM turns WHERE run = 'unknown')`,
		} {
			if _, err := t.Exec(statement); err != nil {
				return err
			}
		}
		// The scheduler takes that for a clock that was set back, and computes the next moment without runs for those that passed.
		far := millis(r.Now().AddDate(100, 0, 0))
		_, err := t.Exec(`UPDATE jobs SET next = ?1, planned = ?1 WHERE next > 0`, far)
		return err
	})
}

func (db *DB) isEmpty(ctx context.Context) (bool, error) {
	n, err := sqlite.One(ctx, db.file, sqlite.Value[int], `SELECT EXISTS (SELECT 1 FROM inbox) + EXISTS (SELECT 1 FROM turns) + EXISTS (SELECT 1 FROM sessions)`)
	return n == 0, err
}

// rescueAlert is the key under which the moment of the last rescue is kept.
const rescueAlert = "rescued"

// noteRescue stores until when messages came that may have been handled without a trace, and that updates are handled of which
// turns were made.
func (db *DB) noteRescue(ctx context.Context, last time.Time) error {
	return db.write(ctx, func(t tx) error {
		if _, err := t.Exec(`INSERT OR IGNORE INTO inbox (id, raw, received, handled)
			SELECT u.value, x'', t.queued, t.queued FROM turns t, json_each(t.updates) u WHERE t.updates <> ''`); err != nil {
			return err
		}
		return t.put("alerts", "key", alertColumns, rescueAlert, rescueAlert, millis(last), "")
	})
}

// LastRescue is until when messages came that may have been handled without a trace; zero for none.
func (db *DB) LastRescue(ctx context.Context) (time.Time, error) {
	all, err := db.Alerts(ctx)
	for _, a := range all {
		if a.Key == rescueAlert {
			return a.Since, err
		}
	}
	return time.Time{}, err
}

// RecentChats lists the topic of each chat in which a turn was asked for last, since a time.
func (db *DB) RecentChats(ctx context.Context, since time.Time) ([]orchestrator.ConversationID, error) {
	all, err := sqlite.Many(ctx, db.file, scan(conversationIDFields), `SELECT chat, topic FROM turns WHERE seq IN
		(SELECT max(seq) FROM turns WHERE queued > ? GROUP BY chat) ORDER BY chat`, millis(since))
	return all, wrap("list recent chats", err)
}

// FinishRescue completes the moves of a rescue that was killed between them.
func FinishRescue(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, aside := range Asides(filepath.Dir(path)) {
		if _, err := os.Lstat(filepath.Join(aside, nextName)); err == nil {
			return wrap("finish the rescue of a damaged database", replace(path, aside))
		}
	}
	return nil
}

// Lost reports whether there is no database at path, but backups of one: it is gone, or was cut off.
func Lost(path, backups string) bool {
	info, err := os.Stat(path)
	return (errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0) && len(Backups(backups)) > 0
}

// replace moves the files of a database aside, and then the next one to their place.
func replace(path, aside string) error {
	for _, end := range sqlite.Endings() {
		err := os.Rename(path+end, filepath.Join(aside, filepath.Base(path)+end))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("move the database aside: %w", err)
		}
	}
	return errors.Join(sqlite.Place(filepath.Join(aside, nextName), path), sqlite.SyncDir(aside))
}

// Asides lists the directories of damaged databases, the oldest first.
func Asides(state string) []string {
	all, _ := filepath.Glob(filepath.Join(state, AsidePrefix+"*"))
	return all
}

// forgetDrafts removes what a rescue left that was killed before it moved anything.
func forgetDrafts(state string) {
	for _, aside := range Asides(state) {
		for _, name := range []string{draftName, nextName, copyName} {
			remove(filepath.Join(aside, name))
		}
		_ = os.Remove(aside) // unless a damaged database is in it
	}
}

// remove removes what there is of a database that nobody needs.
func remove(path string) {
	for _, end := range append(sqlite.Endings(), ".backup", ".backup.new") {
		_ = os.Remove(path + end)
	}
}
