package heartbeat

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Errors that callers tell apart.
var (
	ErrNotCalled = errors.New("the webhook was not called yet")
	ErrLater     = errors.New("the chat does not show it yet")
)

// Store keeps jobs and their runs. internal/store implements it. Every method is one transaction and durable when it
// returns. Safe for concurrent use.
type Store interface {
	// SaveJob stores a new or changed job and its next moment. Its cost and its runs stay.
	SaveJob(ctx context.Context, j orchestrator.Job, next, planned time.Time) error
	// DeleteJob deletes a job and its runs; orchestrator.ErrNoJob for an unknown id.
	DeleteJob(ctx context.Context, id orchestrator.JobID) error
	// Job returns orchestrator.ErrNoJob for an unknown id.
	Job(ctx context.Context, id orchestrator.JobID) (orchestrator.JobStatus, error)
	// Jobs lists all jobs, the oldest first.
	Jobs(ctx context.Context) ([]orchestrator.JobStatus, error)
	// RecordRuns stores runs and the next moment of their job, all or none. It skips runs with a stored id and returns
	// the others. orchestrator.ErrNoJob for an unknown job.
	RecordRuns(ctx context.Context, job orchestrator.JobID, runs []orchestrator.JobRun, next, planned time.Time) ([]orchestrator.JobRun, error)
	// MoveRun stores the changed fields of an open run. It does not change a run that ended, and ignores an unknown id.
	MoveRun(ctx context.Context, r orchestrator.JobRun) error
	// EndRun is MoveRun for a run that ended. It adds the cost of the run to its job and stores the result of the job.
	EndRun(ctx context.Context, r orchestrator.JobRun, result orchestrator.JobResult) error
	// MarkNotified records that the chat shows the result of a run.
	MarkNotified(ctx context.Context, id orchestrator.JobRunID) error
	// OpenRuns lists runs that are open, or ended and not notified, in the order in which they were recorded.
	OpenRuns(ctx context.Context) ([]orchestrator.JobRun, error)
	// Runs lists the last runs of a job, the newest first.
	Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error)
}

// Runner runs turns. cmd/ductor connects it to the orchestrator. Safe for concurrent use.
type Runner interface {
	// SubmitOrder is that of conversation.Engine.
	SubmitOrder(ctx context.Context, o orchestrator.Order) error
	// Turn returns orchestrator.ErrNoTurn for an unknown id.
	Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error)
	// Busy says whether a turn runs or waits in a conversation.
	Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error)
}

// Report is the end of a run for the chat.
type Report struct {
	Job  orchestrator.Job
	Run  orchestrator.JobRun
	Turn cli.TurnID
	// Silent: the result is the same as before, so an edit adds Note to the message of Result.Shown, without a
	// notification. Otherwise there is a new message, with a notification: the card of Turn, or Note where there is none.
	Silent bool
	Result orchestrator.JobResult
	Note   string
}

// Notifier shows results. Package bot implements it.
type Notifier interface {
	// Report shows the end of a run. The report is durable when it returns nil, and a repeated report of a run shows it
	// once. The scheduler repeats a report that fails. Report does not wait for the network: it returns ErrLater, which
	// is not logged, while the message is on its way.
	Report(ctx context.Context, r Report) error
}
