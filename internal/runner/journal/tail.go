package journal

import (
	"bytes"
	"os"
)

const (
	// StderrTail is the maximum length of the text that Journal.Stderr returns.
	StderrTail = 8 << 10
	// If the stored standard error exceeds MaxStderr bytes, EnforceLimit frees all but the last keepStderr bytes.
	MaxStderr  = 1 << 20
	keepStderr = 64 << 10
)

// tail is a file that stores only the end of a long text. The lock of the Journal guards the fields size and freed.
type tail struct {
	file  *os.File
	size  int64 // size of the file when the journal was last checked
	freed int64 // text before this offset was deleted
}

// grow records the current size of the file. It returns the number of new bytes. If the file became shorter, grow
// returns 1, so that the caller notices a change.
func (t *tail) grow(size int64) (bytes int64) {
	if size != t.size {
		bytes = max(size-t.size, 1)
	}
	t.size = size
	return bytes
}

func (t *tail) enforceLimit() {
	if t.size-t.freed > MaxStderr {
		t.freed = punch(t.file, t.freed, t.size-keepStderr)
	}
}

func (t *tail) freeAll() {
	if info, err := t.file.Stat(); err == nil {
		t.freed = punch(t.file, t.freed, info.Size())
	}
}

// text returns the last bytes of the text, at most StderrTail. It needs no lock.
func (t *tail) text() string {
	info, err := t.file.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(info.Size(), StderrTail))
	n, _ := t.file.ReadAt(buf, info.Size()-int64(len(buf))) // a short read is fine
	return string(bytes.TrimLeft(buf[:n], "\x00"))          // a freed range reads as zeros
}
