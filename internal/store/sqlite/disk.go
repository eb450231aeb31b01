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

// disk is the state of the disk under the database, as the results of writes show it.
type disk struct {
	sync       func(*os.File) error // brings a file to it
	unreadable *unreadable          // of the DB

	mu     sync.Mutex
	state  orchestrator.DiskState
	epoch  context.Context // done when the state changes
	change context.CancelFunc
}

func newDisk(sync func(*os.File) error) *disk {
	d := &disk{sync: sync, unreadable: &unreadable{}, state: orchestrator.DiskWorks}
	d.epoch, d.change = context.WithCancel(context.Background())
	return d
}

func (d *disk) now() (orchestrator.DiskState, context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.epoch
}

// become changes the state. A disk that failed, or under a damaged database, stays so. What a full disk lost of the log looks damaged
// too: RetryDisk finds that.
func (d *disk) become(s orchestrator.DiskState) {
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

// refusal is why nothing can be written now.
func (d *disk) refusal() error {
	switch state, _ := d.now(); state {
	case orchestrator.DiskFull:
		return ErrDiskFull
	case orchestrator.DiskFailed:
		return ErrDisk
	case orchestrator.DiskDamaged:
		return ErrCorrupt
	}
	return nil
}

// record changes the state by what a write ended with, and returns that with its cause.
func (d *disk) record(err error) error {
	var s sqlite3.Error
	var no syscall.Errno
	if !errors.As(err, &s) && errors.As(err, &no) {
		if cause := causeOfErrno(no); cause != nil {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	err = explain(err)
	switch {
	case errors.Is(err, ErrDiskFull):
		d.become(orchestrator.DiskFull)
	case errors.Is(err, ErrDisk):
		d.become(orchestrator.DiskFailed)
	case errors.Is(err, ErrCorrupt):
		d.become(orchestrator.DiskDamaged)
	}
	return err
}

// causeOfErrno says what an error of the kernel says of the disk, nil for nothing.
func causeOfErrno(no syscall.Errno) error {
	switch no {
	case syscall.ENOSPC, syscall.EDQUOT:
		return ErrDiskFull
	case syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE:
		return ErrDisk
	}
	return nil
}

// Disk is the state of the disk, and a context that is done once that has changed.
func (db *DB) Disk() (orchestrator.DiskState, context.Context) { return db.writer.disk.now() }

// RetryDisk looks whether the disk takes something, and brings to it what was committed and may not be there.
// After that writes are taken again, unless the disk failed.
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
	w.disk.become(orchestrator.DiskWorks)
	return w.owned(ctx, w.commitShared) // its timer found the disk full
}

// repeatFlush brings the log to the disk if a flush of it failed, and if it still holds what was written to it.
func (w *writer) repeatFlush(ctx context.Context) error {
	release, err := w.take(ctx)
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
		w.disk.become(orchestrator.DiskFailed)
	}
	if err != nil {
		return fmt.Errorf("write the log again: %w", err)
	}
	w.log.setFlushed(committed)
	return nil
}

// DiskTrouble says what keeps a file in a directory from coming to the disk, nil for nothing, also where the directory
// is not there yet.
func DiskTrouble(dir string) error {
	d := newDisk(fdatasync)
	err := d.probe(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.record(err)
}

// probeSize is what has to fit on a disk that is not full: more than most transactions take.
const probeSize = 1 << 20

// probe writes a file in a directory, brings it to the disk and removes it.
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
