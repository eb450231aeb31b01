package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"sync"

	"ductor/orchestrator"
)

// reader is a small pool of read-only connections. They see every committed transaction, and do not wait for the
// writer.
type reader struct {
	pool    *sql.DB
	size    int    // maximum number of connections
	release func() // the function that markOpen returned

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// access is the mode in which a connection opens the file.
type access string

const (
	readWrite access = "rw" // SQLite may also copy the write-ahead log into the database file
	readOnly  access = "ro"
)

// readerCache limits the memory for pages that a reading connection caches, as a value of PRAGMA cache_size. A negative
// value is in KiB. A small cache is enough, because SQLite drops the cached pages of readers at each commit.
const readerCache = "-256"

func openReader(path string, opts Options, how access) (*reader, error) {
	release, err := markOpen(path)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(path, opts, url.Values{"_query_only": {"1"}, "mode": {string(how)},
		"_cache_size": {readerCache}}, opts.Readers)
	if err != nil {
		release()
		return nil, err
	}
	return &reader{pool: pool, size: opts.Readers, release: release, stmts: make(map[string]*sql.Stmt)}, nil
}

// stmt returns a prepared query from a cache. It prepares the query if necessary.
func (r *reader) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.stmts[query]; ok {
		return s, nil
	}
	s, err := r.pool.PrepareContext(ctx, query)
	if err == nil {
		r.stmts[query] = s
	}
	return s, err
}

// Row is a row of a query's result: *sql.Row or *sql.Rows.
type Row interface{ Scan(dest ...any) error }

// One runs a query and scans its first row. It returns sql.ErrNoRows if the result is empty.
func One[T any](ctx context.Context, db *DB, scan func(Row) (T, error), query string, args ...any) (v T, err error) {
	if ok, err := db.writer.read(ctx, func(t *Tx) error { v, err = OneIn(t, scan, query, args...); return err }); ok ||
		err != nil {
		return v, db.explain(err)
	}
	s, err := db.reader.stmt(ctx, query)
	if err != nil {
		return v, db.explain(err)
	}
	v, err = scan(s.QueryRowContext(ctx, args...))
	return v, db.explain(err)
}

// Many runs a query and scans every row. It skips rows that scan cannot decode; see Unreadable.
func Many[T any](
	ctx context.Context, db *DB, scan func(Row) (T, error), query string, args ...any,
) (all []T, err error) {
	if ok, err := db.writer.read(ctx,
		func(t *Tx) error { all, err = ManyIn(t, scan, query, args...); return err }); ok || err != nil {
		return all, db.explain(err)
	}
	s, err := db.reader.stmt(ctx, query)
	if err != nil {
		return nil, db.explain(err)
	}
	all, err = collect(ctx, s, args, scan, db.unreadable.recorder(query))
	return all, db.explain(err)
}

// explain adds the exported error that describes the cause to the error of a read. For example, it adds ErrCorrupt if
// the file is damaged. All later writes then fail.
func (db *DB) explain(err error) error {
	err = explain(err)
	if db.writer != nil && errors.Is(err, ErrCorrupt) {
		db.writer.disk.setState(orchestrator.DiskDamaged)
	}
	return err
}

// CheckPages checks the whole database for damage, and compares indexes with their tables. The check of a large
// database takes a long time.
func (db *DB) CheckPages(ctx context.Context) error {
	conn, err := db.reader.pool.Conn(ctx)
	if err != nil {
		return db.explain(err)
	}
	defer conn.Close()
	return db.explain(checkPages(ctx, conn))
}

// Unchecked reports whether Open checked only a part of the file, because it is too large.
func (db *DB) Unchecked() bool { return db.unchecked }

// Value scans the only column of a row.
func Value[T any](row Row) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// unreadable contains the names of tables with rows that could not be decoded. SQLite does not find such rows itself,
// because it does not check the text in them.
type unreadable struct{ tables sync.Map }

// tablePattern matches the table that a query reads or updates. Its group is the name of the table.
var tablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:FROM|UPDATE) (\w+)`) })

// recorder returns a function that adds the table of the query to u.tables.
func (u *unreadable) recorder(query string) func() {
	return func() {
		if m := tablePattern().FindStringSubmatch(query); m != nil {
			u.tables.Store(m[1], true)
		}
	}
}

// Unreadable returns the tables in which Many skipped rows, because it could not decode them.
func (db *DB) Unreadable() (all []string) {
	db.unreadable.tables.Range(func(table, _ any) bool { all = append(all, table.(string)); return true })
	slices.Sort(all)
	return all
}

// collect runs a query and scans every row. It calls onSkip for each row that scan cannot decode.
func collect[T any](
	ctx context.Context, s *sql.Stmt, args []any, scan func(Row) (T, error), onSkip func(),
) ([]T, error) {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			onSkip()
			continue
		}
		all = append(all, v)
	}
	return slices.Clip(all), rows.Err()
}

// check returns an error if this version of ductor cannot use the file. If briefly is false, it checks the whole file
// for damage.
func (r *reader) check(ctx context.Context, schema Schema, briefly bool) error {
	conn, err := r.pool.Conn(ctx)
	if err != nil {
		return damagedError(err)
	}
	defer conn.Close()
	if err := schema.checkOwner(ctx, conn); err != nil {
		return err
	}
	if !briefly {
		if err := checkPages(ctx, conn); err != nil {
			return err
		}
	}
	steps, err := schema.steps()
	if err != nil {
		return err
	}
	version, err := pragma(ctx, conn, "user_version")
	switch {
	case err != nil:
		return err
	case version < 0:
		return fmt.Errorf("%w: it has version %d. %s", ErrCorrupt, version, restoreAdvice)
	case version > len(steps):
		return newerError(version, len(steps))
	case version < len(steps):
		return fmt.Errorf("%w: it has version %d, and this program %d", ErrOlder, version, len(steps))
	}
	return nil
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.release()
	var errs []error
	for _, s := range r.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, r.pool.Close())...)
}
