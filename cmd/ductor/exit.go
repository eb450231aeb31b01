package main

import (
	"errors"

	"ductor/orchestrator"
)

// The exit codes, for service managers and scripts.
const (
	exitOK       = 0
	exitFailure  = 1
	exitConfig   = 2 // the configuration is wrong: restarting will not help
	exitToken    = 3 // Telegram refuses the token: restarting will not help
	exitInstance = 4 // another ductor serves this token
	exitDisk     = 5 // the disk under the database reports an error: a restart reads what is on it
)

// Errors that have an exit code of their own.
var (
	errConfig   = errors.New("configuration")
	errToken    = errors.New("token refused")
	errInstance = errors.New("another instance")
)

// exitCode is the one place where an error becomes an exit code.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errConfig):
		return exitConfig
	case errors.Is(err, errToken):
		return exitToken
	case errors.Is(err, errInstance):
		return exitInstance
	case errors.Is(err, orchestrator.ErrDiskFailed):
		return exitDisk
	default:
		return exitFailure
	}
}

// coded is err with the exit code of kind, and the text of err alone.
type coded struct {
	error
	kind error
}

func (c coded) Is(target error) bool { return target == c.kind }
func (c coded) Unwrap() error        { return c.error }
