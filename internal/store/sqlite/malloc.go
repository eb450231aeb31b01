package sqlite

// void trim_memory(void);
import "C"

import (
	"context"
	"errors"
)

// ReleaseMemory drops cached pages and prepared statements, and returns freed memory of SQLite to the kernel. The next
// queries prepare their statements again.
func (db *DB) ReleaseMemory(ctx context.Context) error {
	err := errors.Join(db.writer.withToken(ctx, (*Tx).releaseMemory), db.reader.releaseMemory(ctx))
	C.trim_memory()
	return explain(err)
}

func (t *Tx) releaseMemory() error {
	var errs []error
	for query, p := range t.w.stmts {
		errs = append(errs, p.stmt.Close())
		delete(t.w.stmts, query)
	}
	_, err := t.w.conn.ExecContext(t.ctx, "PRAGMA shrink_memory")
	return errors.Join(append(errs, err)...)
}

// releaseMemory closes the idle connections. It then opens a new one, so that the next query does not wait for this.
// Opening takes half a millisecond, mostly to parse the schema.
func (r *reader) releaseMemory(ctx context.Context) error {
	r.pool.SetMaxIdleConns(-1) // closes the idle connections
	r.pool.SetMaxIdleConns(r.size)
	conn, err := r.pool.Conn(ctx)
	if err != nil {
		return err
	}
	// The SELECT makes SQLite parse the schema now, so that the next query does not wait for this.
	_, err = conn.ExecContext(ctx, "SELECT 1 FROM sqlite_schema; PRAGMA shrink_memory")
	return errors.Join(err, conn.Close())
}
