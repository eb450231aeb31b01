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
	fileMode = 0o600 // the file holds prompts and answers: only its user may read it
	dirMode  = 0o700
)

// sqliteMagic begins every SQLite file.
const sqliteMagic = "SQLite format 3\x00"

// prepareFile makes sure that there is a private file at path which SQLite may open: a new one, or one that
// begins as a database does.
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
		return fmt.Errorf("%w: it is no regular file", ErrForeign)
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
		return fmt.Errorf("make its directory: %w", err)
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

// fileID identifies a file under whatever path.
type fileID struct{ dev, ino uint64 }

func idOf(info fs.FileInfo) fileID {
	stat, _ := info.Sys().(*syscall.Stat_t)
	return fileID{stat.Dev, stat.Ino}
}

// held counts the open databases of this process by their files. A process that closes any descriptor of a file loses all of its
// POSIX locks on that file. The next process that closes the database would believe that nobody uses it and delete the log. So
// nothing but SQLite opens a file that is held; see readBeside.
var held = struct {
	mu    sync.Mutex
	files map[fileID]int
}{files: map[fileID]int{}}

// hold marks the file at path as in use. The caller calls release after SQLite closed the file.
func hold(path string) (release func(), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	id := idOf(info)
	count := func(by int) {
		held.mu.Lock()
		defer held.mu.Unlock()
		if held.files[id] += by; held.files[id] == 0 {
			delete(held.files, id)
		}
	}
	count(1)
	return func() { count(-1) }, nil
}

// readBeside calls f, which may open and close the files of the database at path, unless this process holds it.
func readBeside(path string, f func() error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.files[idOf(info)] > 0 {
		return nil
	}
	return f()
}

// checkHeader returns an error if the file does not begin as a database does.
func checkHeader(path string, size int64) error {
	return readBeside(path, func() error { return checkUnheld(path, size) })
}

func checkUnheld(path string, size int64) error {
	if size == 0 {
		// Made by an Open that was killed before SQLite wrote to it, unless a log beside it holds changes.
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
	if _, err := os.Stat(path + "-journal"); err != nil { // by which SQLite takes back what a first start began
		return fmt.Errorf("%w: it does not begin as a database does. %s", ErrCorrupt, restoreAdvice)
	}
	return nil
}

// checkNoLog refuses an empty or missing database beside a log with changes of it: SQLite would delete the log.
func checkNoLog(path string) error {
	info, err := os.Stat(path + "-wal")
	if err == nil && info.Size() > walHeader { // the header alone is left if the first start ends early
		return fmt.Errorf("%w: the file is gone or empty, but %s-wal still holds changes of it. %s", ErrCorrupt, path, restoreAdvice)
	}
	if _, err := os.Stat(path + openSuffix); err == nil {
		return fmt.Errorf("%w: the file is gone or empty, and so is its log. %s", ErrCorrupt, restoreAdvice)
	}
	return nil
}
