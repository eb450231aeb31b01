package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

func checkHeader(path string, size int64) error {
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
	if err != nil || info.Size() <= walHeader { // the header alone is left if the first start ends early
		return nil
	}
	return fmt.Errorf("%w: the file is gone or empty, but %s-wal still holds changes of it. Put the file back, or move the -wal file away to start anew", ErrCorrupt, path)
}
