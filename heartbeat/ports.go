package heartbeat

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Errors that callers distinguish.
var (
	ErrNotCalled = errors.New("the webhook was not called yet")
	ErrLater     = errors.New("the chat does not show it yet")
)

// Store stores jobs and their runs. internal/store implements it. Every method is one transaction, which is durable
// when the method returns. Safe for concurrent use.
type Store interface {
	// SaveJob stores a new or changed job and its next time. It does not change the job's cost and runs.
	SaveJob(ctx context.Context, j orchestrator.Job, next, planned time.Time) error
	// DeleteJob deletes a job and its runs. It returns orchestrator.ErrNoJob for an unknown ID.
	DeleteJob(ctx context.Context, id orchestrator.JobID) error
	// Job returns orchestrator.ErrNoJob for an unknown ID.
	Job(ctx context.Context, id orchestrator.JobID) (orchestrator.JobStatus, error)
	// Jobs lists all jobs, the oldest first.
	Jobs(ctx context.Context) ([]orchestrator.JobStatus, error)
	// RecordRuns atomically stores runs and the next time of their job. It skips runs whose ID is already stored and
	// returns the others. It returns orchestrator.ErrNoJob for an unknown job.
	RecordRuns(ctx context.Context, job orchestrator.JobID, runs []orchestrator.JobRun, next,
		planned time.Time) ([]orchestrator.JobRun, error)
	// MoveRun stores the changed fields of an open run. It does not change an ended run, and ignores an unknown ID.
	MoveRun(ctx context.Context, r orchestrator.JobRun) error
	// EndRun is MoveRun for a run that ended. It also adds the run's cost to its job and stores the job's result.
	EndRun(ctx context.Context, r orchestrator.JobRun, result orchestrator.JobResult) error
	// MarkNotified records that the chat shows the result of a run.
	MarkNotified(ctx context.Context, id orchestrator.JobRunID) error
	// OpenRuns lists the runs that are open, or ended but not notified, in the order in which they were stored.
	OpenRuns(ctx context.Context) ([]orchestrator.JobRun, error)
	// Runs lists the last runs of a job, the newest first.
	Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error)
}

// Runner runs turns. cmd/ductor connects it to the orchestrator. Safe for concurrent use.
type Runner interface {
	// SubmitOrder is the method of conversation.Engine.
	SubmitOrder(ctx context.Context, o orchestrator.Order) error
	// Turn returns orchestrator.ErrNoTurn for an unknown ID.
	Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error)
	// Busy reports whether a turn is running or queued in a conversation.
	Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error)
}

// Report describes the end of a run for the chat.
type Report struct {
	Job  orchestrator.Job
	Run  orchestrator.JobRun
	Turn cli.TurnID
	// Silent means that the result is the same as before. Report then edits the message of Result.Shown and adds Note,
	// so that no user gets a notification. Otherwise Report sends a new message with a notification: the card of Turn,
	// or else Note.
	Silent bool
	Result orchestrator.JobResult
	Note   string
}

// Notifier shows results. Package bot implements it.
type Notifier interface {
	// Report shows the end of a run. The report is durable when Report returns nil. A repeated report of a run has no
	// effect. The scheduler retries if Report fails. Report does not wait for the network: it returns ErrLater until
	// the message is sent. The scheduler does not log ErrLater.
	Report(ctx context.Context, r Report) error
}
