package orchestrator

import "errors"

// Errors the domain's callers tell apart.
var (
	ErrNoSession        = errors.New("no such session")
	ErrNoTurn           = errors.New("no such turn")
	ErrRepeated         = errors.New("this turn was already run again")
	ErrElsewhere        = errors.New("that belongs to another conversation")
	ErrStillOpen        = errors.New("that turn has not ended yet")
	ErrOutsideRoot      = errors.New("that directory is outside the configured roots")
	ErrNotADir          = errors.New("there is no such directory")
	ErrNoPermissionMode = errors.New("no such permission mode")
	ErrNoRole           = errors.New("no such role is configured")
	ErrShutdown         = errors.New("ductor is shutting down")
)
