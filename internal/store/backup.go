package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
)

// backupSuffix ends the name of the copy that is made before a database of an earlier version is changed. There is one:
// the next replaces it.
const backupSuffix = ".backup"

// backUp copies the database. The copy holds no deleted data, and no text of a message that was not handled: that may be
// a secret, and whoever goes back to the copy must not have it handled twice.
func backUp(ctx context.Context, conn *sql.Conn, path string) error {
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
	if err := clearInbox(ctx, draft); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, target)
}

// clearInbox takes the text of messages out of a copy.
func clearInbox(ctx context.Context, path string) error {
	settings := url.Values{"_journal_mode": {"MEMORY"}, "_secure_delete": {"1"}, "_synchronous": {"FULL"}}
	pool, err := openPool(path, Options{}.filled(), settings, 1)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, "UPDATE inbox SET raw = x'', handled = max(handled, received, 1)")
	return errors.Join(err, pool.Close())
}
