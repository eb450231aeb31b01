package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

const (
	fileMode = 0o600 // the file contains prompts and answers
	dirMode  = 0o700
)

// sqliteMagic is the beginning of every SQLite file.
const sqliteMagic = "SQLite format 3\x00"

// prepareFile makes sure that a database file exists at path and only this user can access it. It returns an error if
// the file does not begin with a database header.
func prepareFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createFile(path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", ErrForeign)
	}
	if err := checkHeader(path, info.Size()); err != nil {
		return err
	}
	if info.Mode().Perm() != fileMode {
		return os.Chmod(path, fileMode)
	}
	return nil
}

func createFile(path string) error {
	if err := checkNoLog(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("create its directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// fileID identifies a file, whatever its path is.
type fileID struct{ dev, ino uint64 }

func newFileID(info fs.FileInfo) fileID {
	stat, _ := info.Sys().(*syscall.Stat_t)
	return fileID{stat.Dev, stat.Ino}
}

// openFiles counts how often this process has opened each database file. While the count of a file is above zero, only
// SQLite may open and close the file; see readUnlessOpen. The reason is how POSIX locks work: when a process closes any
// descriptor of a file, it loses all its locks on the file. Another process that closes the database would then believe
// that it is the last user, and delete the log.
var openFiles = struct {
	mu    sync.Mutex
	files map[fileID]int
}{files: map[fileID]int{}}

// markOpen counts the file at path in openFiles. The caller must call release after SQLite has closed the file.
func markOpen(path string) (release func(), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	id := newFileID(info)
	count := func(by int) {
		openFiles.mu.Lock()
		defer openFiles.mu.Unlock()
		if openFiles.files[id] += by; openFiles.files[id] == 0 {
			delete(openFiles.files, id)
		}
	}
	count(1)
	return func() { count(-1) }, nil
}

// readUnlessOpen calls f, which may open and close the files of the database at path. If this process has the database
// open, readUnlessOpen does not call f.
func readUnlessOpen(path string, f func() error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	openFiles.mu.Lock()
	defer openFiles.mu.Unlock()
	if openFiles.files[newFileID(info)] > 0 {
		return nil
	}
	return f()
}

// checkHeader returns an error if the file does not begin with a database header. It skips the check if this process
// has the database open.
func checkHeader(path string, size int64) error {
	return readUnlessOpen(path, func() error { return checkStart(path, size) })
}

func checkStart(path string, size int64) error {
	if size == 0 {
		// If an earlier Open was killed before its first write, the file is empty and has no log.
		return checkNoLog(path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(sqliteMagic))
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if bytes.Equal(head, []byte(sqliteMagic)) {
		return nil
	}
	// If a journal exists, the first start was interrupted. SQLite will roll the journal back.
	if _, err := os.Stat(path + "-journal"); err != nil {
		return fmt.Errorf("%w: it does not begin as a database does. %s", ErrCorrupt, restoreAdvice)
	}
	return nil
}

// checkNoLog returns an error if an empty or missing database has a log with changes, because SQLite would delete this
// log.
func checkNoLog(path string) error {
	info, err := os.Stat(path + "-wal")
	if err == nil && info.Size() > walHeader { // an interrupted first start may leave only the header
		return fmt.Errorf("%w: the file is gone or empty, but %s-wal still holds changes of it. %s", ErrCorrupt, path,
			restoreAdvice)
	}
	if _, err := os.Stat(path + openSuffix); err == nil {
		return fmt.Errorf("%w: the file is gone or empty, and so is its log. %s", ErrCorrupt, restoreAdvice)
	}
	return nil
}
