package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ductor/orchestrator"
)

func wantDisk(t *testing.T, db *DB, want orchestrator.DiskState) context.Context {
	t.Helper()
	state, changed := db.Disk()
	same(t, "the disk", state, want)
	return changed
}

// TestADiskThatIsFullAtTheFlush tests that the committed transaction is flushed later and that other writes fail until
// then.
func TestADiskThatIsFullAtTheFlush(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "items.db")
	var disk syncer
	db := openAt(t, path, disk.options())
	works := wantDisk(t, db, orchestrator.DiskWorks)
	disk.fail(syscall.ENOSPC)
	must(t, put(ctx, db, "committed", nil))
	<-works.Done()
	full := wantDisk(t, db, orchestrator.DiskFull)
	for what, err := range map[string]error{
		"a write": put(ctx, db, "refused", nil), "a flush": db.Flush(),
	} {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s returned %v", what, err)
		}
	}
	disk.work()
	must(t, db.RetryDisk(ctx))
	<-full.Done()
	wantDisk(t, db, orchestrator.DiskWorks)
	must(t, db.Flush())
	must(t, put(ctx, db, "later", nil))
	same(t, "items", names(t, db), []string{"committed", "later"})
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("after the log was folded nothing went into it: %v", err)
	}
}

// TestADiskThatIsFullWhileATransactionIsShared tests that the shared writes survive and do not block the retry.
func TestADiskThatIsFullWhileATransactionIsShared(t *testing.T) {
	ctx := t.Context()
	var disk syncer
	db := openAt(t, filepath.Join(t.TempDir(), "items.db"), disk.options())
	full := wantDisk(t, db, orchestrator.DiskWorks)
	flushing, shared := make(chan struct{}), make(chan struct{})
	disk.do = func(*os.File) error {
		close(flushing)
		<-shared
		return syscall.ENOSPC
	}
	put1 := make(chan error, 1)
	go func() { put1 <- put(ctx, db, "committed", nil) }()
	<-flushing
	must(t, db.WriteShared(ctx, item("shared")))
	close(shared)
	must(t, <-put1)
	<-full.Done()
	disk.work()
	must(t, db.RetryDisk(ctx))
	wantDisk(t, db, orchestrator.DiskWorks)
	must(t, db.Flush())
	same(t, "an open transaction", db.writer.shared.open.Load(), false)
	same(t, "items", names(t, db), []string{"committed", "shared"})
}

// TestCloseKeepsALogWithLostData tests that Close does not let SQLite copy a log with lost data into the database. The
// next start reads the intact part.
func TestCloseKeepsALogWithLostData(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "items.db")
	var disk syncer
	db, err := Open(ctx, path, items, disk.options())
	must(t, err)
	must(t, put(ctx, db, "flushed", bytes.Repeat([]byte("f"), 1<<16)))
	must(t, db.writer.log.check())
	disk.fail(syscall.ENOSPC)
	must(t, put(ctx, db, "lost", bytes.Repeat([]byte("l"), 1<<16)))
	must(t, db.writer.log.check())
	wal, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	must(t, err)
	defer wal.Close()
	info, err := wal.Stat()
	must(t, err)
	_, err = wal.WriteAt(make([]byte, 512), info.Size()-8192)
	must(t, err)
	disk.work()
	if err := db.RetryDisk(ctx); !errors.Is(err, errLogLost) {
		t.Errorf("RetryDisk returned %v", err)
	}
	wantDisk(t, db, orchestrator.DiskFailed)
	if err := db.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("Close returned %v", err)
	}
	copied := filepath.Join(t.TempDir(), "items.db") // like after the end of the process: no connection uses the copy
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		must(t, err)
		must(t, os.WriteFile(copied+end, data, 0o600))
	}
	same(t, "items at the next start", names(t, openAt(t, copied, Options{})), []string{"flushed"})
	_ = db.release() // Close left them to the end of the process
}

// TestFullDisk fills a real disk. A write that does not fit has no effect, and everything works again once the
// disk has space.
func TestFullDisk(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("no tmpfs can be mounted: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	db := openAt(t, filepath.Join(dir, "items.db"), Options{})
	must(t, put(ctx, db, "small", nil))
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	large := make([]byte, 1<<20)
	if err := put(ctx, db, "large", large); !errors.Is(err, ErrDiskFull) {
		t.Errorf("a write returned %v", err)
	}
	wantDisk(t, db, orchestrator.DiskFull)
	for what, err := range map[string]error{"a retry": db.RetryDisk(ctx), "a probe": CheckDisk(dir)} {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s returned %v", what, err)
		}
	}
	must(t, os.Remove(ballast))
	must(t, db.RetryDisk(ctx))
	must(t, put(ctx, db, "large", large))
	must(t, db.Flush())
	same(t, "items", names(t, db), []string{"large", "small"})
}

// Data of a failed flush may be lost although the kernel reports no error for the next flush.
func TestNoWriteAfterAFailedFlush(t *testing.T) {
	ctx := t.Context()
	var disk syncer
	db, err := Open(ctx, filepath.Join(t.TempDir(), "items.db"), items, disk.options())
	must(t, err)
	disk.fail(syscall.EIO)
	for _, name := range []string{"a", "b"} {
		if err := put(ctx, db, name, nil); !errors.Is(err, ErrDisk) {
			t.Errorf("the disk failed, but a write returned %v", err)
		}
		disk.work()
	}
	if err := db.RetryDisk(ctx); !errors.Is(err, ErrDisk) {
		t.Errorf("RetryDisk returned %v", err)
	}
	if err := db.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("Close returned %v", err)
	}
	_ = db.release() // Close left them to the end of the process
}

func TestManyWritesShareAFlush(t *testing.T) {
	var disk syncer
	db := openAt(t, filepath.Join(t.TempDir(), "items.db"), disk.options())
	var running, together sync.WaitGroup
	// The first flush lasts until the others have committed.
	const writers = 40
	together.Add(writers)
	first, n := true, 0
	disk.do = func(f *os.File) error {
		if n++; first {
			first = false
			together.Wait()
		}
		return fdatasync(f)
	}
	for i := range writers {
		running.Go(func() {
			commits, err := db.writer.commit(t.Context(), func(x *Tx) error {
				_, err := x.Exec(insert, i, []byte("c"))
				return err
			})
			together.Done()
			if err == nil {
				err = db.writer.log.flush(commits)
			}
			if err != nil || !db.writer.log.isFlushed(commits) {
				t.Errorf("commit %d is not flushed: %v", commits, err)
			}
		})
	}
	running.Wait()
	if n > 2 {
		t.Errorf("%d flushes for %d commits of one moment", n, writers)
	}
}
