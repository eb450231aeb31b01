package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// Write runs f in a transaction: all of it is on the disk when Write returns nil. None of it is there otherwise, unless
// the disk failed. See Disk for one that is full.
func (db *DB) Write(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.write(ctx, f))
}

// WriteLazily is Write without a flush: the transaction comes to the disk with the next Write or Flush, or a second later. A process that
// is killed loses nothing of it.
func (db *DB) WriteLazily(ctx context.Context, f func(*Tx) error) error {
	_, err := db.writer.commit(ctx, f)
	return explain(err)
}

// WriteSoon is WriteLazily in a transaction that it shares with what is written next. A process that is killed in the next
// moment loses it, with everything that was written later: it is for what need not outlive the process before something is
// written that must. Reads see it.
func (db *DB) WriteSoon(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.share(ctx, f))
}

// WriteSoonFlushed is WriteSoon for what comes to the disk when it is committed.
func (db *DB) WriteSoonFlushed(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.share(ctx, func(t *Tx) error {
		if err := f(t); err != nil {
			return err
		}
		t.w.shared.flush = true
		return nil
	}))
}

// WriteSecret is Write for a transaction that deletes a secret: when it returns, the secret is neither in a free page of
// the file nor in the log, unless a reader of an older state is in the way; then the next write empties the log.
func (db *DB) WriteSecret(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeSecret(ctx, f))
}

// Flush returns when all that was written before it outlives a power failure.
func (db *DB) Flush() error { return explain(db.writer.flush()) }

// Tx is a transaction under way. Each statement is prepared once for the life of the connection.
type Tx struct {
	ctx context.Context
	w   *writer
}

// prepared is a statement and the table that it changes.
type prepared struct {
	stmt    *sql.Stmt
	changes string
}

func (t *Tx) prepare(query string) (prepared, error) {
	if p, ok := t.w.stmts[query]; ok {
		return p, nil
	}
	s, err := t.w.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return prepared{}, err
	}
	p := prepared{s, changedBy(query)}
	t.w.stmts[query] = p
	return p, nil
}

// stmt is a statement that is about to run.
func (t *Tx) stmt(query string) (*sql.Stmt, error) {
	p, err := t.prepare(query)
	if err == nil {
		t.w.kept.change(p.changes, "")
	}
	return p.stmt, err
}

func (t *Tx) run(query string, args []any) (sql.Result, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(t.ctx, args...)
}

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	res, err := t.run(query, args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert runs an INSERT and returns the id of the row it made.
func (t *Tx) Insert(query string, args ...any) (int64, error) {
	res, err := t.run(query, args)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Row scans the first row of a query into dest; sql.ErrNoRows when there is none.
func (t *Tx) Row(query string, args []any, dest ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(t.ctx, args...).Scan(dest...)
}

// Exists says whether a query gives any row.
func (t *Tx) Exists(query string, args ...any) (bool, error) {
	var one int
	err := t.Row(query, args, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// OneIn is One within a transaction.
func OneIn[T any](t *Tx, scan func(Row) (T, error), query string, args ...any) (T, error) {
	s, err := t.stmt(query)
	if err != nil {
		var none T
		return none, err
	}
	return scan(s.QueryRowContext(t.ctx, args...))
}

// ManyIn is Many within a transaction.
func ManyIn[T any](t *Tx, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return collect(t.ctx, s, args, scan, t.w.disk.unreadable.of(query))
}
