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

// Rescue replaces a damaged database with a new one, and moves the damaged files to a separate directory. The new
// database contains all rows of the damaged one, if they can be read. Otherwise it is a copy of the newest usable
// backup, or empty if no backup is usable. If rows may be missing, ductor may have already done work that the new
// database lists as waiting. ductor does such work only after a user confirms it.
type Rescue struct {
	Path    string
	Cause   error  // the error of Open
	Backups string // directory of the backups
	// HasOutput reports whether the output of a run can be read from the given offset to its end.
	HasOutput func(run cli.RunID, output int64) bool
	// Notices returns messages to users about the rescue. Run sets the fields of Rescued before it calls Notices.
	Notices func(db *DB) ([]orchestrator.Message, error)
	Now     func() time.Time
	Rescued
}

// Rescued describes the result of a Rescue.
type Rescued struct {
	Dir        string    // directory with the files of the damaged database
	LastWrite  time.Time // no write to the damaged database happened after this time
	Copied     bool      // the new database contains all rows of the damaged file
	LostWrites bool      // the damaged file lacks the last writes, because its log was lost
	BackupTime time.Time // time of the backup that replaces the database; zero if Rescue used no backup
}

// Complete reports whether no data was lost.
func (r Rescued) Complete() bool { return r.Copied && !r.LostWrites }

// damagedPrefix is the prefix of a directory with the files of a damaged database.
const damagedPrefix = "damaged-"

// Suffixes of the new database before it replaces the damaged one. An incomplete database has draftSuffix. A complete
// one has nextSuffix and a timestamp.
const (
	draftSuffix = ".draft"
	nextSuffix  = ".next-"
)

// Run creates the new database. It then moves the files of the damaged database to r.Dir, and the new database to
// r.Path. If the process is killed during Run, the next start of ductor completes the Rescue with FinishRescue, or runs
// another Rescue.
func (r *Rescue) Run(ctx context.Context) error {
	r.LostWrites = errors.Is(r.Cause, sqlite.ErrLogLost)
	for _, path := range []string{r.Path, r.Path + "-wal", filepath.Dir(r.Path)} {
		info, err := os.Stat(path)
		switch {
		case err != nil, info.Size() == 0, info.ModTime().Before(r.LastWrite):
		// The directory may have changed after the last write to the database. Use its time only if writes were lost,
		// or if the times of the files are unknown.
		case info.IsDir() && !r.LostWrites && !r.LastWrite.IsZero():
		default:
			r.LastWrite = info.ModTime()
		}
	}
	stamp, draft := r.Now().UTC().Format("20060102T150405.000"), r.Path+draftSuffix
	r.Dir = filepath.Join(filepath.Dir(r.Path), damagedPrefix+stamp)
	removeFiles(draft)
	db, err := r.copy(ctx, draft)
	if err == nil {
		err = errors.Join(r.prepare(ctx, db), db.Close())
	}
	if err == nil {
		err = Check(ctx, draft)
	}
	if err == nil {
		err = sqlite.SyncAndRename(draft, r.Path+nextSuffix+stamp)
	}
	removeFiles(draft)
	if err == nil {
		err = FinishRescue(r.Path)
	}
	return wrap("rescue a damaged database", err)
}

// copy creates the new database at the given path, from the damaged database or from a backup, and opens the new one.
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
		if removeFiles(draft); err != nil {
			return nil, err
		}
		err = Copy(ctx, b.Path, draft)
		if err == nil {
			r.BackupTime = b.Made
			break
		}
		if errors.Is(err, sqlite.ErrCorrupt) || errors.Is(err, sqlite.ErrForeign) || errors.Is(err, sqlite.ErrNewer) {
			err = nil // an older backup may be usable
		}
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, draft, Options{Now: r.Now})
}

// prepare stores the notices. If data was lost, it first calls invalidate.
func (r *Rescue) prepare(ctx context.Context, db *DB) error {
	if !r.Complete() {
		if err := r.invalidate(ctx, db); err != nil {
			return err
		}
	}
	notices, err := r.Notices(db)
	for _, m := range notices {
		err = errors.Join(err, db.SaveMessage(ctx, m))
	}
	return err
}

// invalidate changes a database that may lack the last writes. It stops waiting turns and job runs, because they may
// have run already. It removes permissions, because users may have revoked them. A running turn continues only if the
// whole output of its agent can be read.
func (r *Rescue) invalidate(ctx context.Context, db *DB) error {
	open, err := db.RunningTurns(ctx)
	if err != nil {
		return err
	}
	return db.write(ctx, func(t tx) error {
		for _, o := range open {
			if o.Background || r.HasOutput(o.Start.Run, o.Start.Output) {
				continue
			}
			if _, err := t.Exec(`UPDATE turns SET run = 'unknown' WHERE id = ?`, string(o.Turn)); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			// Telegram may send the updates of these turns again. Store them as handled, so that ductor ignores them.
			`INSERT OR IGNORE INTO inbox (id, raw, received, handled)
				SELECT u.value, x'', t.queued, t.queued
				FROM turns t, json_each(iif(json_valid(t.updates), t.updates, '[]')) u`,
			`UPDATE turns SET state = 'running', started = queued, run = 'unknown' WHERE state = 'queued'
				AND delivered = 0`,
			`UPDATE turns SET delivered = 1 WHERE state <> 'running' AND delivered = 0`,
			// Delete the cards, because the chat may contain newer messages of these turns. Do not delete the stored
			// messages, because ductor must still remove their buttons.
			`DELETE FROM cards WHERE turn IN (SELECT id FROM turns WHERE state = 'running' AND run = 'unknown')`,
			`UPDATE messages SET content = NULL,
				state = CASE WHEN state IN ('pending', 'sending') THEN 'unknown' ELSE state END`,
			`UPDATE inbox SET raw = x'', handled = max(handled, received, 1)`,
			`UPDATE job_runs SET told = 1,
				state = CASE WHEN state IN ('waiting', 'asked') THEN 'skipped' ELSE state END`,
			// Agents may have received more history entries than this database records. Do not send them any old entry
			// again.
			`UPDATE agent_sessions SET offered = coalesce((SELECT max(number) FROM turns), 0)`,
			`DELETE FROM background`, `DELETE FROM rules`, `DELETE FROM users`, `DELETE FROM invitations`,
			`UPDATE conversations SET permission = '', bypass_until = 0`,
			`UPDATE asks SET state = 'withdrawn' WHERE state = 'open'
				AND turn IN (SELECT id FROM turns WHERE run = 'unknown')`,
		} {
			if _, err := t.Exec(statement); err != nil {
				return err
			}
		}
		// Set the next run of each job to the far future. The scheduler then assumes that the clock was set back, and
		// computes the next run again, without catching up on missed runs.
		far := millis(r.Now().AddDate(100, 0, 0))
		if _, err := t.Exec(`UPDATE jobs SET next = ?1, planned = ?1 WHERE next > 0`, far); err != nil {
			return err
		}
		return t.upsert("alerts", "key", alertColumns, rescueAlert, rescueAlert, millis(r.LastWrite), "")
	})
}

// rescueAlert is a key in the table of alerts. Its row is not an alert, but stores the time of the last rescue that
// lost data.
const rescueAlert = "rescued"

// LastRescue returns the time of the last write before the last rescue that lost data. Before this time, ductor may
// have handled messages that the database does not contain. LastRescue returns the zero time if no rescue has lost
// data.
func (db *DB) LastRescue(ctx context.Context) (time.Time, error) {
	all, err := db.Alerts(ctx)
	if i := slices.IndexFunc(all, func(a orchestrator.Alert) bool { return a.Key == rescueAlert }); i >= 0 {
		return all[i].Since, err
	}
	return time.Time{}, err
}

// RecentChats returns the chats in which a turn was queued after the given time, each with the topic of its newest
// turn.
func (db *DB) RecentChats(ctx context.Context, since time.Time) ([]orchestrator.ConversationID, error) {
	all, err := sqlite.Many(ctx, db.file, scan(conversationIDFields), `SELECT chat, topic FROM turns WHERE seq IN
		(SELECT max(seq) FROM turns WHERE queued > ? GROUP BY chat) ORDER BY chat`, millis(since))
	return all, wrap("list recent chats", err)
}

// FinishRescue completes a Rescue whose process was killed after it had created the new database. It moves the damaged
// files to their directory, and the new database to path. If no such Rescue exists, FinishRescue does nothing. Every
// start of ductor calls FinishRescue.
func FinishRescue(path string) error {
	complete := withPrefix(path + nextSuffix)
	if len(complete) == 0 {
		return nil
	}
	next := complete[0]
	aside := filepath.Join(filepath.Dir(path), damagedPrefix+strings.TrimPrefix(next, path+nextSuffix))
	err := os.MkdirAll(aside, 0o700)
	for _, end := range sqlite.FileSuffixes() {
		if moved := os.Rename(path+end,
			filepath.Join(aside, filepath.Base(path)+end)); !errors.Is(moved, os.ErrNotExist) {
			err = errors.Join(err, moved)
		}
	}
	if err == nil {
		err = errors.Join(sqlite.SyncDir(aside), sqlite.SyncAndRename(next, path))
	}
	if err != nil {
		return fmt.Errorf("move the database aside: %w", err)
	}
	_ = os.Remove(aside) // fails unless the directory is empty
	return nil
}

// Lost reports whether the database at path is missing or empty, although backups of it exist.
func Lost(path, backups string) bool {
	info, err := os.Stat(path)
	return (errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0) && len(Backups(backups)) > 0
}

// DamagedDirs returns the directories in the state directory that contain damaged databases, the oldest first.
func DamagedDirs(state string) []string { return withPrefix(filepath.Join(state, damagedPrefix)) }

func withPrefix(prefix string) (all []string) {
	entries, _ := os.ReadDir(filepath.Dir(prefix))
	for _, e := range entries {
		if name := filepath.Join(filepath.Dir(prefix), e.Name()); strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
	}
	return all
}

func removeFiles(path string) {
	for _, end := range append(sqlite.FileSuffixes(), ".backup", ".backup.new") {
		_ = os.Remove(path + end)
	}
}
