// Package sqlite opens one SQLite file for one program. One connection writes, a few others read, and the package
// itself flushes the write-ahead log. When the package opens the file, it checks the file, and migrates it if
// necessary. It copies the file before a migration, and tracks the state of the disk. The caller defines the tables and
// their content.
//
// Every write is atomic:
//   - If the process is killed, no write that has returned is lost, except for a WriteShared of the last milliseconds.
//   - If the power fails, no Write is lost. Other writes of the last second may be lost, unless a Write or Flush has
//     followed them. If a write is lost, all later writes are lost, too.
//
// If the context ends before the transaction begins, nothing is written. If the context ends later, this has no effect.
// So the caller always knows whether a write happened.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	_ "ductor/internal/store/sqlite/compiler" // fails to compile without a C compiler
)

type Schema struct {
	ApplicationID int    // identifies the program; stored in the header of each file
	Migrations    fs.FS  // SQL files, named 0001_name.sql, 0002_name.sql and so on
	CleanCopy     string // SQL statement to run in the copy that Open makes before a migration; may be empty
}

// Options configures a DB. The zero value is valid.
type Options struct {
	Readers     int                  // number of read connections; 3 if 0
	BusyTimeout time.Duration        // how long a write waits for another process; 5 s if 0
	Sync        func(*os.File) error // flushes a file or directory; fdatasync if nil
	// If Close cannot close the connections, it calls LeftOpen with a function that closes them later. The comment of
	// Close describes these cases. LeftOpen may be nil if the process exits after Close.
	LeftOpen func(func() error)
	// MaxCheckOnOpen is the size in bytes up to which Open checks the whole file; 16 MB if 0. For a larger file, call
	// CheckPages.
	MaxCheckOnOpen int64
}

func (o Options) withDefaults() Options {
	if o.Readers <= 0 {
		o.Readers = 3
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Sync == nil {
		o.Sync = fdatasync
	}
	if o.MaxCheckOnOpen == 0 {
		o.MaxCheckOnOpen = 16 << 20
	}
	if o.LeftOpen == nil {
		o.LeftOpen = func(func() error) {}
	}
	return o
}

// DB is an open database. It runs one write at a time. Safe for concurrent use.
type DB struct {
	dir        string
	leftOpen   func(func() error)
	writer     *writer // nil if the database is read-only
	reader     *reader
	unchecked  bool // Open checked only a part of the file, because it is too large
	unreadable *unreadable

	closing  sync.Once
	closeErr error
}

// Open opens the database at path. It creates a missing database (mode 0600, directories 0700), and migrates a database
// of an older version. It never changes a file that it cannot use. The error matches ErrCorrupt if the file is damaged
// or its log was lost, ErrForeign if another program created it, and ErrNewer if a newer version of ductor did.
func Open(ctx context.Context, path string, schema Schema, opts Options) (*DB, error) {
	opts = opts.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	if err := prepareFile(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	unchecked, err := inspect(ctx, path, schema, opts)
	if err != nil && !errors.Is(err, ErrOlder) {
		return nil, fmt.Errorf("open %s: %w", path, explain(err))
	}
	w, err := openWriter(ctx, path, schema, opts)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, explain(err))
	}
	r, err := openReader(path, opts, readWrite)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Join(explain(err), w.finish(), w.close()))
	}
	return &DB{dir: filepath.Dir(path), leftOpen: opts.LeftOpen, writer: w, reader: r, unchecked: unchecked,
		unreadable: w.disk.unreadable}, nil
}

// inspect checks a file through a read-only connection. A writing connection would copy the log into the file when it
// closes, even if the file is damaged. inspect also reports whether the file is too large to check completely.
func inspect(ctx context.Context, path string, schema Schema, opts Options) (unchecked bool, err error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return false, err
	}
	// If a journal exists, the first start was interrupted. A writing connection will roll the journal back.
	if _, err := os.Stat(path + "-journal"); err == nil {
		return false, nil
	}
	if err := checkLeftLog(path); err != nil {
		return false, err
	}
	unchecked = info.Size() > opts.MaxCheckOnOpen
	r, err := openReader(path, opts, readOnly)
	if err != nil {
		return false, err
	}
	return unchecked, errors.Join(r.check(ctx, schema, unchecked), r.close())
}

// OpenReadOnly opens the database at path without changing anything, even while another process uses it. The error
// matches ErrOlder for a file of an older version, and fs.ErrNotExist for a missing file. Writes to the DB fail.
func OpenReadOnly(ctx context.Context, path string, schema Schema, opts Options) (*DB, error) {
	opts = opts.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 && checkNoLog(path) == nil {
		err = fs.ErrNotExist // a process that was killed while it created the database leaves an empty file
	}
	if err == nil {
		err = checkHeader(path, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if _, err := inspect(ctx, path, schema, opts); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, explain(err))
	}
	r, err := openReader(path, opts, readOnly)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, explain(err))
	}
	return &DB{dir: filepath.Dir(path), reader: r, unreadable: &unreadable{}}, nil
}

// Close waits for the current write, copies the log into the file, and closes both. Afterwards all methods fail. A
// second Close has no effect.
//
// If the disk does not accept writes, or if the file is damaged, Close leaves the connections open. When SQLite closes
// its last connection, it copies the log into the file. After a failed write, the log on the disk may be incomplete, so
// the copy could damage the file. The next Open checks the log.
func (db *DB) Close() error {
	db.closing.Do(func() {
		err := db.writer.finish()
		if db.writer != nil && db.writer.disk.writeError() != nil {
			if errors.Is(db.writer.disk.writeError(), ErrDisk) {
				// The log may lack writes, but ductor has not reported any of these writes as done. So remove the
				// marker: the next Open must not report a lost log.
				db.writer.log.unmark()
			}
			db.leftOpen(db.release)
		} else {
			err = errors.Join(err, db.release())
		}
		db.closeErr = explain(err)
	})
	return db.closeErr
}

// release closes all connections. The writer's connection must be the last one: when SQLite closes it, SQLite copies
// the log into the database file.
func (db *DB) release() error { return errors.Join(db.reader.close(), db.writer.close()) }

func openPool(path string, opts Options, settings url.Values, size int) (*sql.DB, error) {
	settings.Set("_busy_timeout", strconv.FormatInt(opts.BusyTimeout.Milliseconds(), 10))
	settings.Set("_foreign_keys", "1")
	path, err := filepath.Abs(path) // in a URL, the first directory of a relative path would be the host
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}
	pool, err := sql.Open("sqlite3", dsn.String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}
