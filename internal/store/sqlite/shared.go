package sqlite

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// shareTime is how long a shared transaction stays open, unless a write ends it before.
const shareTime = 10 * time.Millisecond

// lazyTime is how long what was committed may wait for a flush: a power failure loses no more than that.
const lazyTime = time.Second

// shareAgain is between two tries to commit what is shared.
const shareAgain = time.Second

// shared is a transaction that several writes share. Who has the token of the writer owns it.
type shared struct {
	open   atomic.Bool       // it was begun, and has the writes; anybody may load it
	writes []func(*Tx) error // that are not committed; they are made again after a rollback
	ended  chan struct{}     // closed once it is committed
	timer  *time.Timer
	flush  bool // once it is committed it is brought to the disk
}

// keep has a write that was made share the transaction.
func (s *shared) keep(f func(*Tx) error, settle func()) {
	s.writes = append(s.writes, f)
	if len(s.writes) > 1 {
		return
	}
	s.ended = make(chan struct{})
	s.timer = time.AfterFunc(shareTime, settle)
}

// committed forgets what was shared.
func (s *shared) committed() {
	s.open.Store(false)
	if s.flush = false; len(s.writes) == 0 {
		return
	}
	s.timer.Stop()
	close(s.ended)
	s.writes, s.timer, s.ended = nil, nil, nil
}

// share makes f in a transaction that is committed with the next write, or soon.
func (w *writer) share(ctx context.Context, f func(*Tx) error) error {
	return w.owned(ctx, func(t *Tx) error {
		if err := w.make(t, f); err != nil {
			return err
		}
		w.shared.keep(f, w.settle)
		return nil
	})
}

// settle commits what is shared. It tries again while the disk does not take it.
func (w *writer) settle() { _ = w.owned(context.Background(), w.commitShared) }

// commitShared commits what is shared, if anything is.
func (w *writer) commitShared(t *Tx) error {
	if len(w.shared.writes) == 0 {
		return nil
	}
	err := w.end(t, nil)
	if err != nil {
		w.shared.timer.Reset(shareAgain)
	}
	return err
}

// make makes f in the open transaction, which it begins at need. After an error nothing of f is there.
func (w *writer) make(t *Tx, f func(*Tx) error) error {
	if err := w.begin(t); err != nil {
		return err
	}
	made := false
	defer func() {
		if !made {
			_ = w.rollBack(t) // SQLite has rolled back already where the disk is full
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

// begin begins a transaction with what is shared, unless one is open.
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

// rollBack ends the transaction without its writes. Those that share it are made again in the next one.
func (w *writer) rollBack(t *Tx) error {
	w.shared.open.Store(false)
	w.kept.change(everyTable, "")
	_, err := t.Exec("ROLLBACK")
	return err
}

// end makes f, if there is one, and commits it with what is shared.
func (w *writer) end(t *Tx, f func(*Tx) error) error {
	if err := w.begin(t); err != nil {
		return err
	}
	if f != nil {
		if err := w.make(t, f); err != nil {
			return err
		}
	}
	if _, err := t.Exec("COMMIT"); err != nil {
		_ = w.rollBack(t)
		return err
	}
	flush := w.shared.flush
	w.shared.committed()
	if w.log == nil {
		return nil
	}
	n := w.log.committed.Add(1)
	if flush {
		w.flushing.Go(func() { _ = w.log.flush(n) }) // the disk remembers what it failed at
	} else if w.log.later == nil {
		w.log.later = time.AfterFunc(lazyTime, w.flushLazy)
	}
	return nil
}

// flushLazy brings to the disk what nothing brought there since it was committed.
func (w *writer) flushLazy() {
	release, err := w.take(context.Background())
	if err != nil {
		return
	}
	defer release()
	w.log.later = nil
	n := w.log.committed.Load()
	w.flushing.Go(func() { _ = w.log.flush(n) })
}

// await waits until what is shared now was committed, which its timer sees to.
func (w *writer) await() error {
	var ended <-chan struct{}
	err := w.owned(context.Background(), func(*Tx) error {
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
		return w.owned(context.Background(), w.commitShared)
	}
}

// read calls f with the open transaction, if there is one: readers do not see its writes. ok is false if there is none.
func (w *writer) read(ctx context.Context, f func(*Tx) error) (ok bool, err error) {
	if w == nil || !w.shared.open.Load() {
		return false, nil
	}
	release, err := w.take(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	if !w.shared.open.Load() {
		return false, nil
	}
	return true, f(&Tx{ctx: context.WithoutCancel(ctx), w: w})
}
