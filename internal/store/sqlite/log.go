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

// walLog brings the write-ahead log to the disk. SQLite appends to it at every commit and leaves the rest
// to us: a commit need not keep the next one waiting, and one flush serves all that wait for it.
type walLog struct {
	committed atomic.Int64 // transactions in the log
	path      string
	disk      *disk // what a failed flush was to bring there may be lost, and no later flush brings it back

	token   chan struct{} // of who flushes; no mutex, so that a test's clock goes on while others wait for a slow disk
	flushed int64         // of those in the log, how many are on the disk
	file    *os.File
	named   bool     // the name of the log is on the disk
	index   *os.File // nil until check opens it; it stays open as long as SQLite uses it, see held
	marker  *os.File // locked; nil before the first flush, or if another process has it

	later *time.Timer // flushes what nothing else flushed; of who has the token of the writer
}

// newWALLog makes the log of the database at path. Close it.
func newWALLog(path string, d *disk) *walLog {
	return &walLog{path: path + "-wal", disk: d, token: make(chan struct{}, 1)}
}

// take waits for the token. release gives it back.
func (l *walLog) take() (release func()) {
	l.token <- struct{}{}
	return func() { <-l.token }
}

// flush returns when the first n transactions are on the disk.
func (l *walLog) flush(n int64) error {
	defer l.take()()
	if l.flushed >= n {
		return nil // the flush before this one brought them along
	}
	if err := l.disk.refusal(); err != nil {
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
	defer l.take()()
	return l.flushed >= n
}

// setFlushed says that the first n transactions came to the disk in another way.
func (l *walLog) setFlushed(n int64) {
	defer l.take()()
	l.flushed = max(l.flushed, n)
}

// syncFile brings the log to the disk. The first call brings its name there too: until then a power failure may leave no log at all.
// The caller holds the token.
func (l *walLog) syncFile() error {
	if l.file == nil {
		f, err := os.Open(l.path)
		if err != nil {
			return err
		}
		l.file = f
	}
	if err := l.disk.sync(l.file); err != nil || l.named {
		return err
	}
	if err := l.syncName(); err != nil {
		return err
	}
	l.named = true
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
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // a file system that does not sync directories
		return nil
	}
	return err
}

// openSuffix ends the name of a file that is there while the log holds what is not in the database. In it is which start of
// the machine that was.
const openSuffix = "-open"

// Endings are what the names of the files of a database have behind its own.
func Endings() []string { return []string{"", "-journal", "-wal", "-shm", openSuffix} }

func (l *walLog) markPath() string { return strings.TrimSuffix(l.path, "-wal") + openSuffix }

// mark notes that the log is needed. Without the mark a start takes a missing log for one that was folded. Of several processes
// one holds it.
func (l *walLog) mark() {
	if l.marker = lockMark(l.markPath(), os.O_RDWR|os.O_CREATE, syscall.LOCK_EX); l.marker != nil {
		_ = l.marker.Truncate(0)
		_, _ = l.marker.WriteString(bootID())
	}
}

// unmark removes the mark of this process, or of one that is gone.
func (l *walLog) unmark() {
	if l == nil {
		return
	}
	if l.marker == nil {
		l.marker = lockMark(l.markPath(), os.O_RDWR, syscall.LOCK_EX)
	}
	if l.marker != nil {
		_ = os.Remove(l.marker.Name())
		_ = l.marker.Close()
		l.marker = nil
	}
}

// lockMark opens a mark that no process holds; nil if one does, or there is none.
func lockMark(path string, flags, how int) *os.File {
	f, err := os.OpenFile(path, flags, fileMode)
	if err != nil || syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// bootID names this start of the machine; empty where the kernel does not say.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// SyncDir brings the names in a directory to the disk.
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

// check returns errLogLost if the log does not hold what its index says it does. The caller holds the writer's token.
func (l *walLog) check() (err error) {
	defer l.take()()
	if l.index == nil {
		if l.index, err = os.Open(strings.TrimSuffix(l.path, "-wal") + "-shm"); err != nil {
			return err
		}
	}
	return checkLog(l.index, l.path)
}

// close closes the files after SQLite closed them. Later flushes do nothing.
func (l *walLog) close() error {
	defer l.take()()
	var errs []error
	for _, f := range []*os.File{l.file, l.index} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	l.file, l.index = nil, nil
	return errors.Join(errs...)
}

// Size is how many bytes the database and its log take, and how many transactions were committed since it was opened; 0 where the
// file system cannot have a log.
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
