package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	stderrKept = 8 << 10 // what a client is told
	stderrFull = 8 * stderrKept
)

// tail keeps the last of standard error, in memory and in a file. It has no lock.
type tail struct {
	path  string
	data  []byte
	total int64 // bytes ever
	file  *os.File
	size  int

	forgotten int64 // of total: not to be written any more
}

func newTail(dir string) *tail { return &tail{path: filepath.Join(dir, stderrFile)} }

// append takes p. An error is the file's: memory has p.
func (t *tail) append(p []byte) error {
	t.total += int64(len(p))
	t.data = append(t.data, p...)
	if over := len(t.data) - stderrKept; over > stderrKept || cap(t.data) > 4*chunkSize {
		t.data = append(make([]byte, 0, 2*stderrKept), t.data[max(over, 0):]...)
	}
	if t.file == nil || t.size+len(p) > stderrFull {
		return t.rewrite()
	}
	n, err := t.file.Write(p)
	t.size += n
	if err != nil {
		return fmt.Errorf("write standard error: %w", err)
	}
	return nil
}

// rewrite begins the file anew with what is kept.
func (t *tail) rewrite() error {
	t.close()
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write standard error: %w", err)
	}
	t.file = f
	n, err := f.Write(t.since(t.forgotten))
	t.size = n
	if err != nil {
		return fmt.Errorf("write standard error: %w", err)
	}
	return nil
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // nothing is buffered
		t.file = nil
	}
}

// last is at most the last n bytes; valid until the next append.
func (t *tail) last(n int) []byte { return t.data[max(len(t.data)-min(n, stderrKept), 0):] }

// since is what came after the first seen bytes, or the end of it.
func (t *tail) since(seen int64) []byte { return t.last(int(min(t.total-seen, stderrKept))) }
