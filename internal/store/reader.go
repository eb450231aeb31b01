package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"sync"
)

// reader is a small pool of connections that cannot write. They see every committed transaction and never
// wait for the writer.
type reader struct {
	pool *sql.DB

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// access is how SQLite opens the file of a reader.
type access string

const (
	besideWriter access = "rw" // it may fold the log into the file
	untouched    access = "ro"
)

func openReader(path string, opts Options, how access) (*reader, error) {
	pool, err := openPool(path, opts, url.Values{"_query_only": {"1"}, "mode": {string(how)}}, opts.Readers)
	if err != nil {
		return nil, err
	}
	return &reader{pool: pool, stmts: make(map[string]*sql.Stmt)}, nil
}

// stmt prepares a query once. The first callers of one wait for each other, which takes microseconds.
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

// one scans the only row of a query; sql.ErrNoRows when there is none.
func one[T any](ctx context.Context, r *reader, scan func(scanner) (T, error), query string, args ...any) (T, error) {
	s, err := r.stmt(ctx, query)
	if err != nil {
		var none T
		return none, err
	}
	return scan(s.QueryRowContext(ctx, args...))
}

// many scans every row of a query.
func many[T any](ctx context.Context, r *reader, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	s, err := r.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return collect(ctx, s, args, scan)
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, r.pool.Close())...)
}
