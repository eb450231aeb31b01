package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// Write runs f in a transaction. If Write returns nil, all changes of f are on the disk. If it returns an error, no
// change is on the disk. The only exceptions are a failed disk and a full disk; see DB.Disk.
func (db *DB) Write(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.write(ctx, f))
}

// WriteLazily is like Write, but does not wait for a flush. The transaction survives the death of the process. It
// survives a power failure after the next Write or Flush, or after a second.
func (db *DB) WriteLazily(ctx context.Context, f func(*Tx) error) error {
	_, err := db.writer.commit(ctx, f)
	return explain(err)
}

// WriteShared is like WriteLazily, but does not wait for the commit, so that several calls share one transaction. If
// the process is killed within the next milliseconds, this write and all later ones are lost. Use it for data that is
// useless without a later write. Reads see the data immediately.
func (db *DB) WriteShared(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeShared(ctx, f))
}

// CommitShared commits the writes of WriteShared at once. They then survive the death of the process.
func (db *DB) CommitShared(ctx context.Context) error {
	if db.writer == nil || !db.writer.shared.open.Load() {
		return nil
	}
	return explain(db.writer.withToken(ctx, db.writer.commitShared))
}

// WriteSharedFlushed is like WriteShared, but also starts a flush after the commit.
func (db *DB) WriteSharedFlushed(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeShared(ctx, func(t *Tx) error {
		if err := f(t); err != nil {
			return err
		}
		t.w.shared.flush = true
		return nil
	}))
}

// WriteSecret is like Write, for a transaction that deletes a secret. Afterwards neither the database nor the log
// contains the secret, not even in unused space. If a reader still uses an older snapshot, the next write removes the
// secret from the log.
func (db *DB) WriteSecret(ctx context.Context, f func(*Tx) error) error {
	return explain(db.writer.writeSecret(ctx, f))
}

// Flush makes all earlier writes survive a power failure.
func (db *DB) Flush() error { return explain(db.writer.flush()) }

// Tx is an open transaction. It uses prepared statements of the connection.
type Tx struct {
	ctx context.Context
	w   *writer
	// rolledBack is the error because of which SQLite rolled the transaction back, or nil. All later statements return
	// this error, because SQLite would commit each of them on its own.
	rolledBack error
}

// check returns the error of a statement. After an error of the disk, SQLite may roll the whole transaction back, even
// if the statement only reads.
func (t *Tx) check(err error) error {
	if err != nil && !errors.Is(err, sql.ErrNoRows) && t.w.lostTransaction() {
		t.rolledBack = err
	}
	return err
}

type prepared struct {
	stmt    *sql.Stmt
	changes string // table that the statement changes; see changedTable
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

// stmt returns a prepared statement that is about to run. It invalidates the cached rows that the statement changes.
func (t *Tx) stmt(query string) (*sql.Stmt, error) {
	if t.rolledBack != nil {
		return nil, t.rolledBack
	}
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
	res, err := s.ExecContext(t.ctx, args...)
	return res, t.check(err)
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

// Row scans the first row of a query into dest. It returns sql.ErrNoRows if the result is empty.
func (t *Tx) Row(query string, args []any, dest ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return t.check(s.QueryRowContext(t.ctx, args...).Scan(dest...))
}

// Exists reports whether a query returns a row.
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
	v, err := scan(s.QueryRowContext(t.ctx, args...))
	return v, t.check(err)
}

// ManyIn is like Many, within a transaction.
func ManyIn[T any](t *Tx, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	all, err := collect(t.ctx, s, args, scan, t.w.disk.unreadable.recorder(query))
	return all, t.check(err)
}
