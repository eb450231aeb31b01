package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/runner/inotify"
)

const (
	// inotify watches a file, but the file system may not report a write. So the reader itself also checks the file,
	// for the first time after checkEarly. The interval between checks grows while no output arrives. After
	// lastCheckAfter without output, the checks stop.
	checkEarly     = 500 * time.Millisecond
	lastCheckAfter = 15 * time.Minute
	// pollInterval is the interval of checks if the file system does not report writes at all.
	pollInterval = 25 * time.Millisecond
	// maxMissed is the number of unreported writes in a row after which the reader assumes that the file system does
	// not report writes at all.
	maxMissed = 2
)

// reader reads an agent's output from its file as the file grows. A client uses it for a file on its own machine. The
// runner uses it to send output to clients on other machines. Only one goroutine may read.
type reader struct {
	file  *os.File
	path  string
	files *writeWatch
	freed int64 // output before this offset was deleted

	detached <-chan struct{} // closed when the reader detaches
	ended    <-chan struct{} // closed when the end of the output is known
	end      func() int64    // returns the offset at which the output ends
	wakes    chan struct{}   // receives a value after a write

	active atomic.Int64 // time of the last input or output, in nanoseconds since 1970
}

// noteActivity records input or output. The reader then checks the file frequently again.
func (r *reader) noteActivity() { r.active.Store(time.Now().UnixNano()) }

// read waits until output is available at an offset, and reads it. It returns *LostError if output is missing, io.EOF
// at the end of the output, and ErrDetached after the reader detached.
func (r *reader) read(p []byte, at int64) (int, error) {
	for looked := false; ; {
		n, err := r.readAvailable(p, at)
		if n > 0 || err != nil {
			if looked {
				r.files.recordMissed(r.wakes)
			}
			return n, err
		}
		if looked, err = r.wait(at); err != nil {
			return 0, err
		}
	}
}

// readAvailable reads output without waiting. It returns 0, nil if none is available yet.
func (r *reader) readAvailable(p []byte, at int64) (int, error) {
	ended := false
	select {
	case <-r.detached:
		return 0, ErrDetached
	case <-r.ended:
		ended = true
		p = p[:max(0, min(int64(len(p)), r.end()-at))]
	default:
		size := fileSize(r.file, at)
		if size < at { // a process of the agent truncated the file
			return 0, &LostError{From: size, To: at, Damaged: true}
		}
		p = p[:min(int64(len(p)), size-at)] // with a larger p, ReadAt would make a second system call
	}
	n, err := r.file.ReadAt(p, at)
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, ErrDetached
	case n > 0:
		r.noteActivity()
		if kept := r.firstKept(p[:n], at); kept > at {
			return 0, &LostError{From: at, To: kept}
		}
		return n, nil
	case err != nil && err != io.EOF:
		return 0, fmt.Errorf("read the output: %w", err)
	case ended:
		return 0, io.EOF
	}
	return 0, nil
}

// fileSize returns the current size of a file, or fallback if the size is unknown.
func fileSize(f *os.File, fallback int64) int64 {
	info, err := f.Stat()
	if err != nil {
		return fallback
	}
	return info.Size()
}

// firstKept skips deleted output. If the output at the given offset was not deleted, it returns this offset. Otherwise
// it returns the next offset at which the output was not deleted. p contains the data that was read at the given
// offset.
func (r *reader) firstKept(p []byte, at int64) int64 {
	if at < r.freed {
		return r.freed
	}
	if p[0] != 0 {
		return at
	}
	data, err := unix.Seek(int(r.file.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // the rest of the file is a hole, so its output was deleted
		return fileSize(r.file, at)
	}
	if err != nil || data <= at { // at is not in a hole; the agent itself printed the zero byte
		return at
	}
	// The deletion of output frees only whole blocks, which become a hole. The block after the hole may be deleted in
	// part. This part now contains zero bytes.
	block := make([]byte, 4<<10)
	n, _ := r.file.ReadAt(block, data)
	return data + int64(n-len(bytes.TrimLeft(block[:n], "\x00")))
}

// wait waits until a write is reported, or until it is time to check the file without a report. In the second case, it
// returns true.
func (r *reader) wait(at int64) (looked bool, err error) {
	every := r.files.arm(r)
	if fileSize(r.file, at) != at { // the write happened before the call of arm
		return false, nil
	}
	var look <-chan time.Time
	if quiet := time.Since(time.Unix(0, r.active.Load())); quiet < lastCheckAfter {
		look = time.After(max(every, quiet/16))
	}
	select {
	case <-r.wakes:
	case <-r.ended:
	case <-look:
		looked = true
	case <-r.detached:
		err = ErrDetached
	}
	return looked, err
}

// writeWatch watches files for writes. It detects if the file system does not report writes. Safe for concurrent use.
type writeWatch struct {
	watcher *inotify.Watcher // nil if inotify is not available

	mu     sync.Mutex
	missed int // number of consecutive writes that were not reported
}

// arm makes the next write to the file wake the reader. The file system may not report this write. So the reader must
// also check the file itself, at the returned interval.
func (a *writeWatch) arm(r *reader) (every time.Duration) {
	if a.watcher == nil || a.watcher.Arm(r.path, r.wakes, func() { a.reported(r.wakes) }) != nil {
		return pollInterval
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.missed >= maxMissed {
		return pollInterval
	}
	return checkEarly
}

func (a *writeWatch) reported(wakes chan<- struct{}) {
	a.mu.Lock()
	a.missed = 0
	a.mu.Unlock()
	signalOnce(wakes)
}

// recordMissed records that the reader found a write that inotify has not reported. If the report has arrived in the
// meantime, recordMissed does nothing.
func (a *writeWatch) recordMissed(wakes <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(wakes) == 0 {
		a.missed++
	}
}

// pull reads output for a client that cannot open the journal. It waits until output is available.
func (a *agent) pull(c *conn, q request) (r reply, err error) {
	if a.life.isOwnedBy(c) { // by requesting this offset, the client confirms all output before it
		a.out.SetRead(q.Offset)
		a.updateFlow()
	}
	file, _ := a.out.Files()
	from := reader{
		file: file, path: filepath.Join(a.s.dir.of(a.record.ID), outFile), files: &a.s.files, freed: a.out.Freed(),
		detached: c.gone, ended: a.life.over, end: a.life.outputEnd, wakes: make(chan struct{}, 1),
	}
	from.noteActivity()
	buf := make([]byte, min(max(q.Length, 1), maxPull))
	n, err := from.read(buf, q.Offset)
	switch {
	case errors.Is(err, ErrDetached): // the run was collected, or the client has left
		return r, syscall.ENOENT
	case err == io.EOF:
		return a.endReport(), nil
	case errors.As(err, &r.Lost):
		return r, nil
	}
	r.body = buf[:n]
	return r, err
}
