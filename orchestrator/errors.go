package orchestrator

import "errors"

// Errors that callers distinguish.
var (
	ErrNoSession         = errors.New("no such session")
	ErrSessionInUse      = errors.New("this session is in use")
	ErrNoProject         = errors.New("there is no such project")
	ErrNoRepository      = errors.New("that is no Git repository")
	ErrBadBranch         = errors.New("that is no name of a branch")
	ErrDirtyWorktree     = errors.New("it holds what no commit does")
	ErrNoStep            = errors.New("nothing is kept of this step")
	ErrNoTurn            = errors.New("no such turn")
	ErrRepeated          = errors.New("this turn was already run again")
	ErrElsewhere         = errors.New("that belongs to another conversation")
	ErrStillOpen         = errors.New("that turn has not ended yet")
	ErrCannotAmend       = errors.New("the card of that turn takes no more text")
	ErrOutsideRoot       = errors.New("that directory is outside the configured roots")
	ErrNotADir           = errors.New("there is no such directory")
	ErrNoPermissionMode  = errors.New("no such permission mode")
	ErrNoRole            = errors.New("no such role is configured")
	ErrNoApproval        = errors.New("no agent asks this")
	ErrNotApprover       = errors.New("somebody else is to decide this")
	ErrApprovalDecided   = errors.New("this was decided before")
	ErrApprovalExpired   = errors.New("the time to decide this is over")
	ErrPathMoved         = errors.New("a path of this leads elsewhere than its card shows")
	ErrApprovalWithdrawn = errors.New("the agent no longer waits for this")
	ErrNotTold           = errors.New("the decision is stored, and the agent did not take it")
	ErrBadChoice         = errors.New("that cannot be chosen here")
	ErrNotBrought        = errors.New("the files of this cannot be brought to the agent")
	ErrNoRule            = errors.New("there is no such rule")
	ErrNotAllowed        = errors.New("the role of this user does not allow that")
	ErrNoUser            = errors.New("there is no such user")
	ErrConfigured        = errors.New("that user is in the configuration; change it there")
	ErrNotOwner          = errors.New("only an owner may do this")
	ErrNotWaiting        = errors.New("that prompt no longer waits")
	ErrCannotSteer       = errors.New("the agent takes no message while it works, so it runs in its turn")
	ErrSteerUnknown      = errors.New("it is unknown whether the agent got it")
	ErrNoConsult         = errors.New("no such side session")
	ErrConsultBusy       = errors.New("the last question there is not answered yet")
	ErrTooManyConsults   = errors.New("too many questions are asked at once")
	ErrNoGroup           = errors.New("fewer than two models answered")
	ErrShutdown          = errors.New("ductor is shutting down")
)

// ForeignRepository is the error that Git refuses to work in a repository because it belongs to another user of the
// machine. It matches ErrNoRepository, because ductor cannot use the repository.
type ForeignRepository struct{ Dir string }

func (e *ForeignRepository) Error() string { return ErrNoRepository.Error() + ": " + e.Dir }

// Is reports whether target is ErrNoRepository.
func (e *ForeignRepository) Is(target error) bool { return target == ErrNoRepository }
