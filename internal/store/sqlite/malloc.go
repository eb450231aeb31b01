package sqlite

// void trim_memory(void);
import "C"

import "context"

// ReleaseMemory drops the pages that the writer has cached, and returns freed memory of SQLite to the kernel. It keeps
// the caches of readers, which openReader limits.
func (db *DB) ReleaseMemory(ctx context.Context) error {
	err := db.writer.withToken(ctx, func(t *Tx) error {
		_, err := t.w.conn.ExecContext(t.ctx, "PRAGMA shrink_memory")
		return err
	})
	C.trim_memory()
	return explain(err)
}
