package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// Write runs f in a transaction. If it returns nil, all changes of f are on the disk. Otherwise none are, unless the
// disk failed. See Disk for a full disk.
func (db *DB) Write(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.write(ctx, f))
}

// WriteLazily is like Write without a flush. The next Write or Flush, or a timer after a second, flushes the
// transaction. The death of the process does not lose the transaction.
func (db *DB) WriteLazily(ctx context.Context, f func(*Tx) error) error {
	_, err := db.writer.commit(ctx, f)
	return explain(err)
}

// WriteShared is like WriteLazily, in a transaction that it shares with the next writes. If the process is killed in
// the next moment, this write and all later writes are lost. It is for data that is useless without a later write.
// Reads see the data.
func (db *DB) WriteShared(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeShared(ctx, f))
}

// WriteSharedFlushed is like WriteShared, with a flush after the commit.
func (db *DB) WriteSharedFlushed(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeShared(ctx, func(t *Tx) error {
		if err := f(t); err != nil {
			return err
		}
		t.w.shared.flush = true
		return nil
	}))
}

// WriteSecret is like Write, for a transaction that deletes a secret. When it returns, the secret is neither in a free
// page of the file nor in the log, unless a reader uses an older snapshot. In that case the next write empties the log.
func (db *DB) WriteSecret(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeSecret(ctx, f))
}

// Flush writes all earlier writes to the disk. After it returns nil, they survive a power failure.
func (db *DB) Flush() error { return explain(db.writer.flush()) }

// Tx is an open transaction. It prepares each statement once in the lifetime of the connection.
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
	p := prepared{s, changedTable(query)}
	t.w.stmts[query] = p
	return p, nil
}

// stmt prepares a statement that is about to run, and invalidates cached rows that it changes.
func (t *Tx) stmt(query string) (*sql.Stmt, error) {
	p, err := t.prepare(query)
	if err == nil {
		t.w.cache.invalidate(p.changes, "")
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

// Exec runs a statement and returns the number of changed rows.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	res, err := t.run(query, args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert runs an INSERT and returns the ID of the new row.
func (t *Tx) Insert(query string, args ...any) (int64, error) {
	res, err := t.run(query, args)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Row scans the first row of a query into dest. It returns sql.ErrNoRows if there is none.
func (t *Tx) Row(query string, args []any, dest ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(t.ctx, args...).Scan(dest...)
}

// Exists reports whether a query has a row.
func (t *Tx) Exists(query string, args ...any) (bool, error) {
	var one int
	err := t.Row(query, args, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// OneIn is like One, within a transaction.
func OneIn[T any](t *Tx, scan func(Row) (T, error), query string, args ...any) (T, error) {
	s, err := t.stmt(query)
	if err != nil {
		var none T
		return none, err
	}
	return scan(s.QueryRowContext(t.ctx, args...))
}

// ManyIn is like Many, within a transaction.
func ManyIn[T any](t *Tx, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return collect(t.ctx, s, args, scan, t.w.disk.unreadable.recorder(query))
}
