package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
)

// backupSuffix ends the name of the copy that Open makes before it migrates a database. There is one: the next replaces
// it.
const backupSuffix = ".backup"

// backUp copies the database at path. The copy holds no deleted data, and nothing that clean, a statement, removes.
func backUp(ctx context.Context, conn *sql.Conn, path, clean string) error {
	target := path + backupSuffix
	draft := target + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// SQLite would make a file that others may read.
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", draft); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if err := cleanCopy(ctx, draft, clean); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if f, err = os.Open(draft); err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, target)
}

// cleanCopy runs a statement in a copy, and leaves nothing of what it deletes in the file.
func cleanCopy(ctx context.Context, path, statement string) error {
	if statement == "" {
		return nil
	}
	settings := url.Values{"_journal_mode": {"MEMORY"}, "_secure_delete": {"1"}, "_synchronous": {"FULL"}}
	pool, err := openPool(path, Options{}.filled(), settings, 1)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, statement)
	return errors.Join(err, pool.Close())
}
