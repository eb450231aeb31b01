package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// walLog brings the write-ahead log to the disk. SQLite appends to it at every commit and leaves the rest
// to us: a commit need not keep the next one waiting, and one flush serves all who wait for it.
type walLog struct {
	committed atomic.Int64 // transactions in the log
	sync      func() error

	mu      sync.Mutex
	flushed int64 // of those in the log, how many are on the disk
	broken  error // of a flush: what it was to bring to the disk may be lost, and no later one brings it back
	file    *os.File
}

// newWALLog makes the log of the database at path. Close it.
func newWALLog(path string) *walLog {
	l := &walLog{}
	l.sync = func() error { return l.syncFile(path + "-wal") }
	return l
}

// flush returns when the first n transactions are on the disk.
func (l *walLog) flush(n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flushed >= n || l.broken != nil {
		return l.broken // nil when whoever went before us took ours along
	}
	all := l.committed.Load()
	if err := l.sync(); err != nil {
		l.broken = fmt.Errorf("%w (%w)", ErrDisk, err)
		return l.broken
	}
	l.flushed = all
	return nil
}

// syncFile is called with mu held.
func (l *walLog) syncFile(path string) error {
	if l.file == nil {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		l.file = f
	}
	for {
		if err := syscall.Fdatasync(int(l.file.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// close flushes what is left. Whoever waits is told by then; later flushes do nothing.
func (l *walLog) close() error {
	err := l.flush(l.committed.Load())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no log was ever begun
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return err
	}
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return err
}
