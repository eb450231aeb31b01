package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
)

// writer is the one connection that writes. Whoever holds its token owns it. A nil writer is that of a database that was
// opened to be read.
type writer struct {
	path  string
	token chan struct{}
	pool  *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	log   *walLog // nil where SQLite itself brings every commit to the disk
	disk  *disk
	// uncut says that the log holds something secret: it is truncated with the next transaction that can.
	uncut bool
}

var (
	errClosed = errors.New("the database is closed")
	errLook   = errors.New("the database was opened to be read")
)

func openWriter(ctx context.Context, path string, opts Options) (*writer, error) {
	pool, err := openPool(path, opts, url.Values{"_journal_mode": {"WAL"}, "_synchronous": {"NORMAL"}, "_secure_delete": {"FAST"}}, 1)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(damaged(err), pool.Close())
	}
	w := &writer{path: path, token: make(chan struct{}, 1), pool: pool, conn: conn, stmts: make(map[string]*sql.Stmt), disk: newDisk()}
	if err := w.ready(ctx, path); err != nil {
		return nil, errors.Join(err, conn.Close(), pool.Close())
	}
	if err := w.useLog(ctx, path); err != nil {
		return nil, errors.Join(err, conn.Close(), pool.Close())
	}
	w.token <- struct{}{}
	return w, nil
}

// ready checks the file and brings its tables up to date.
func (w *writer) ready(ctx context.Context, path string) error {
	if err := belongsToUs(ctx, w.conn); err != nil {
		return err
	}
	if err := checkPages(ctx, w.conn); err != nil {
		return err
	}
	steps, err := embedded()
	if err != nil {
		return err
	}
	version, err := pragma(ctx, w.conn, "user_version")
	if err != nil {
		return err
	}
	outdated := 0 < version && version < len(steps)
	if outdated {
		if err := backUp(ctx, w.conn, path); err != nil {
			return fmt.Errorf("copy the database before it is changed: %w", err)
		}
	}
	if err := migrate(ctx, w.conn, steps); err != nil || !outdated {
		return err
	}
	// Earlier versions left what they deleted in free pages.
	_, err = w.conn.ExecContext(ctx, "VACUUM")
	return err
}

// useLog takes over the log. A file system that cannot have one gets the slow and sure way.
func (w *writer) useLog(ctx context.Context, path string) error {
	var mode string
	if err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode == "wal" {
		w.log = newWALLog(path, w.disk)
		// What a process before us left in the log may be in the kernel's memory only, and may be secret.
		_, err := w.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		if err := w.disk.note(err); err != nil && causeOf(err) != ErrDiskFull {
			return err
		}
		return nil
	}
	_, err := w.conn.ExecContext(ctx, "PRAGMA synchronous = FULL")
	return err
}

// do runs f in a transaction: all of it is on the disk when do returns nil. None of it is there otherwise,
// unless it is the disk that failed.
//
// A disk that turns out to be full at the flush is no error of this transaction, which stands and comes to the disk as
// soon as there is room. Until then nothing else is written, and Flush, which acknowledgements wait for, fails.
func (w *writer) do(ctx context.Context, f func(*tx) error) error {
	n, err := w.commit(ctx, f)
	if err != nil || w.log == nil {
		return err
	}
	if err := w.log.flush(n); !errors.Is(err, ErrDiskFull) {
		return err
	}
	return nil
}

// doSecretly is do for a transaction that deletes a secret: when it returns, the secret is neither in a free page of
// the file nor in the log.
func (w *writer) doSecretly(ctx context.Context, f func(*tx) error) error {
	return w.do(ctx, func(t *tx) error {
		// FAST leaves pages alone that the transaction frees. It is set back by truncate. A prepared statement would set
		// it only as it is prepared.
		if _, err := w.conn.ExecContext(t.ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		w.uncut = true
		return f(t)
	})
}

// truncate empties the log after a secret was deleted. A reader of an older state may be in the way for long; then the
// next transaction tries again. The token is held.
func (w *writer) truncate(ctx context.Context) error {
	if _, err := w.conn.ExecContext(ctx, "PRAGMA secure_delete = FAST"); err != nil {
		return err
	}
	var busy, pages, moved int
	err := w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	w.uncut = err != nil || busy != 0
	return err
}

// doSoon is do for what need not outlive a power failure by itself: it comes to the disk with the next do.
// A process that is killed loses nothing of it.
func (w *writer) doSoon(ctx context.Context, f func(*tx) error) error {
	_, err := w.commit(ctx, f)
	return err
}

// flush brings all that was committed to the disk.
func (w *writer) flush() error {
	if w == nil || w.log == nil {
		return nil
	}
	return w.log.flush(w.log.committed.Load())
}

// commit runs f in a transaction, and counts it.
func (w *writer) commit(ctx context.Context, f func(*tx) error) (n int64, err error) {
	if w == nil {
		return 0, errLook
	}
	// A context that is done must not win or lose by chance against a free token.
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case _, open := <-w.token:
		if !open {
			return 0, errClosed
		}
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { w.token <- struct{}{} }()
	if err := w.disk.refusal(); err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := w.run(ctx, f); err != nil {
		return 0, w.disk.note(err)
	}
	if w.uncut {
		// What was written stands, whatever becomes of this.
		_ = w.disk.note(w.truncate(ctx))
	}
	if w.log == nil {
		return 0, nil
	}
	return w.log.committed.Add(1), nil
}

func (w *writer) run(ctx context.Context, f func(*tx) error) (err error) {
	t := &tx{ctx: ctx, w: w}
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			// A full disk rolls back by itself; then there is nothing left to roll back.
			_, _ = t.exec("ROLLBACK")
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	if _, err := t.exec("COMMIT"); err != nil {
		return err
	}
	committed = true
	return nil
}

// close waits for the transaction under way. Call it once.
func (w *writer) close() error {
	if w == nil {
		return nil
	}
	<-w.token
	close(w.token)
	var errs []error
	if w.log != nil {
		errs = append(errs, w.log.close())
	}
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.pool.Close())...)
}

// tx is a transaction under way. Statements are prepared once for the life of the connection.
type tx struct {
	ctx context.Context
	w   *writer
}

func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if s, ok := t.w.stmts[query]; ok {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(t.ctx, query)
	if err == nil {
		t.w.stmts[query] = s
	}
	return s, err
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert runs an INSERT and returns the id of the row it made.
func (t *tx) insert(query string, args ...any) (int64, error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// row scans the first row of a query into dest; sql.ErrNoRows when there is none.
func (t *tx) row(query string, args []any, dest ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(t.ctx, args...).Scan(dest...)
}

// exists says whether a query gives any row.
func (t *tx) exists(query string, args ...any) (bool, error) {
	var one int
	err := t.row(query, args, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// collect runs a query and scans every row.
func collect[T any](ctx context.Context, s *sql.Stmt, args []any, scan func(scanner) (T, error)) ([]T, error) {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return slices.Clip(all), rows.Err()
}

// scanner is a row: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }
