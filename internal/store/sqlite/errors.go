package sqlite

import (
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"ductor/orchestrator"
)

// Errors that concern the whole database, for errors.Is. Their texts tell users how to fix the problem.
var (
	ErrCorrupt  = orchestrator.ErrDamaged
	ErrForeign  = errors.New("the file is not a ductor database")
	ErrNewer    = errors.New("the database was written by a newer version of ductor")
	ErrOlder    = errors.New("the database is of an older version; the next start of ductor brings it up to date")
	ErrReadOnly = errors.New("the database cannot be written: " +
		"check the owner and the permissions of it and of its directory")
	ErrDiskFull = orchestrator.ErrDiskFull
	ErrBusy     = errors.New("another process holds the database: is a second ductor running?")
	ErrDisk     = orchestrator.ErrDiskFailed
)

var (
	errClosed   = errors.New("the database is closed")
	errReadOnly = errors.New("the database is read-only")
)

const restoreAdvice = "The next start of ductor moves it aside and continues with a copy of it, " +
	"or with the newest backup"

// explain adds the matching exported error to an SQLite error, if one exists.
func explain(err error) error {
	if cause := causeOf(err); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

func causeOf(err error) error {
	var e sqlite3.Error
	if !errors.As(err, &e) || errors.Is(err, ErrCorrupt) {
		return nil
	}
	if cause := diskError(e.SystemErrno); cause != nil && e.Code == sqlite3.ErrCantOpen {
		return cause // the disk error that prevented SQLite from creating the log
	}
	switch e.Code {
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return ErrCorrupt
	case sqlite3.ErrReadonly, sqlite3.ErrCantOpen, sqlite3.ErrPerm, sqlite3.ErrAuth:
		return ErrReadOnly
	case sqlite3.ErrFull:
		return ErrDiskFull
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return ErrBusy
	case sqlite3.ErrIoErr:
		if cause := diskError(e.SystemErrno); cause != nil {
			return cause
		}
		return ErrDisk
	}
	return nil
}

// IsForeignKey reports whether a statement failed because it refers to a missing row of another table.
func IsForeignKey(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.ExtendedCode == sqlite3.ErrConstraintForeignKey
}
