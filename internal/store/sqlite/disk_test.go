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

func diskIs(t *testing.T, db *DB, want orchestrator.DiskState) context.Context {
	t.Helper()
	state, changed := db.Disk()
	same(t, "the disk", state, want)
	return changed
}

// TestADiskThatIsFullAtTheFlush: what was committed stands and comes to the disk later; nothing else is written.
func TestADiskThatIsFullAtTheFlush(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "items.db")
	var disk syncer
	db := openAt(t, path, disk.options())
	works := diskIs(t, db, orchestrator.DiskWorks)
	disk.fail(syscall.ENOSPC)
	must(t, put(ctx, db, "committed", nil))
	<-works.Done()
	full := diskIs(t, db, orchestrator.DiskFull)
	for what, err := range map[string]error{
		"a write": put(ctx, db, "refused", nil), "a flush": db.Flush(),
	} {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s says %v", what, err)
		}
	}
	disk.work()
	must(t, db.RetryDisk(ctx))
	<-full.Done()
	diskIs(t, db, orchestrator.DiskWorks)
	must(t, db.Flush())
	must(t, put(ctx, db, "later", nil))
	same(t, "items", names(t, db), []string{"committed", "later"})
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("after the log was folded nothing went into it: %v", err)
	}
}

// TestADiskThatIsFullWhileATransactionIsShared: what is shared is neither lost nor in the way of the retry.
func TestADiskThatIsFullWhileATransactionIsShared(t *testing.T) {
	ctx := t.Context()
	var disk syncer
	db := openAt(t, filepath.Join(t.TempDir(), "items.db"), disk.options())
	full := diskIs(t, db, orchestrator.DiskWorks)
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
	diskIs(t, db, orchestrator.DiskWorks)
	must(t, db.Flush())
	same(t, "an open transaction", db.writer.shared.open.Load(), false)
	same(t, "items", names(t, db), []string{"committed", "shared"})
}

// TestALogThatTheDiskLost: SQLite would copy it into the database. It is left to the next start, which reads what is
// good of it.
func TestALogThatTheDiskLost(t *testing.T) {
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
		t.Errorf("RetryDisk says %v", err)
	}
	diskIs(t, db, orchestrator.DiskFailed)
	if err := db.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("Close says %v", err)
	}
	copied := filepath.Join(t.TempDir(), "items.db") // as after the end of the process: no connection holds it
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		must(t, err)
		must(t, os.WriteFile(copied+end, data, 0o600))
	}
	same(t, "items at the next start", names(t, openAt(t, copied, Options{})), []string{"flushed"})
	_ = db.release() // Close left them to the end of the process
}

// TestADiskWithoutRoom uses a disk that is full: what does not fit is refused whole, and everything works again when
// there is room.
func TestADiskWithoutRoom(t *testing.T) {
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
		t.Errorf("a write says %v", err)
	}
	diskIs(t, db, orchestrator.DiskFull)
	for what, err := range map[string]error{"a retry": db.RetryDisk(ctx), "a probe": CheckDisk(dir)} {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s says %v", what, err)
		}
	}
	must(t, os.Remove(ballast))
	must(t, db.RetryDisk(ctx))
	must(t, put(ctx, db, "large", large))
	must(t, db.Flush())
	same(t, "items", names(t, db), []string{"large", "small"})
}

// What a failed flush was to bring to the disk may be gone, though the kernel says nothing of it next time.
func TestADiskThatFailedIsNotTrustedAgain(t *testing.T) {
	ctx := t.Context()
	var disk syncer
	db, err := Open(ctx, filepath.Join(t.TempDir(), "items.db"), items, disk.options())
	must(t, err)
	disk.fail(syscall.EIO)
	for _, name := range []string{"a", "b"} {
		if err := put(ctx, db, name, nil); !errors.Is(err, ErrDisk) {
			t.Errorf("the disk failed, and a write says %v", err)
		}
		disk.work()
	}
	if err := db.RetryDisk(ctx); !errors.Is(err, ErrDisk) {
		t.Errorf("RetryDisk says %v", err)
	}
	if err := db.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("Close says %v", err)
	}
	_ = db.release() // Close left them to the end of the process
}

func TestManyWritesShareAFlush(t *testing.T) {
	var disk syncer
	db := openAt(t, filepath.Join(t.TempDir(), "items.db"), disk.options())
	var running, together sync.WaitGroup
	// The first flush takes as long as the others need to commit.
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
