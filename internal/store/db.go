// Package store stores everything that must survive a crash in one SQLite file: the inbox, notices, cards, jobs,
// approvals, and the choices, sessions and turns of conversations. *DB implements orchestrator.Store,
// orchestrator.Journal, heartbeat.Store and others. The interfaces describe the methods. The comments here only add how
// durable a write is.
//
// The package contains no domain logic: other packages decide when a turn runs or when a message is sent again. It also
// does not prevent two processes from using the same database; the lock file of the command does.
//
// Every writing method is atomic. When it returns, its changes survive a power failure, with two exceptions:
//   - Some methods do not wait for the disk, as their comments say. Their changes survive the death of the process. A
//     power failure during the next second can lose them, unless a method that waits for the disk has returned since.
//   - A method that uses a shared transaction returns before the commit, so that several calls can share one commit.
//     Its changes are lost if the process dies before the commit. They are committed by the next method that does not
//     use a shared transaction, or by a timer after some milliseconds.
//
// Times are stored as milliseconds in UTC.
package store

import (
	"context"
	"crypto/rand"
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

// schema describes the database for package sqlite, which copies the database before a migration. The statement
// CleanCopy removes the text of unhandled Telegram messages from the copy, for two reasons. The text may contain a
// secret. And if a user later restores the copy, ductor must not handle these messages again.
func schema() (sqlite.Schema, error) {
	files, err := fs.Sub(migrations, "sql")
	return sqlite.Schema{
		ApplicationID: 0x64756374, // "duct" in ASCII
		Migrations:    files,
		CleanCopy:     "UPDATE inbox SET raw = x'', handled = max(handled, received, 1)",
	}, err
}

// Options configures a DB. The zero value is valid.
type Options struct {
	Now    func() time.Time // time.Now if nil
	SQLite sqlite.Options
}

// DB is an open database. It runs one write at a time. Safe for concurrent use.
type DB struct {
	now  func() time.Time
	file *sqlite.DB
	life string // random ID of this process; SaveConversation stores it with the mode bypass
}

// Open opens the database at path. It creates a missing database, and migrates an older one; see sqlite.Open.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	return open(ctx, path, opts, sqlite.Open)
}

// OpenReadOnly opens the database at path and never changes it; see sqlite.OpenReadOnly.
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
	db := &DB{now: opts.Now, file: file, life: rand.Text()}
	if db.now == nil {
		db.now = time.Now
	}
	return db, nil
}

// Close waits for the current write and closes the database; see sqlite.DB.Close. Calling it again has no effect.
func (db *DB) Close() error { return wrap("close", db.file.Close()) }

func (db *DB) Flush(context.Context) error { return wrap("flush", db.file.Flush()) }

func (db *DB) Disk() (orchestrator.DiskState, context.Context) { return db.file.Disk() }

// RetryDisk implements orchestrator.Disk. After a full disk, it makes the database accept writes again.
func (db *DB) RetryDisk(ctx context.Context) error {
	return wrap("retry the disk", db.file.RetryDisk(ctx))
}

// Size returns the size of the database with its log in bytes, and the number of transactions since it was opened.
func (db *DB) Size() (bytes, commits int64) { return db.file.Size() }

// Unreadable returns the tables in which a query skipped rows, because it could not decode them.
func (db *DB) Unreadable() []string { return db.file.Unreadable() }

// Unchecked reports whether Open checked only a part of the database, because it is too large.
func (db *DB) Unchecked() bool { return db.file.Unchecked() }

// ReleaseMemory returns unused memory to the kernel; see sqlite.DB.ReleaseMemory.
func (db *DB) ReleaseMemory(ctx context.Context) error {
	return wrap("release memory", db.file.ReleaseMemory(ctx))
}

// CheckPages checks the whole database for damage. If it finds damage, all later writes fail.
func (db *DB) CheckPages(ctx context.Context) error {
	return wrap("check", db.file.CheckPages(ctx))
}

func (db *DB) TryWrite(ctx context.Context) error {
	return wrap("write a probe", db.write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO health (id, at) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE
			SET at = ?1`, millis(db.now()))
		return err
	}))
}

// tx is an open transaction. The methods of tx write single rows. The methods of DB combine them.
type tx struct{ *sqlite.Tx }

// write runs f in a transaction, and returns when the changes are on the disk; see sqlite.DB.Write.
func (db *DB) write(ctx context.Context, f func(tx) error) error {
	return db.file.Write(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// writeLazily is like write, but does not wait for the disk.
func (db *DB) writeLazily(ctx context.Context, f func(tx) error) error {
	return db.file.WriteLazily(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// writeShared is like writeLazily, but several calls share one transaction; see sqlite.DB.WriteShared.
func (db *DB) writeShared(ctx context.Context, f func(tx) error) error {
	return db.file.WriteShared(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

// writeSecret is like write, for a transaction that deletes a secret. Afterwards no file of the database contains the
// secret any more.
func (db *DB) writeSecret(ctx context.Context, f func(tx) error) error {
	return db.file.WriteSecret(ctx, func(t *sqlite.Tx) error { return f(tx{t}) })
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s: %w", op, err)
}

// Copy copies the database at path to a new file; see sqlite.Copy.
func Copy(ctx context.Context, path, target string) error {
	s, err := schema()
	if err != nil {
		return wrap("copy", err)
	}
	return wrap("copy", sqlite.Copy(ctx, path, target, s))
}

// Check checks a database for damage, while no process uses it; see sqlite.Check.
func Check(ctx context.Context, path string) error {
	s, err := schema()
	if err == nil {
		_, err = sqlite.Check(ctx, path, s)
	}
	return wrap("check", err)
}
