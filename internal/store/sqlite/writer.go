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

// writer is the one connection that writes. The goroutine that holds the token owns it. A nil writer is that of a
// database that was opened to be read.
type writer struct {
	path     string
	token    chan struct{}
	release  func() // see hold
	pool     *sql.DB
	conn     *sql.Conn
	stmts    map[string]prepared
	kept     *kept
	log      *walLog // nil where SQLite itself brings every commit to the disk
	disk     *disk
	shared   shared
	flushing sync.WaitGroup // beside the transactions; entered with the token
	// secretInLog says that the log holds a deleted secret: the next transaction that can truncates the log.
	secretInLog bool
}

func openWriter(ctx context.Context, path string, schema Schema, opts Options) (*writer, error) {
	release, err := hold(path)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(path, opts, url.Values{"_journal_mode": {"WAL"}, "_synchronous": {"NORMAL"}, "_secure_delete": {"FAST"}}, 1)
	if err != nil {
		release()
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		defer release()
		return nil, errors.Join(damaged(err), pool.Close())
	}
	w := &writer{
		path: path, token: make(chan struct{}, 1), release: release, pool: pool, conn: conn, stmts: make(map[string]prepared),
		kept: newKept(), disk: newDisk(opts.Sync),
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
		if w.disk.refusal() == nil {
			return nil, errors.Join(err, closeAll())
		}
		opts.Left(closeAll) // see DB.Close
		return nil, err
	}
	w.token <- struct{}{}
	return w, nil
}

// prepare brings the tables of a file that was checked up to date.
func (w *writer) prepare(ctx context.Context, schema Schema) error {
	if err := w.disk.record(w.rewriteLeft(ctx)); err != nil && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("bring the log to the disk: %w", err)
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
			return fmt.Errorf("copy the database before it is changed: %w", err)
		}
	}
	if err := schema.migrate(ctx, w.conn, steps); err != nil || !outdated {
		return err
	}
	// The first versions left what they deleted in free pages.
	_, err = w.conn.ExecContext(ctx, "VACUUM")
	return err
}

// rewriteLeft brings to the disk what the last process left in the log, perhaps after a flush that failed: from here on SQLite may
// copy it into the database.
func (w *writer) rewriteLeft(ctx context.Context) error {
	if info, err := os.Stat(w.path + "-wal"); err != nil || info.Size() == 0 {
		return nil // there is none
	}
	if _, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil { // another process may write
		return err
	}
	err := rewriteLog(w.path, w.disk.sync)
	_, ended := w.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, ended)
}

// openLog prepares the log. On a file system that cannot have one, SQLite flushes every commit, which is slow.
func (w *writer) openLog(ctx context.Context) error {
	var mode string
	if err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode == "wal" {
		w.log = newWALLog(w.path, w.disk)
		// What the previous process left in the log may be secret.
		err := w.disk.refusal()
		if err == nil {
			_, err = w.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		}
		if err == nil {
			w.log.unmark() // of a process that is gone
			return nil
		}
		w.log.committed.Add(1) // what the log holds may not be on the disk
		if err := w.disk.record(err); !errors.Is(err, ErrDiskFull) {
			return err
		}
		return nil
	}
	_, err := w.conn.ExecContext(ctx, "PRAGMA synchronous = FULL")
	return err
}

// write runs f in a transaction: all of it is on the disk when write returns nil. None of it is there otherwise,
// unless the disk failed.
//
// A disk that turns out to be full at the flush is no error of this transaction, which stands and comes to the disk as
// soon as there is room. Until then nothing else is written, and Flush, which acknowledgements wait for, fails.
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

// writeSecret is write for a transaction that deletes a secret: when it returns, the secret is neither in a free page of
// the file nor in the log.
func (w *writer) writeSecret(ctx context.Context, f func(*Tx) error) error {
	return w.write(ctx, func(t *Tx) error {
		// FAST leaves pages alone that the transaction frees. truncate sets it again. A prepared statement would set it
		// only when it is prepared.
		if _, err := w.conn.ExecContext(t.ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		w.secretInLog = true
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
	w.secretInLog = err != nil || busy != 0
	return err
}

// flush brings all that was written to the disk.
func (w *writer) flush() error {
	if w == nil || w.log == nil {
		return nil
	}
	if err := w.await(); err != nil {
		return err
	}
	return w.log.flush(w.log.committed.Load())
}

// take takes the token. release gives it back.
func (w *writer) take(ctx context.Context) (release func(), err error) {
	// A context that is done must not win or lose by chance against a free token.
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

// owned calls f with the token, unless the disk takes nothing.
func (w *writer) owned(ctx context.Context, f func(*Tx) error) error {
	if w == nil {
		return errReadOnly
	}
	release, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := w.disk.refusal(); err != nil {
		return err
	}
	return w.disk.record(f(&Tx{ctx: context.WithoutCancel(ctx), w: w}))
}

// commit runs f in a transaction, with what is shared, and counts it.
func (w *writer) commit(ctx context.Context, f func(*Tx) error) (n int64, err error) {
	err = w.owned(ctx, func(t *Tx) error {
		if err := w.end(t, f); err != nil {
			return err
		}
		if w.secretInLog {
			// What was written stands, whatever becomes of this.
			_ = w.disk.record(w.truncate(t.ctx))
		}
		if w.log != nil {
			n = w.log.committed.Load()
		}
		return nil
	})
	return n, err
}

// finish waits for the transaction under way, and brings everything to the disk if that works. Call it once.
func (w *writer) finish() error {
	if w == nil {
		return nil
	}
	<-w.token
	err := w.disk.refusal()
	if err == nil && len(w.shared.writes) > 0 {
		err = w.disk.record(w.end(&Tx{ctx: context.Background(), w: w}, nil))
	}
	if w.shared.timer != nil {
		w.shared.timer.Stop()
	}
	if w.log != nil && w.log.later != nil {
		w.log.later.Stop()
	}
	close(w.token)
	w.flushing.Wait()
	if w.log != nil && err == nil {
		err = w.log.flush(w.log.committed.Load())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no log was ever begun
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
		w.log.unmark() // SQLite deleted the log with its last connection
	}
	return errors.Join(errs...)
}
