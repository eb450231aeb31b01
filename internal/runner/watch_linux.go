package runner

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher tells of files that grow, over one inotify instance. Safe for concurrent use.
type watcher struct {
	file *os.File

	mu    sync.Mutex
	armed map[int32]func() // by watch descriptor
}

func newWatcher() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &watcher{file: os.NewFile(uintptr(fd), "inotify"), armed: map[int32]func(){}}, nil
}

// arm calls f once when something is written to the file at path. A file system that says nothing of that is no error.
func (w *watcher) arm(path string, f func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var armErr error
	err = raw.Control(func(fd uintptr) {
		var wd int
		if wd, armErr = unix.InotifyAddWatch(int(fd), path, unix.IN_MODIFY|unix.IN_ONESHOT|unix.IN_DONT_FOLLOW); armErr == nil {
			w.armed[int32(wd)] = f
		}
	})
	return errors.Join(err, armErr)
}

// serve calls the functions until close.
func (w *watcher) serve() {
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

// fire calls the function of a watch, or of all when events were lost.
func (w *watcher) fire(wd int32, all bool) {
	w.mu.Lock()
	var fired []func()
	if all {
		for _, f := range w.armed {
			fired = append(fired, f)
		}
	} else if f := w.armed[wd]; f != nil { // else its watch went with it, and this says so
		fired = []func(){f}
		delete(w.armed, wd)
	}
	w.mu.Unlock()
	for _, f := range fired {
		f()
	}
}

func (w *watcher) close() { _ = w.file.Close() }
