package store

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// flushes counts the flushes of a database's log.
func flushes(db *DB) *atomic.Int64 {
	var n atomic.Int64
	sync := db.write.log.sync
	db.write.log.sync = func() error { n.Add(1); return sync() }
	return &n
}

func TestADurableWriteIsFlushedWithAllBeforeIt(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	n := flushes(db)
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("u")}}))
	if n.Load() != 0 {
		t.Error("updates wait for the disk before they are dispatched")
	}
	must(t, db.Flush(ctx))
	must(t, db.Flush(ctx)) // nothing is left to do
	if n.Load() != 1 || db.write.log.flushed != db.write.log.committed.Load() {
		t.Fatalf("%d flushes, %d of %d on the disk", n.Load(), db.write.log.flushed, db.write.log.committed.Load())
	}
	// A queued turn whose update is pending again after a power failure is queued again: it need not wait.
	turn := newTurn("t1", 1)
	must(t, db.EnqueueTurn(ctx, turn))
	if n.Load() != 1 {
		t.Error("to queue a turn waits for the disk")
	}
	newSession(t, db, "s1", chatA, noon)
	turn.Session, turn.Started = "s1", noon
	before := n.Load()
	if ok, err := db.StartTurn(ctx, turn); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if n.Load() != before+1 || db.write.log.flushed != db.write.log.committed.Load() {
		t.Error("a turn runs that a power failure would forget")
	}
}

func TestManyWritesShareAFlush(t *testing.T) {
	db := newDB(t)
	var running, together sync.WaitGroup
	// The first flush takes as long as the others need to commit.
	const writers = 40
	together.Add(writers)
	sync, first := db.write.log.sync, true
	var n int
	db.write.log.sync = func() error {
		if n++; first {
			first = false
			together.Wait()
		}
		return sync()
	}
	for i := range writers {
		running.Go(func() {
			commits, err := db.write.commit(t.Context(), func(x *tx) error {
				_, err := x.exec(`INSERT INTO cards (turn, content) VALUES (?, ?)`, i, []byte("c"))
				return err
			})
			together.Done()
			if err == nil {
				err = db.write.log.flush(commits)
			}
			if err != nil || db.write.log.flushedUpTo() < commits {
				t.Errorf("commit %d: flushed %d, %v", commits, db.write.log.flushedUpTo(), err)
			}
		})
	}
	running.Wait()
	if n > 2 {
		t.Errorf("%d flushes for %d commits of one moment", n, writers)
	}
}

func (l *walLog) flushedUpTo() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushed
}

// What a failed flush was to bring to the disk may be gone, though the kernel says nothing of it next time.
func TestADiskThatFailedIsNotTrustedAgain(t *testing.T) {
	ctx := t.Context()
	db, err := Open(ctx, filepath.Join(t.TempDir(), "ductor.db"), Options{})
	must(t, err)
	works := db.write.log.sync
	db.write.log.sync = func() error { return syscall.EIO }
	for range 2 {
		if err := db.SaveCard(ctx, "t", []byte("c")); !errors.Is(err, ErrDisk) {
			t.Errorf("the disk failed, and SaveCard says %v", err)
		}
		db.write.log.sync = works
	}
	if err := db.RetryDisk(ctx); !errors.Is(err, ErrDisk) {
		t.Errorf("RetryDisk says %v", err)
	}
	if err := db.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("Close says %v", err)
	}
	_ = errors.Join(db.read.close(), db.write.close()) // Close left them to the end of the process
}

func TestCloseFlushesWhatNobodyWaitedFor(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	n := flushes(db)
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("u")}}))
	must(t, db.EnqueueTurn(ctx, newTurn(cli.TurnID("t1"), 1)))
	must(t, db.Close())
	if n.Load() != 1 {
		t.Errorf("%d flushes", n.Load())
	}
}
