package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"ductor/orchestrator"
)

var (
	_ orchestrator.Store   = (*DB)(nil)
	_ orchestrator.Journal = (*DB)(nil)
)

// Options tune a DB. The zero value is fit for use.
type Options struct {
	Now         func() time.Time // time.Now when nil
	Readers     int              // connections that read at a time; 3 when 0
	BusyTimeout time.Duration    // how long a write waits for another process; 5 s when 0
}

func (o Options) filled() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Readers <= 0 {
		o.Readers = 3
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	return o
}

// DB is an open database. Safe for concurrent use; writes go one after the other.
type DB struct {
	now   func() time.Time
	dir   string
	write *writer
	read  *reader

	closing  sync.Once
	closeErr error
}

// Open opens the database at path, makes it where there is none (file 0600, missing directories 0700) and
// brings it up to date. It never replaces or empties a file that it cannot read: a damaged one gives
// ErrCorrupt, one of another program ErrForeign, one of a newer ductor ErrNewer.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	opts = opts.filled()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: find %s: %w", path, err)
	}
	if err := prepareFile(path); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, err)
	}
	w, err := openWriter(ctx, path, opts)
	if err != nil {
		return nil, wrap("open "+path, err)
	}
	r, err := openReader(path, opts, besideWriter)
	if err != nil {
		return nil, errors.Join(wrap("open "+path, err), w.close())
	}
	return &DB{now: opts.Now, dir: filepath.Dir(path), write: w, read: r}, nil
}

// Close waits for the write under way, folds the write-ahead log into the file and closes it. Methods
// called later fail. Idempotent.
//
// On a disk that does not work it leaves the connections and the log as they are: what is in the kernel's memory may
// not be on the disk, and SQLite would copy it without a look. The next Open reads the log and checks it.
func (db *DB) Close() error {
	db.closing.Do(func() {
		if db.write != nil {
			if err := db.write.disk.refusal(); err != nil {
				db.closeErr = wrap("close", err)
				return
			}
		}
		// The readers go first: the last connection to close folds the log.
		db.closeErr = wrap("close", errors.Join(db.read.close(), db.write.close()))
	})
	return db.closeErr
}

func openPool(path string, opts Options, settings url.Values, size int) (*sql.DB, error) {
	settings.Set("_busy_timeout", strconv.FormatInt(opts.BusyTimeout.Milliseconds(), 10))
	settings.Set("_foreign_keys", "1")
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}
	pool, err := sql.Open("sqlite3", dsn.String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}
