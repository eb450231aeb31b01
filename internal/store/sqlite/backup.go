package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// backupSuffix is the suffix of the copy that Open makes before a migration. The next migration replaces the copy.
const backupSuffix = ".backup"

// DraftSuffix is the suffix of an incomplete backup.
const DraftSuffix = ".new"

// BackUp writes a copy of the database at path to target, checks it, and replaces an older file at target. Other
// processes can use the database meanwhile. The copy contains neither deleted data nor data that Schema.CleanCopy
// removes.
func BackUp(ctx context.Context, path, target string, schema Schema) (err error) {
	draft := target + DraftSuffix
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("back up %s: %w", path, err)
	}
	if err := checkpoint(ctx, path); err != nil {
		return fmt.Errorf("back up %s: %w", path, explain(err))
	}
	if err := Copy(ctx, path, draft, schema); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if err = cleanCopy(ctx, draft, schema.CleanCopy); err == nil {
		err = SyncAndRename(draft, target)
	}
	if err != nil {
		return fmt.Errorf("back up %s: %w", path, errors.Join(explain(err), os.Remove(draft)))
	}
	return nil
}

// checkpoint copies the log into the database file, except for changes that are newer than the snapshot of a reader.
// Every backup contains the changes in the log. After checkpoint, the database file also contains them, so a loss of
// the log does not make the database older than its backup.
func checkpoint(ctx context.Context, path string) error {
	pool, err := openPool(path, Options{}.withDefaults(), url.Values{"mode": {string(readWrite)}}, 1)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return errors.Join(err, pool.Close())
}

// SyncAndRename flushes a file to the disk, and then renames it.
func SyncAndRename(draft, target string) error {
	f, err := os.Open(draft)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(draft, target)
	}
	return errors.Join(err, SyncDir(filepath.Dir(target)))
}

// cleanCopy runs a statement that deletes data in the copy of a database at path. Afterwards, the file at path contains
// no trace of the deleted data.
func cleanCopy(ctx context.Context, path, statement string) error {
	if statement == "" {
		return nil
	}
	settings := url.Values{"_journal_mode": {"MEMORY"}, "_secure_delete": {"1"}, "_synchronous": {"FULL"}}
	pool, err := openPool(path, Options{}.withDefaults(), settings, 1)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, statement)
	return errors.Join(err, pool.Close())
}
