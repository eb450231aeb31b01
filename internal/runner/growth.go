package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	growthEvery = 100 * time.Millisecond // between two looks at journals that grow
	growthFast  = 10 * time.Millisecond  // if one grows by more than growthMuch between two
	growthMuch  = 8 << 20
	scarceEvery = time.Second // while the disk is full
)

// growthWatch looks after journals while they grow, and sleeps while none does. Safe for concurrent use.
type growthWatch struct {
	watcher *watcher // nil: then all journals are looked at all the time
	dir     string
	wakes   chan struct{}

	mu      sync.Mutex
	growing map[*agent]bool // true: it grows; false: it is armed
}

func newGrowthWatch(dir string) *growthWatch {
	w, err := newWatcher()
	if err != nil { // this user has no more instances
		w = nil
	}
	return &growthWatch{watcher: w, dir: dir, wakes: make(chan struct{}, 1), growing: map[*agent]bool{}}
}

// set has a journal looked at, and looks after it from now on.
func (g *growthWatch) set(a *agent) {
	g.mu.Lock()
	g.growing[a] = true
	g.mu.Unlock()
	poke(g.wakes)
}

func (g *growthWatch) drop(a *agent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.growing, a)
}

// serve looks at journals that grow until ctx is done.
func (g *growthWatch) serve(ctx context.Context) {
	var served sync.WaitGroup
	defer served.Wait()
	if g.watcher != nil {
		served.Go(g.watcher.serve)
		defer g.watcher.close()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wakes:
		}
		for pause := growthEvery; pause > 0; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = g.look()
		}
	}
}

// look looks at every journal that grows, and says when to look again; never if none grows any more.
func (g *growthWatch) look() (again time.Duration) {
	g.mu.Lock()
	var growing []*agent
	for a, grows := range g.growing {
		if grows {
			growing = append(growing, a)
		}
	}
	g.mu.Unlock()
	for _, a := range growing {
		next := a.grow()
		if next == 0 && g.rest(a) {
			continue
		}
		if next == 0 {
			next = growthEvery
		}
		if again == 0 || next < again {
			again = next
		}
	}
	return again
}

// rest arms the watch of a journal that grows no more. It says whether it is still at rest then.
func (g *growthWatch) rest(a *agent) bool {
	if g.watcher == nil {
		return a.status().Ended
	}
	g.mu.Lock()
	if _, known := g.growing[a]; known {
		g.growing[a] = false
	}
	g.mu.Unlock()
	for _, file := range []string{outFile, errFile} {
		if g.watcher.arm(filepath.Join(g.dir, a.ID, file), a, func() { g.set(a) }) != nil {
			return a.status().Ended
		}
	}
	if a.grow() == 0 {
		return true
	}
	g.set(a)
	return false
}

// growth is what a look at a journal found.
type growth struct {
	grew   int64 // bytes since the look before
	time   bool  // times has one more entry
	offset int64 // of that
	at     int64
}

// look finds what was written since the last look, and notes when: at the time of the file's last write.
func (j *journal) look() (g growth) {
	out, outErr := j.out.Stat()
	stderr, errErr := j.err.Stat()
	j.mu.Lock()
	defer j.mu.Unlock()
	if outErr == nil && out.Size() != j.size {
		g.grew = max(out.Size()-j.size, 1)
		at := out.ModTime()
		if n := len(j.times); out.Size() > j.size && (n == 0 || at.Sub(time.UnixMicro(j.times[n-1])) >= j.every) {
			g.time, g.offset, g.at = true, j.size, at.UnixMicro()
			j.times = append(j.times, g.offset, g.at)
			j.thin()
		}
		j.size = out.Size()
		j.allocated = max(j.allocated, j.size)
	}
	if errErr == nil && stderr.Size() != j.errSize {
		g.grew += max(stderr.Size()-j.errSize, 1)
		j.errSize = stderr.Size()
	}
	return g
}

// thin forgets every second time when there are too many, and has fewer noted from now on.
func (j *journal) thin() {
	if len(j.times) < 2*mostTimes {
		return
	}
	kept := j.times[:0]
	for i := 0; i+1 < len(j.times); i += 4 {
		kept = append(kept, j.times[i], j.times[i+1])
	}
	j.times, j.every = kept, 2*j.every
}

// look looks at the journal, and notes in the log what that found.
func (a *agent) look() growth {
	g := a.out.look()
	if g.time {
		a.note(lineTime, g.offset, g.at)
	}
	return g
}

// grow looks at the journal of an agent, keeps it in its bounds, and says when to look again; 0 if it does not grow.
func (a *agent) grow() time.Duration {
	g := a.look()
	if g.grew == 0 && !a.out.isScarce() {
		return 0
	}
	a.mu.Lock()
	owned, most, grace := a.owner != nil, a.Limits.MaxJournal, a.Limits.Grace
	a.mu.Unlock()
	full := a.out.keep(most, owned)
	a.noteFreed()
	if full {
		a.s.wg.Go(func() { _ = a.end(ByFullDisk, grace) })
		return scarceEvery
	}
	a.pause()
	switch {
	case g.grew > growthMuch:
		return growthFast
	case g.grew == 0:
		if a.status().Ended {
			return 0
		}
		return scarceEvery
	}
	return growthEvery
}

// watcher tells of files that grow, over one inotify instance. Safe for concurrent use.
type watcher struct {
	file *os.File

	mu    sync.Mutex
	armed map[int32]map[any]func() // by watch descriptor, and by who waits
}

func newWatcher() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &watcher{file: os.NewFile(uintptr(fd), "inotify"), armed: map[int32]map[any]func(){}}, nil
}

// arm calls f once when something is written to the file at path, in place of the function that who gave for it before.
// A file system that says nothing of that is no error.
func (w *watcher) arm(path string, who any, f func()) error {
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
			w.armed[int32(wd)][who] = f
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

// fire calls the functions of a watch, or of all when events were lost.
func (w *watcher) fire(wd int32, all bool) {
	w.mu.Lock()
	var fired []func()
	take := func(wd int32) {
		fired = slices.AppendSeq(fired, maps.Values(w.armed[wd]))
		delete(w.armed, wd)
	}
	take(wd) // there is none when its watch went with it, and this says so
	if all {
		for wd := range w.armed {
			take(wd)
		}
	}
	w.mu.Unlock()
	for _, f := range fired {
		f()
	}
}

func (w *watcher) close() { _ = w.file.Close() }
