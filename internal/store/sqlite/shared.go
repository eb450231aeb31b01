package sqlite

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mattn/go-sqlite3"
)

// shareTime is how long a shared transaction accepts more writes before a timer commits it.
const shareTime = 10 * time.Millisecond

// lazyTime is the time after which a commit is flushed, even if no caller waits for the flush. So a power failure loses
// only commits that are younger than lazyTime.
const lazyTime = time.Second

// shareRetry is the pause after a failed attempt to commit a shared transaction.
const shareRetry = time.Second

// shared is a transaction that several calls of WriteShared use. Only the holder of the writer's token may access it.
type shared struct {
	open   atomic.Bool       // whether the transaction is open; may be read without the token
	writes []func(*Tx) error // uncommitted writes; after a rollback, writer.begin applies them again
	ended  chan struct{}     // closed when the transaction has been committed
	timer  *time.Timer
	flush  bool // whether to flush after the commit
}

// add records an applied write. The first one starts a timer that calls commit.
func (s *shared) add(f func(*Tx) error, commit func()) {
	s.writes = append(s.writes, f)
	if len(s.writes) > 1 {
		return
	}
	s.ended = make(chan struct{})
	s.timer = time.AfterFunc(shareTime, commit)
}

func (s *shared) reset() {
	s.open.Store(false)
	if s.flush = false; len(s.writes) == 0 {
		return
	}
	s.timer.Stop()
	close(s.ended)
	s.writes, s.timer, s.ended = nil, nil, nil
}

// writeShared applies f in the shared transaction. The transaction is committed by the next write that is not shared,
// or by a timer.
func (w *writer) writeShared(ctx context.Context, f func(*Tx) error) error {
	return w.withToken(ctx, func(t *Tx) error {
		if err := w.apply(t, f); err != nil {
			return err
		}
		w.shared.add(f, w.commitLater)
		return nil
	})
}

// commitLater commits the shared transaction. If that fails, commitShared schedules another attempt.
func (w *writer) commitLater() { _ = w.withToken(context.Background(), w.commitShared) }

// commitShared commits the shared transaction if it has writes.
func (w *writer) commitShared(t *Tx) error {
	if len(w.shared.writes) == 0 {
		return nil
	}
	err := w.commitOpen(t, nil)
	if err != nil {
		w.shared.timer.Reset(shareRetry)
	}
	return err
}

// apply calls f in the open transaction. It begins a transaction if none is open. If f returns an error, apply undoes
// the changes of f.
func (w *writer) apply(t *Tx, f func(*Tx) error) error {
	if err := w.begin(t); err != nil {
		return err
	}
	made := false
	defer func() {
		if !made {
			_ = w.rollBack(t) // fails if SQLite has already rolled back, because of a full disk
		}
	}()
	if len(w.shared.writes) == 0 {
		err := f(t)
		made = err == nil
		return err
	}
	if _, err := t.Exec("SAVEPOINT share"); err != nil {
		return err
	}
	err := f(t)
	if err != nil {
		if _, lost := t.Exec("ROLLBACK TO share"); lost != nil {
			return err
		}
	}
	_, released := t.Exec("RELEASE share")
	made = released == nil
	return errors.Join(err, released)
}

// begin begins a transaction unless one is open. If a rollback undid the shared writes, begin applies them again.
func (w *writer) begin(t *Tx) error {
	if w.shared.open.Load() {
		return nil
	}
	if _, err := t.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	w.shared.open.Store(true)
	for _, f := range w.shared.writes {
		if err := f(t); err != nil {
			return errors.Join(err, w.rollBack(t))
		}
	}
	return nil
}

// rollBack rolls the transaction back, including the shared writes in it. The next call of begin applies the shared
// writes again.
func (w *writer) rollBack(t *Tx) error {
	w.shared.open.Store(false)
	w.cache.invalidate(everyTable, "")
	_, err := t.Exec("ROLLBACK")
	return err
}

// lostTransaction reports whether SQLite itself has rolled the open transaction back. If so, the next call of begin
// applies the shared writes again.
func (w *writer) lostTransaction() (lost bool) {
	if !w.shared.open.Load() {
		return false
	}
	err := w.conn.Raw(func(conn any) error {
		lost = conn.(*sqlite3.SQLiteConn).AutoCommit()
		return nil
	})
	if lost = lost && err == nil; lost {
		w.shared.open.Store(false)
		w.cache.invalidate(everyTable, "")
	}
	return lost
}

// commitOpen commits the shared writes. If f is not nil, it first applies f in the same transaction.
func (w *writer) commitOpen(t *Tx, f func(*Tx) error) error {
	if err := w.begin(t); err != nil {
		return err
	}
	if f != nil {
		if err := w.apply(t, f); err != nil {
			return err
		}
	}
	if _, err := t.Exec("COMMIT"); err != nil {
		_ = w.rollBack(t)
		return err
	}
	flush := w.shared.flush
	w.shared.reset()
	if w.log == nil {
		return nil
	}
	n := w.log.committed.Add(1)
	if flush {
		w.flushing.Go(func() { _ = w.log.flush(n) }) // w.disk stores an error of the flush
	} else if w.log.lazyFlush == nil {
		w.log.lazyFlush = time.AfterFunc(lazyTime, w.flushLazy)
	}
	return nil
}

// flushLazy starts a flush of all commits that are not flushed yet.
func (w *writer) flushLazy() {
	release, err := w.acquire(context.Background())
	if err != nil {
		return
	}
	defer release()
	w.log.lazyFlush = nil
	n := w.log.committed.Load()
	w.flushing.Go(func() { _ = w.log.flush(n) })
}

// awaitShared waits until the timer has committed the current shared writes. If the timer is late, awaitShared commits
// them itself.
func (w *writer) awaitShared() error {
	var ended <-chan struct{}
	err := w.withToken(context.Background(), func(*Tx) error {
		ended = w.shared.ended
		return nil
	})
	if err != nil || ended == nil {
		return err
	}
	wait := time.NewTimer(2 * shareTime)
	defer wait.Stop()
	select {
	case <-ended:
		return nil
	case <-wait.C:
		return w.withToken(context.Background(), w.commitShared)
	}
}

// read calls f with the open shared transaction, whose writes are not visible for other connections yet. It returns
// false if no transaction is open.
func (w *writer) read(ctx context.Context, f func(*Tx) error) (ok bool, err error) {
	if w == nil || !w.shared.open.Load() {
		return false, nil
	}
	release, err := w.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	if !w.shared.open.Load() {
		return false, nil
	}
	return true, f(&Tx{ctx: context.WithoutCancel(ctx), w: w})
}
