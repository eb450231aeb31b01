package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// walLog flushes SQLite's write-ahead log. SQLite appends to the log at every commit, but does not flush it. So a
// commit does not wait while an earlier commit is flushed, and one flush can serve many commits.
type walLog struct {
	committed atomic.Int64 // number of transactions in the log
	path      string
	disk      *disk // records failed flushes; after a failed flush, all flushes fail, because data may be lost

	// token works like a mutex that is locked during a flush. It is a channel, because the fake clock of synctest stops
	// while a goroutine waits for a mutex.
	token      chan struct{}
	flushed    int64 // number of transactions that are on the disk
	file       *os.File
	nameSynced bool     // whether the log's directory entry is on the disk
	index      *os.File // index file of the log; stays open while SQLite uses it (see openFiles)
	marker     *os.File // the locked marker file; nil before the first flush, or if another process has the lock

	lazyFlush *time.Timer // flushes commits that no caller waits for; only the holder of the writer's token uses it
}

// newWALLog returns the log of the database at path. The caller must close it.
func newWALLog(path string, d *disk) *walLog {
	return &walLog{path: path + "-wal", disk: d, token: make(chan struct{}, 1)}
}

// acquire waits for the token. The caller must call release to return the token.
func (l *walLog) acquire() (release func()) {
	l.token <- struct{}{}
	return func() { <-l.token }
}

// flush flushes the log. It does nothing if the first n transactions are already flushed.
func (l *walLog) flush(n int64) error {
	defer l.acquire()()
	if l.flushed >= n {
		return nil
	}
	if err := l.disk.writeError(); err != nil {
		return err
	}
	all := l.committed.Load()
	if err := l.syncFile(); err != nil {
		return l.disk.record(err)
	}
	l.flushed = all
	return nil
}

func (l *walLog) isFlushed(n int64) bool {
	defer l.acquire()()
	return l.flushed >= n
}

// setFlushed records that the first n transactions are on the disk.
func (l *walLog) setFlushed(n int64) {
	defer l.acquire()()
	l.flushed = max(l.flushed, n)
}

// syncFile flushes the log. The first call also flushes the log's directory entry, so that a power failure cannot
// remove the whole log. The caller must hold the token.
func (l *walLog) syncFile() error {
	if l.file == nil {
		f, err := os.Open(l.path)
		if err != nil {
			return err
		}
		l.file = f
	}
	if err := l.disk.sync(l.file); err != nil || l.nameSynced {
		return err
	}
	if err := l.syncName(); err != nil {
		return err
	}
	l.nameSynced = true
	l.mark()
	return nil
}

func (l *walLog) syncName() error {
	dir, err := os.Open(filepath.Dir(l.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = l.disk.sync(dir)
	// Some file systems do not support flushing directories.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// openSuffix is the suffix of the marker file, which contains the machine's boot ID. The marker file exists while the
// log contains changes that are not in the database.
const openSuffix = "-open"

// FileSuffixes returns the suffixes of all files of a database.
func FileSuffixes() []string { return []string{"", "-journal", "-wal", "-shm", openSuffix} }

func (l *walLog) markPath() string { return strings.TrimSuffix(l.path, "-wal") + openSuffix }

// mark creates the marker file and locks it, unless another process holds the lock. If the next start of ductor finds
// the marker but no log, the log was lost. If it finds neither, SQLite has copied the log into the database and deleted
// it.
func (l *walLog) mark() {
	if l.marker = openMark(l.markPath(), os.O_RDWR|os.O_CREATE, syscall.LOCK_EX); l.marker != nil {
		_ = l.marker.Truncate(0)
		_, _ = l.marker.WriteString(bootID())
	}
}

// unmark removes the marker file, unless another process holds its lock.
func (l *walLog) unmark() {
	if l == nil {
		return
	}
	if l.marker == nil {
		l.marker = openMark(l.markPath(), os.O_RDWR, syscall.LOCK_EX)
	}
	if l.marker != nil {
		_ = os.Remove(l.marker.Name())
		_ = l.marker.Close()
		l.marker = nil
	}
}

// openMark opens and locks the marker file. It returns nil if the file does not exist or another process holds the
// lock.
func openMark(path string, flags, how int) *os.File {
	f, err := os.OpenFile(path, flags, fileMode)
	if err != nil || syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// bootID returns the ID of the machine's current boot, or "" if the kernel does not provide it.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// SyncDir flushes the entries of a directory.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(fdatasync(f), f.Close())
}

func fdatasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// check returns errLogLost if the log lacks data that is listed in its index. The caller must hold the writer's token.
func (l *walLog) check() (err error) {
	defer l.acquire()()
	if l.index == nil {
		if l.index, err = os.Open(strings.TrimSuffix(l.path, "-wal") + "-shm"); err != nil {
			return err
		}
	}
	return checkLog(l.index, l.path)
}

// close closes the files that walLog itself has opened. Call it after SQLite has closed its files. Later flushes do
// nothing.
func (l *walLog) close() error {
	defer l.acquire()()
	var errs []error
	for _, f := range []*os.File{l.file, l.index} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	l.file, l.index = nil, nil
	return errors.Join(errs...)
}

// Size returns the size of the database with its log in bytes, and the number of transactions since the database was
// opened. The number is 0 if the file system does not support a log.
func (db *DB) Size() (bytes, commits int64) {
	if db.writer == nil {
		return 0, 0
	}
	for _, path := range []string{db.writer.path, db.writer.path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			bytes += info.Size()
		}
	}
	if db.writer.log != nil {
		commits = db.writer.log.committed.Load()
	}
	return bytes, commits
}
