package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
)

// writer is the only connection that writes. A goroutine may use the writer only while it holds the token: it receives
// a value from the channel token, and later sends the value back. A read-only database has no writer.
type writer struct {
	path     string
	token    chan struct{}
	release  func()
	pool     *sql.DB
	conn     *sql.Conn
	stmts    map[string]prepared
	cache    *rowCache
	log      *walLog // nil if SQLite itself flushes every commit
	disk     *disk
	shared   shared
	flushing sync.WaitGroup // background flushes; only the holder of the token may add one
	// secretInLog is set while the log contains a deleted secret. Every commit then tries to truncate the log.
	secretInLog bool
}

func openWriter(ctx context.Context, path string, schema Schema, opts Options) (*writer, error) {
	release, err := markOpen(path)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(path, opts, url.Values{"_journal_mode": {"WAL"}, "_synchronous": {"NORMAL"},
		"_secure_delete": {"FAST"}}, 1)
	if err != nil {
		release()
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		defer release()
		return nil, errors.Join(damagedError(err), pool.Close())
	}
	w := &writer{
		path: path, token: make(chan struct{}, 1), release: release, pool: pool, conn: conn,
		stmts: make(map[string]prepared),
		cache: newRowCache(), disk: newDisk(opts.Sync),
	}
	err = w.prepare(ctx, schema)
	if err == nil {
		err = w.openLog(ctx)
	}
	if err = w.disk.record(err); err != nil {
		closeAll := func() error {
			defer release()
			return errors.Join(conn.Close(), pool.Close())
		}
		if w.disk.writeError() == nil {
			return nil, errors.Join(err, closeAll())
		}
		opts.LeftOpen(closeAll)
		return nil, err
	}
	w.token <- struct{}{}
	return w, nil
}

// prepare migrates the file if necessary. The caller must have checked the file with inspect.
func (w *writer) prepare(ctx context.Context, schema Schema) error {
	if err := w.disk.record(w.rewriteLeftLog(ctx)); err != nil && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("flush the log: %w", err)
	}
	steps, err := schema.steps()
	if err != nil {
		return err
	}
	version, err := pragma(ctx, w.conn, "user_version")
	if err != nil {
		return err
	}
	outdated := 0 < version && version < len(steps)
	if outdated {
		if err := BackUp(ctx, w.path, w.path+backupSuffix, schema); err != nil {
			return fmt.Errorf("copy the database before the migration: %w", err)
		}
	}
	if err := schema.migrate(ctx, w.conn, steps); err != nil || !outdated {
		return err
	}
	// The first versions of ductor left deleted data in free pages, which VACUUM removes.
	_, err = w.conn.ExecContext(ctx, "VACUUM")
	return err
}

// rewriteLeftLog writes and flushes the previous process's log again, because the last flush of that process may have
// failed. SQLite may copy the log into the database only after this flush.
func (w *writer) rewriteLeftLog(ctx context.Context) error {
	if info, err := os.Stat(w.path + "-wal"); err != nil || info.Size() == 0 {
		return nil // no log
	}
	if _, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil { // prevents writes of other processes
		return err
	}
	err := rewriteLog(w.path, w.disk.sync)
	_, ended := w.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, ended)
}

// openLog prepares the log. If the file system does not support a log, SQLite itself flushes every commit, which is
// slow.
func (w *writer) openLog(ctx context.Context) error {
	var mode string
	if err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode == "wal" {
		w.log = newWALLog(w.path, w.disk)
		// Empty the log of the previous process, because it may contain secrets.
		err := w.disk.writeError()
		if err == nil {
			_, err = w.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		}
		if err == nil {
			w.log.unmark() // remove the marker of a dead process
			return nil
		}
		// The old log may not be on the disk. Count it as a commit, so that the next flush includes it.
		w.log.committed.Add(1)
		if err := w.disk.record(err); !errors.Is(err, ErrDiskFull) {
			return err
		}
		return nil
	}
	_, err := w.conn.ExecContext(ctx, "PRAGMA synchronous = FULL")
	return err
}

// write implements DB.Write.
//
// If the disk is full during the flush, write returns no error, because the transaction is committed. ductor flushes
// the transaction once the disk has space. Until then, all other writes and Flush fail, so ductor acknowledges nothing
// to Telegram.
func (w *writer) write(ctx context.Context, f func(*Tx) error) error {
	n, err := w.commit(ctx, f)
	if err != nil || w.log == nil {
		return err
	}
	if err := w.log.flush(n); !errors.Is(err, ErrDiskFull) {
		return err
	}
	return nil
}

// writeSecret implements DB.WriteSecret.
func (w *writer) writeSecret(ctx context.Context, f func(*Tx) error) error {
	return w.write(ctx, func(t *Tx) error {
		// The default mode of secure_delete, FAST, does not overwrite freed pages. writer.truncate restores the default
		// mode. Do not use a prepared statement here: a prepared PRAGMA takes effect only when it is prepared.
		if _, err := w.conn.ExecContext(t.ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		w.secretInLog = true
		return f(t)
	})
}

// truncate empties the log after a secret was deleted. If a reader of an older snapshot prevents that, the next commit
// tries again. The caller must hold the token.
func (w *writer) truncate(ctx context.Context) error {
	if _, err := w.conn.ExecContext(ctx, "PRAGMA secure_delete = FAST"); err != nil {
		return err
	}
	var busy, pages, moved int
	err := w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	w.secretInLog = err != nil || busy != 0
	return err
}

func (w *writer) flush() error {
	if w == nil || w.log == nil {
		return nil
	}
	if err := w.awaitShared(); err != nil {
		return err
	}
	return w.log.flush(w.log.committed.Load())
}

func (w *writer) acquire(ctx context.Context) (release func(), err error) {
	// If ctx has ended and the token is free, select would choose between them at random.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case _, open := <-w.token:
		if !open {
			return nil, errClosed
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func() { w.token <- struct{}{} }, nil
}

// withToken calls f while it holds the token. It returns an error if the disk does not accept writes.
func (w *writer) withToken(ctx context.Context, f func(*Tx) error) error {
	if w == nil {
		return errReadOnly
	}
	release, err := w.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := w.disk.writeError(); err != nil {
		return err
	}
	return w.disk.record(f(&Tx{ctx: context.WithoutCancel(ctx), w: w}))
}

// commit runs f in a transaction together with the shared writes. It returns the number of transactions in the log.
func (w *writer) commit(ctx context.Context, f func(*Tx) error) (n int64, err error) {
	err = w.withToken(ctx, func(t *Tx) error {
		if err := w.commitOpen(t, f); err != nil {
			return err
		}
		if w.secretInLog {
			// The transaction is committed even if truncate fails.
			_ = w.disk.record(w.truncate(t.ctx))
		}
		if w.log != nil {
			n = w.log.committed.Load()
		}
		return nil
	})
	return n, err
}

// finish waits for the current transaction, and flushes all writes if the disk works. Call it only once.
func (w *writer) finish() error {
	if w == nil {
		return nil
	}
	<-w.token
	err := w.disk.writeError()
	if err == nil && len(w.shared.writes) > 0 {
		err = w.disk.record(w.commitOpen(&Tx{ctx: context.Background(), w: w}, nil))
	}
	if w.shared.timer != nil {
		w.shared.timer.Stop()
	}
	if w.log != nil && w.log.lazyFlush != nil {
		w.log.lazyFlush.Stop()
	}
	close(w.token)
	w.flushing.Wait()
	if w.log != nil && err == nil {
		err = w.log.flush(w.log.committed.Load())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // SQLite has not created the log, so nothing needs a flush
	}
	return err
}

// close closes the connection. Call it after finish.
func (w *writer) close() error {
	if w == nil {
		return nil
	}
	defer w.release()
	var errs []error
	for _, p := range w.stmts {
		errs = append(errs, p.stmt.Close())
	}
	errs = append(errs, w.conn.Close(), w.pool.Close())
	if w.log != nil {
		errs = append(errs, w.log.close())
		w.log.unmark() // SQLite has copied the log into the database, and has deleted the log
	}
	return errors.Join(errs...)
}
