package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// Rescue puts a database in place of a damaged one, which is moved aside: a copy of that if all its rows can be read, else of the newest
// backup, else an empty one. If rows may be missing, nothing runs by itself of which it is unknown whether it ran since.
type Rescue struct {
	Path    string
	Why     error                                        // what Open says
	Backups string                                       // the directory of backups
	Kept    func(run cli.RunID, output int64) bool       // reports whether all that a run printed from there on can be read
	Notices func(db *DB) ([]orchestrator.Message, error) // to those who use ductor, in the new database; what Rescued has is set
	Now     func() time.Time
	Rescued
}

// Rescued describes what became of a damaged database.
type Rescued struct {
	Aside  string    // the directory in which its files are
	Last   time.Time // when it was written last, at the latest
	Copied bool      // all that its file holds is there
	Stale  bool      // what was written last is lost
	Backup time.Time // when the backup was made that takes its place; zero without one
}

// Whole reports whether all is there.
func (r Rescued) Whole() bool { return r.Copied && !r.Stale }

// AsidePrefix begins the name of a directory to which a damaged database is moved.
const AsidePrefix = "damaged-"

// The new database has another name until it takes the place of the damaged one. A time follows that of a complete one.
const (
	draftSuffix = ".draft"
	nextSuffix  = ".next-"
)

// Run makes the new database, and then moves both to their places. After a kill the next start finishes it, or begins anew; see
// FinishRescue.
func (r *Rescue) Run(ctx context.Context) error {
	r.Stale = errors.Is(r.Why, sqlite.ErrLogLost)
	for _, path := range []string{r.Path, r.Path + "-wal", filepath.Dir(r.Path)} {
		info, err := os.Stat(path)
		switch {
		case err != nil, info.Size() == 0, info.ModTime().Before(r.Last):
		case info.IsDir() && !r.Stale && !r.Last.IsZero(): // of a file that is gone the directory says when it was there last
		default:
			r.Last = info.ModTime()
		}
	}
	stamp, draft := r.Now().UTC().Format("20060102T150405.000"), r.Path+draftSuffix
	r.Aside = filepath.Join(filepath.Dir(r.Path), AsidePrefix+stamp)
	remove(draft)
	db, err := r.copy(ctx, draft)
	if err == nil {
		err = errors.Join(r.settle(ctx, db), db.Close())
	}
	if err == nil {
		err = Check(ctx, draft)
	}
	if err == nil {
		err = sqlite.Place(draft, r.Path+nextSuffix+stamp)
	}
	remove(draft)
	if err == nil {
		err = FinishRescue(r.Path)
	}
	return wrap("rescue a damaged database", err)
}

// copy opens the new database, which has what can be read.
func (r *Rescue) copy(ctx context.Context, draft string) (*DB, error) {
	db, err := Open(ctx, draft, Options{Now: r.Now})
	if err != nil {
		return nil, err
	}
	if r.Copied, err = db.file.CopyRows(ctx, r.Path); r.Copied || err != nil {
		return db, err
	}
	err = db.Close()
	for _, b := range Backups(r.Backups) {
		if remove(draft); err != nil {
			return nil, err
		}
		err = Copy(ctx, b.Path, draft)
		if err == nil {
			r.Backup = b.Made
			break
		}
		if errors.Is(err, sqlite.ErrCorrupt) || errors.Is(err, sqlite.ErrForeign) || errors.Is(err, sqlite.ErrNewer) {
			err = nil // an older one may be well
		}
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, draft, Options{Now: r.Now})
}

// settle makes the new database fit for use.
func (r *Rescue) settle(ctx context.Context, db *DB) error {
	if !r.Whole() {
		if err := r.distrust(ctx, db); err != nil {
			return err
		}
	}
	notices, err := r.Notices(db)
	for _, m := range notices {
		err = errors.Join(err, db.SaveMessage(ctx, m))
	}
	return err
}

// distrust makes a database fit to be used again after it was used: what waited in it may have run since, and what was granted in it
// may have been taken back. Turns that ran continue if all that their agents printed is there.
func (r *Rescue) distrust(ctx context.Context, db *DB) error {
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
			// Telegram may send the update again of a turn whose update is not in this database.
			`INSERT OR IGNORE INTO inbox (id, raw, received, handled)
				SELECT u.value, x'', t.queued, t.queued FROM turns t, json_each(iif(json_valid(t.updates), t.updates, '[]')) u`,
			`UPDATE turns SET state = 'running', started = queued, run = 'unknown' WHERE state = 'queued' AND delivered = 0`,
			`UPDATE turns SET delivered = 1 WHERE state <> 'running' AND delivered = 0`,
			// The chat may show more of them than is known here. Their messages stay: they have to lose their buttons.
			`DELETE FROM cards WHERE turn IN (SELECT id FROM turns WHERE state = 'running' AND run = 'unknown')`,
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
		if _, err := t.Exec(`UPDATE jobs SET next = ?1, planned = ?1 WHERE next > 0`, far); err != nil {
			return err
		}
		return t.put("alerts", "key", alertColumns, rescueAlert, rescueAlert, millis(r.Last), "")
	})
}

// rescueAlert is the key under which the moment of the last rescue is kept.
const rescueAlert = "rescued"

// LastRescue returns until when messages came that may have been handled without a trace; zero for none.
func (db *DB) LastRescue(ctx context.Context) (time.Time, error) {
	all, err := db.Alerts(ctx)
	if i := slices.IndexFunc(all, func(a orchestrator.Alert) bool { return a.Key == rescueAlert }); i >= 0 {
		return all[i].Since, err
	}
	return time.Time{}, err
}

// RecentChats lists the topic of each chat in which a turn was asked for last, since a time.
func (db *DB) RecentChats(ctx context.Context, since time.Time) ([]orchestrator.ConversationID, error) {
	all, err := sqlite.Many(ctx, db.file, scan(conversationIDFields), `SELECT chat, topic FROM turns WHERE seq IN
		(SELECT max(seq) FROM turns WHERE queued > ? GROUP BY chat) ORDER BY chat`, millis(since))
	return all, wrap("list recent chats", err)
}

// FinishRescue moves the files of the damaged database at path aside and the new one to its place, if that is complete. It does so at
// each start, in case the process that made the new one was killed.
func FinishRescue(path string) error {
	complete := beginning(path + nextSuffix)
	if len(complete) == 0 {
		return nil
	}
	next := complete[0]
	aside := filepath.Join(filepath.Dir(path), AsidePrefix+strings.TrimPrefix(next, path+nextSuffix))
	err := os.MkdirAll(aside, 0o700)
	for _, end := range sqlite.Endings() {
		if moved := os.Rename(path+end, filepath.Join(aside, filepath.Base(path)+end)); !errors.Is(moved, os.ErrNotExist) {
			err = errors.Join(err, moved)
		}
	}
	if err == nil {
		err = errors.Join(sqlite.SyncDir(aside), sqlite.Place(next, path))
	}
	if err != nil {
		return fmt.Errorf("move the database aside: %w", err)
	}
	_ = os.Remove(aside) // if there was no file
	return nil
}

// Lost reports whether there is no database at path, but backups of one: it is gone, or was cut off.
func Lost(path, backups string) bool {
	info, err := os.Stat(path)
	return (errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0) && len(Backups(backups)) > 0
}

// Asides lists the directories of damaged databases, the oldest first.
func Asides(state string) []string { return beginning(filepath.Join(state, AsidePrefix)) }

// beginning lists the files whose paths begin so.
func beginning(path string) (all []string) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if name := filepath.Join(filepath.Dir(path), e.Name()); strings.HasPrefix(name, path) {
			all = append(all, name)
		}
	}
	return all
}

// remove removes what there is of a database that nobody needs.
func remove(path string) {
	for _, end := range append(sqlite.Endings(), ".backup", ".backup.new") {
		_ = os.Remove(path + end)
	}
}
