// Package inotify reports writes to any number of files, with a single inotify instance.
package inotify

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watcher reports writes to files. Safe for concurrent use.
type Watcher struct {
	file *os.File

	mu    sync.Mutex
	armed map[int32]map[any]func() // waiting functions, by watch descriptor and key
}

// New returns a Watcher. The caller must run Serve, and Close it.
func New() (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &Watcher{file: os.NewFile(uintptr(fd), "inotify"), armed: map[int32]map[any]func(){}}, nil
}

// Arm calls f once, after the next write to the file at path. Several functions can wait for the same path if their
// keys differ. Arm replaces an earlier function that has the same path and key. If the file system does not report
// writes, f is never called.
func (w *Watcher) Arm(path string, key any, f func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var armErr error
	err = raw.Control(func(fd uintptr) {
		var wd int
		if wd, armErr = unix.InotifyAddWatch(int(fd), path,
			unix.IN_MODIFY|unix.IN_ONESHOT|unix.IN_DONT_FOLLOW); armErr == nil {
			if w.armed[int32(wd)] == nil {
				w.armed[int32(wd)] = map[any]func(){}
			}
			w.armed[int32(wd)][key] = f
		}
	})
	return errors.Join(err, armErr)
}

// Serve calls armed functions until Close.
func (w *Watcher) Serve() {
	buf := make([]byte, 64*unix.SizeofInotifyEvent)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent + int(event.Len)
			w.fire(event.Wd, event.Mask&unix.IN_Q_OVERFLOW != 0)
		}
	}
}

// fire calls the functions that wait for a watch descriptor. If eventsLost is true, it calls all functions.
func (w *Watcher) fire(wd int32, eventsLost bool) {
	w.mu.Lock()
	var fired []func()
	take := func(wd int32) {
		fired = slices.AppendSeq(fired, maps.Values(w.armed[wd]))
		delete(w.armed, wd)
	}
	take(wd) // does nothing if the watch has ended
	if eventsLost {
		for wd := range w.armed {
			take(wd)
		}
	}
	w.mu.Unlock()
	for _, f := range fired {
		f()
	}
}

// Close ends Serve.
func (w *Watcher) Close() { _ = w.file.Close() }
