package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"ductor/orchestrator"
)

// disk is the state of the disk, derived from the results of writes.
type disk struct {
	sync       func(*os.File) error // flushes a file
	unreadable *unreadable          // shared with the DB

	mu     sync.Mutex
	state  orchestrator.DiskState
	epoch  context.Context // is cancelled each time the disk gets another state
	change context.CancelFunc
}

func newDisk(sync func(*os.File) error) *disk {
	d := &disk{sync: sync, unreadable: &unreadable{}, state: orchestrator.DiskWorks}
	d.epoch, d.change = context.WithCancel(context.Background())
	return d
}

func (d *disk) current() (orchestrator.DiskState, context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.epoch
}

// setState changes the state. DiskFailed and DiskDamaged are final. DiskFull does not become DiskDamaged. A full disk
// can make an intact log look damaged; RetryDisk checks the log later.
func (d *disk) setState(s orchestrator.DiskState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	final := d.state == orchestrator.DiskFailed || d.state == orchestrator.DiskDamaged
	if d.state == s || final || s == orchestrator.DiskDamaged && d.state != orchestrator.DiskWorks {
		return
	}
	d.change()
	d.state = s
	d.epoch, d.change = context.WithCancel(context.Background())
}

// writeError returns the error that all writes return in the current state. It returns nil if the disk works.
func (d *disk) writeError() error {
	switch state, _ := d.current(); state {
	case orchestrator.DiskFull:
		return ErrDiskFull
	case orchestrator.DiskFailed:
		return ErrDisk
	case orchestrator.DiskDamaged:
		return ErrCorrupt
	}
	return nil
}

// record updates the state after a write that returned err. It returns err, with its cause added.
func (d *disk) record(err error) error {
	var s sqlite3.Error
	var no syscall.Errno
	if !errors.As(err, &s) && errors.As(err, &no) {
		if cause := diskError(no); cause != nil {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	err = explain(err)
	switch {
	case errors.Is(err, ErrDiskFull):
		d.setState(orchestrator.DiskFull)
	case errors.Is(err, ErrDisk):
		d.setState(orchestrator.DiskFailed)
	case errors.Is(err, ErrCorrupt):
		d.setState(orchestrator.DiskDamaged)
	}
	return err
}

// diskError returns ErrDiskFull or ErrDisk for an error of the kernel, or nil if the error has another cause.
func diskError(no syscall.Errno) error {
	switch no {
	case syscall.ENOSPC, syscall.EDQUOT:
		return ErrDiskFull
	case syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE:
		return ErrDisk
	}
	return nil
}

// Disk returns the state of the disk, and a context that ends when the state changes.
func (db *DB) Disk() (orchestrator.DiskState, context.Context) { return db.writer.disk.current() }

// RetryDisk checks whether the disk accepts a write. If so, it writes committed data again if the disk may have lost
// it. The database then accepts writes again. In the states DiskFailed and DiskDamaged, RetryDisk does not make the
// database accept writes.
func (db *DB) RetryDisk(ctx context.Context) error {
	return explain(db.writer.retryDisk(ctx, db.dir))
}

func (w *writer) retryDisk(ctx context.Context, dir string) error {
	if err := w.disk.record(w.disk.probe(dir)); err != nil {
		return err
	}
	if w.log != nil {
		if err := w.repeatFlush(ctx); err != nil {
			return w.disk.record(err)
		}
	}
	w.disk.setState(orchestrator.DiskWorks)
	// Commit now, because the timer may have tried to commit while the disk was full.
	return w.withToken(ctx, w.commitShared)
}

// repeatFlush writes and flushes the log again, if a flush has failed. It first checks that the log is complete.
func (w *writer) repeatFlush(ctx context.Context) error {
	release, err := w.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	committed := w.log.committed.Load()
	if w.log.isFlushed(committed) {
		return nil
	}
	if err = w.log.check(); err == nil {
		err = rewriteLog(w.path, w.disk.sync)
	}
	if errors.Is(err, errLogLost) {
		w.disk.setState(orchestrator.DiskFailed)
	}
	if err != nil {
		return fmt.Errorf("write the log again: %w", err)
	}
	w.log.setFlushed(committed)
	return nil
}

// CheckDisk tests whether ductor can write to the disk, by writing a temporary file in dir. It returns nil if that
// works or dir does not exist.
func CheckDisk(dir string) error {
	d := newDisk(fdatasync)
	err := d.probe(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.record(err)
}

// probeSize is the size of the temporary file of a probe. It is larger than most transactions.
const probeSize = 1 << 20

// probe writes a file in dir, flushes it and removes it.
func (d *disk) probe(dir string) (err error) {
	path := filepath.Join(dir, "disk.probe")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("probe the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	if _, err := f.Write(make([]byte, probeSize)); err != nil {
		return fmt.Errorf("probe the disk: %w", err)
	}
	if err := d.sync(f); err != nil {
		return fmt.Errorf("probe the disk: %w", err)
	}
	return nil
}
