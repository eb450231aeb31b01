package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
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
	path := filepath.Join(t.TempDir(), "ductor.db")
	db := openAt(t, path)
	works := diskIs(t, db, orchestrator.DiskWorks)
	sync := db.write.log.sync
	db.write.log.sync = func() error { return syscall.ENOSPC }
	must(t, db.SaveCard(ctx, "committed", []byte("c")))
	<-works.Done()
	full := diskIs(t, db, orchestrator.DiskFull)
	for what, err := range map[string]error{
		"a write": db.SaveCard(ctx, "refused", []byte("c")), "a flush": db.Flush(ctx),
	} {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s says %v", what, err)
		}
	}
	db.write.log.sync = sync
	must(t, db.RetryDisk(ctx))
	<-full.Done()
	diskIs(t, db, orchestrator.DiskWorks)
	must(t, db.Flush(ctx))
	must(t, db.SaveCard(ctx, "after", []byte("c")))
	same(t, "cards", count(t, db, `SELECT count(*) FROM cards`), 2)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("after the log was folded nothing went into it: %v", err)
	}
}

// TestALogThatTheDiskLost: SQLite would copy it into the database. It is left to the next start, which reads what is good
// of it.
func TestALogThatTheDiskLost(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "ductor.db")
	db, err := Open(ctx, path, Options{})
	must(t, err)
	must(t, db.SaveCard(ctx, "flushed", bytes.Repeat([]byte("f"), 1<<16)))
	must(t, checkLog(path))
	db.write.log.sync = func() error { return syscall.ENOSPC }
	must(t, db.SaveCard(ctx, "lost", bytes.Repeat([]byte("l"), 1<<16)))
	must(t, checkLog(path))
	wal, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	must(t, err)
	defer wal.Close()
	info, err := wal.Stat()
	must(t, err)
	_, err = wal.WriteAt(make([]byte, 512), info.Size()-8192)
	must(t, err)
	if err := db.RetryDisk(ctx); !errors.Is(err, errLogLost) {
		t.Errorf("RetryDisk says %v", err)
	}
	diskIs(t, db, orchestrator.DiskFailed)
	if err := db.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("Close says %v", err)
	}
	copied := filepath.Join(t.TempDir(), "ductor.db") // as the process is gone: nobody holds it
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		must(t, err)
		must(t, os.WriteFile(copied+end, data, 0o600))
	}
	same(t, "cards at the next start", count(t, openAt(t, copied), `SELECT count(*) FROM cards WHERE turn = 'flushed'`), 1)
	_ = errors.Join(db.read.close(), db.write.close()) // Close left them to the end of the process
}

// TestADiskWithoutRoom is one: what does not fit is refused whole, and everything goes on when there is room.
func TestADiskWithoutRoom(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("no tmpfs can be mounted: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	db := openAt(t, filepath.Join(dir, "ductor.db"))
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("x")}}))
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if _, err := db.AppendUpdates(ctx, []orchestrator.Update{{ID: 2, Raw: make([]byte, 1<<20)}}); !errors.Is(err, ErrDiskFull) {
		t.Errorf("a write says %v", err)
	}
	diskIs(t, db, orchestrator.DiskFull)
	for what, err := range map[string]error{"a retry": db.RetryDisk(ctx), "a probe": DiskTrouble(dir)} {
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s says %v", what, err)
		}
	}
	must(t, os.Remove(ballast))
	must(t, db.RetryDisk(ctx))
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 2, Raw: make([]byte, 1<<20)}}))
	must(t, db.Flush(ctx))
	same(t, "updates", count(t, db, `SELECT count(*) FROM inbox`), 2)
}
