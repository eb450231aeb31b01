// Package sqlite opens one SQLite file for one program: one connection writes, a few others read, and the package
// itself brings the write-ahead log to the disk. It checks and migrates the file when it opens it, copies it before a
// migration, and knows the state of the disk.
//
// It is not the domain: the tables and what is in them are its caller's.
//
// Every write happens whole or not at all. A process that is killed loses nothing of a write that returned, except for a
// WriteSoon of the last moment after which nothing else was written. A power failure loses nothing of Write, and may lose
// others of the last second, unless a Write or Flush followed; what it loses, it loses with everything that was written
// later. A context that is done before the transaction begins stops it; one that ends later does not, so that a write either
// happened or did not, and its caller knows which.
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

	_ "ductor/internal/store/sqlite/compiler" // is there, or this package is not compiled
)

// Schema describes the files that Open accepts.
type Schema struct {
	ApplicationID int    // the mark in the header of each of these files
	Migrations    fs.FS  // SQL files, named 0001_name.sql, 0002_name.sql and so on
	CleanCopy     string // a statement for the copy that Open makes before it migrates a file; none if empty
}

// Options tune a DB. The zero value is fit for use.
type Options struct {
	Readers     int                  // connections that read at a time; 3 when 0
	BusyTimeout time.Duration        // how long a write waits for another process; 5 s when 0
	Sync        func(*os.File) error // brings a file or directory to the disk; fdatasync when nil
	Left        func(func() error)   // gets what closes the connections that Close leaves; nil when the process ends after Close
	// CheckAtOnce is up to how many bytes Open checks a file; 16 MB when 0. CheckPages is for those that are larger.
	CheckAtOnce int64
}

func (o Options) filled() Options {
	if o.Readers <= 0 {
		o.Readers = 3
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Sync == nil {
		o.Sync = fdatasync
	}
	if o.CheckAtOnce == 0 {
		o.CheckAtOnce = 16 << 20
	}
	if o.Left == nil {
		o.Left = func(func() error) {}
	}
	return o
}

// DB is an open database. Safe for concurrent use; writes go one after the other.
type DB struct {
	dir        string
	left       func(func() error)
	writer     *writer // nil when the database was opened to be read
	reader     *reader
	unchecked  bool // the file is large: Open did not read all of it
	unreadable *unreadable

	closing  sync.Once
	closeErr error
}

// Open opens the database at path, makes it where there is none (file 0600, missing directories 0700) and
// brings it up to date. It never changes a file that it cannot use: a damaged one, or one whose log is lost, gives
// ErrCorrupt, one of another program ErrForeign, one of a newer version ErrNewer.
func Open(ctx context.Context, path string, schema Schema, opts Options) (*DB, error) {
	opts = opts.filled()
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
	return &DB{dir: filepath.Dir(path), left: opts.Left, writer: w, reader: r, unchecked: unchecked, unreadable: w.disk.unreadable}, nil
}

// inspect looks at a file through a connection that cannot write: one that could would copy the log into a damaged file as it
// is closed. It reports whether the file is too large to be read whole.
func inspect(ctx context.Context, path string, schema Schema, opts Options) (unchecked bool, err error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return false, err
	}
	if _, err := os.Stat(path + "-journal"); err == nil { // of a first start, which only a connection that writes takes back
		return false, nil
	}
	if err := checkLeft(path); err != nil {
		return false, err
	}
	unchecked = info.Size() > opts.CheckAtOnce
	r, err := openReader(path, opts, readOnly)
	if err != nil {
		return false, err
	}
	return unchecked, errors.Join(r.check(ctx, schema, unchecked), r.close())
}

// OpenReadOnly opens the database at path to read it. It changes nothing, neither a file that another process uses nor
// one of an older version, which gives ErrOlder. A file that is not there gives an error matching fs.ErrNotExist. Every
// write fails.
func OpenReadOnly(ctx context.Context, path string, schema Schema, opts Options) (*DB, error) {
	opts = opts.filled()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 && checkNoLog(path) == nil {
		err = fs.ErrNotExist // the first start was killed before it wrote anything
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

// Close waits for the write under way, folds the write-ahead log into the file and closes it. Methods
// called later fail. Idempotent.
//
// On a disk that does not work, and of a damaged file, it leaves the connections and the log as they are: what is in the
// kernel's memory may not be on the disk, and SQLite would copy it without a look. The next Open reads the log and checks it.
func (db *DB) Close() error {
	db.closing.Do(func() {
		err := db.writer.finish()
		if db.writer != nil && db.writer.disk.refusal() != nil {
			if errors.Is(db.writer.disk.refusal(), ErrDisk) {
				db.writer.log.unmark() // what the disk lost of the log was not acknowledged
			}
			db.left(db.release)
		} else {
			err = errors.Join(err, db.release())
		}
		db.closeErr = explain(err)
	})
	return db.closeErr
}

// release closes the connections, the readers first: the last one to close folds the log.
func (db *DB) release() error { return errors.Join(db.reader.close(), db.writer.close()) }

func openPool(path string, opts Options, settings url.Values, size int) (*sql.DB, error) {
	settings.Set("_busy_timeout", strconv.FormatInt(opts.BusyTimeout.Milliseconds(), 10))
	settings.Set("_foreign_keys", "1")
	path, err := filepath.Abs(path) // the first directory of a relative path would be the host of the address
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
