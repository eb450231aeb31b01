package orchestrator

import (
	"errors"
	"fmt"
)

// Errors that callers distinguish.
var (
	ErrNoFile            = errors.New("no such file")
	ErrNoSession         = errors.New("no such session")
	ErrSessionInUse      = errors.New("this session is in use")
	ErrNoProject         = errors.New("there is no such project")
	ErrNoRepository      = errors.New("that is not a Git repository")
	ErrBadBranch         = errors.New("that is not a valid branch name")
	ErrDirtyWorktree     = errors.New("the worktree has uncommitted changes")
	ErrNoStep            = errors.New("this step is not stored")
	ErrNoTurn            = errors.New("no such turn")
	ErrRepeated          = errors.New("this turn was already run again")
	ErrElsewhere         = errors.New("that belongs to another conversation")
	ErrStillOpen         = errors.New("that turn has not ended yet")
	ErrCannotAmend       = errors.New("the card of that turn has no room for more text")
	ErrOutsideRoot       = errors.New("that directory is outside the configured roots")
	ErrNotADir           = errors.New("there is no such directory")
	ErrReplacedDir       = errors.New("a symbolic link has replaced that directory, or a directory above it")
	ErrNoPermissionMode  = errors.New("no such permission mode")
	ErrNoRole            = errors.New("no such role is configured")
	ErrNoApproval        = errors.New("no agent asked for this")
	ErrNotApprover       = errors.New("another user has to decide this")
	ErrApprovalDecided   = errors.New("this is already decided")
	ErrApprovalExpired   = errors.New("the time to decide is over")
	ErrPathMoved         = errors.New("a path of the request leads elsewhere than its card shows")
	ErrApprovalWithdrawn = errors.New("the agent no longer waits for this")
	ErrNotTold           = errors.New("the decision is stored, but the agent did not accept it")
	ErrBadChoice         = errors.New("that choice is not offered here")
	ErrNotBrought        = errors.New("the files cannot be copied to the agent")
	ErrNoRule            = errors.New("there is no such rule")
	ErrNotAllowed        = errors.New("the role of this user does not allow that")
	ErrNoUser            = errors.New("there is no such user")
	ErrConfigured        = errors.New("that user is in the configuration; change it there")
	ErrNotOwner          = errors.New("only an owner may do this")
	ErrNotWaiting        = errors.New("that prompt no longer waits")
	ErrCannotSteer       = errors.New("the agent accepts no message while it works, so the message waits")
	ErrSteerUnknown      = errors.New("it is unknown whether the agent got it")
	ErrNoConsult         = errors.New("no model was asked here yet")
	ErrTooManyConsults   = errors.New("too many questions run at once")
	ErrNoGroup           = errors.New("fewer than two models answered")
	ErrShutdown          = errors.New("ductor is shutting down")
)

// ErrOtherPlace is the ErrOutsideRoot of a repository whose working tree or Git directory is elsewhere than the
// directory in which a turn works: the working tree does not contain it, or one of them is in another environment.
var ErrOtherPlace = fmt.Errorf("%w: a repository leads to another place", ErrOutsideRoot)

// ForeignRepository is the error if a repository belongs to another user of the machine. Git does not work in such a
// repository, so the error matches ErrNoRepository.
type ForeignRepository struct{ Dir string }

func (e *ForeignRepository) Error() string { return ErrNoRepository.Error() + ": " + e.Dir }

// Is reports whether target is ErrNoRepository.
func (e *ForeignRepository) Is(target error) bool { return target == ErrNoRepository }
