// Package store keeps in one SQLite file what must survive a crash: the inbox, notices, cards, jobs, approvals, and the
// choices, sessions and turns of conversations. *DB is both orchestrator.Store and orchestrator.Journal.
//
// It is not the domain: it decides nothing about when a turn runs or a message is sent again. It does not
// keep two instances apart either; the lock file of the command does that.
//
// Every writing method is one transaction, with the guarantees of internal/store/sqlite. A method that says that it is
// lazy survives a killed process at once, and a power failure after the next method that is not or a second. One that
// shares a transaction survives a killed process some milliseconds later, or with the next method that does not share. Times are kept
// as milliseconds in UTC.
package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

var (
	_ orchestrator.Store      = (*DB)(nil)
	_ orchestrator.Journal    = (*DB)(nil)
	_ orchestrator.OrderStore = (*DB)(nil)
	_ heartbeat.Store         = (*DB)(nil)
	_ webhook.Store           = (*DB)(nil)
)

//go:embed sql/*.sql
var migrations embed.FS

// schema describes the database. The copy before a migration holds no text of a message that was not handled: that may
// be a secret, and a user who goes back to the copy must not have it handled twice.
func schema() (sqlite.Schema, error) {
	files, err := fs.Sub(migrations, "sql")
	return sqlite.Schema{
		ApplicationID: 0x64756374, // "duct"
		Migrations:    files,
		CleanCopy:     "UPDATE inbox SET raw = x'', handled = max(handled, received, 1)",
	}, err
}

// Options tune a DB. The zero value is fit for use.
type Options struct {
	Now    func() time.Time // time.Now when nil
	SQLite sqlite.Options
}

// DB is an open database. Safe for concurrent use; writes go one after the other.
type DB struct {
	now  func() time.Time
	file *sqlite.DB
}

// Open opens the database at path, makes it where there is none and brings it up to date; see sqlite.Open.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	return open(ctx, path, opts, sqlite.Open)
}

// OpenReadOnly opens the database at path to read it, and changes nothing; see sqlite.OpenReadOnly.
func OpenReadOnly(ctx context.Context, path string, opts Options) (*DB, error) {
	return open(ctx, path, opts, sqlite.OpenReadOnly)
}

func open(ctx context.Context, path string, opts Options,
	with func(context.Context, string, sqlite.Schema, sqlite.Options) (*sqlite.DB, error),
) (*DB, error) {
	s, err := schema()
	if err != nil {
		return nil, wrap("open", err)
	}
	file, err := with(ctx, path, s, opts.SQLite)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db := &DB{now: opts.Now, file: file}
	if db.now == nil {
		db.now = time.Now
	}
	return db, nil
}

// Close waits for the write under way and closes the database; see sqlite.DB.Close. Idempotent.
func (db *DB) Close() error { return wrap("close", db.file.Close()) }

// Flush returns when all that was written before it outlives a power failure.
func (db *DB) Flush(context.Context) error { return wrap("flush", db.file.Flush()) }

// Disk is the state of the disk, and a context that is done once that has changed.
func (db *DB) Disk() (orchestrator.DiskState, context.Context) { return db.file.Disk() }

// RetryDisk checks whether the disk takes something, and brings to it what was committed and may not be there.
// After that writes are taken again, unless the disk failed.
func (db *DB) RetryDisk(ctx context.Context) error {
	return wrap("try the disk", db.file.RetryDisk(ctx))
}

// Size is how many bytes the database and its log take, and how many transactions were committed since it was opened.
func (db *DB) Size() (bytes, commits int64) { return db.file.Size() }

// Unreadable lists the tables that were found to have rows which cannot be decoded, and which are passed over.
func (db *DB) Unreadable() []string { return db.file.Unreadable() }

// Unchecked reports whether the database was so large that Open did not read all of it.
func (db *DB) Unchecked() bool { return db.file.Unchecked() }

// CheckPages reads the whole database. After it found damage nothing is written any more.
func (db *DB) CheckPages(ctx context.Context) error {
	return wrap("check", db.file.CheckPages(ctx))
}

// TryWrite writes something small, and returns when it is on the disk; see health.Store.
func (db *DB) TryWrite(ctx context.Context) error {
	return wrap("try a write", db.write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO health (id, at) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET at = ?1`, millis(db.now()))
		return err
	}))
}

// tx is a transaction under way. Its methods are the writes of several nouns that belong together.
type tx struct{ *sqlite.Tx }

// write runs f in a transaction that is on the disk when write returns nil; see sqlite.DB.Write.
func (db *DB) write(ctx context.Context, f func(tx) error) error {
	return db.file.Write(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// writeLazily is write without waiting for the disk.
func (db *DB) writeLazily(ctx context.Context, f func(tx) error) error {
	return db.file.WriteLazily(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// share is write in a transaction that it shares with what is written in the next moment; see sqlite.DB.WriteSoon.
func (db *DB) share(ctx context.Context, f func(tx) error) error {
	return db.file.WriteSoon(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// writeSecret is write for a transaction that deletes a secret.
func (db *DB) writeSecret(ctx context.Context, f func(tx) error) error {
	return db.file.WriteSecret(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// wrap says what was tried.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s: %w", op, err)
}

// Copy writes a copy of the database at path into a new file; see sqlite.Copy.
func Copy(ctx context.Context, path, target string) error {
	s, err := schema()
	if err != nil {
		return wrap("copy", err)
	}
	return wrap("copy", sqlite.Copy(ctx, path, target, s))
}

// Check reads all of a database that no process uses; see sqlite.Check.
func Check(ctx context.Context, path string) error {
	s, err := schema()
	if err == nil {
		_, err = sqlite.Check(ctx, path, s)
	}
	return wrap("check", err)
}
