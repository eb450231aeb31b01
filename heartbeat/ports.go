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
	// SaveJob stores a new or changed job. next is the time of the job's next run, and planned is when that time was
	// computed. SaveJob does not change the job's cost and runs.
	SaveJob(ctx context.Context, j orchestrator.Job, next, planned time.Time) error
	// DeleteJob deletes a job and its runs. It returns orchestrator.ErrNoJob if the job does not exist.
	DeleteJob(ctx context.Context, id orchestrator.JobID) error
	// Job returns a job. It returns orchestrator.ErrNoJob if the job does not exist.
	Job(ctx context.Context, id orchestrator.JobID) (orchestrator.JobStatus, error)
	// Jobs lists all jobs, the oldest first.
	Jobs(ctx context.Context) ([]orchestrator.JobStatus, error)
	// RecordRuns stores runs of a job and the time of its next run. If it fails, it stores neither. It skips runs whose
	// ID is already stored, and returns the others. It returns orchestrator.ErrNoJob if the job does not exist.
	RecordRuns(ctx context.Context, job orchestrator.JobID, runs []orchestrator.JobRun, next,
		planned time.Time) ([]orchestrator.JobRun, error)
	// MoveRun stores the changed fields of an open run. It ignores a run that has ended or does not exist.
	MoveRun(ctx context.Context, r orchestrator.JobRun) error
	// EndRun stores the state of an ended run together with the job's result. It adds the cost of the run to the cost
	// of the job.
	EndRun(ctx context.Context, r orchestrator.JobRun, result orchestrator.JobResult) error
	// MarkNotified records that the chat shows the result of a run.
	MarkNotified(ctx context.Context, id orchestrator.JobRunID) error
	// OpenRuns lists the open runs, and the ended runs that are not marked as notified, in the order in which they were
	// first stored.
	OpenRuns(ctx context.Context) ([]orchestrator.JobRun, error)
	// CurrentChat returns the current ID of a chat. It differs from the given ID if Telegram gave the group a new one.
	CurrentChat(ctx context.Context, chat int64) (int64, error)
	// Runs lists the last runs of a job, the newest first.
	Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error)
}

// Runner runs turns. cmd/ductor connects it to the orchestrator. Safe for concurrent use.
type Runner interface {
	// SubmitOrder submits the turn of an order; see conversation.Engine.SubmitOrder.
	SubmitOrder(ctx context.Context, o orchestrator.Order) error
	// Turn returns a turn. It returns orchestrator.ErrNoTurn if the turn does not exist.
	Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error)
	// Busy reports whether a turn is running or queued in a conversation.
	Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error)
}

// Report contains the result of a run, for a message in the chat.
type Report struct {
	Job  orchestrator.Job
	Run  orchestrator.JobRun
	Turn cli.TurnID
	// Silent is true if the answer is the same as before. Notifier.Report then adds Note to the message that already
	// shows the answer (Result.Shown), and no user gets a notification. If Silent is false, Report sends a new message:
	// the card of the turn, or Note if the turn has no card.
	Silent bool
	Result orchestrator.JobResult
	Note   string
}

// Notifier shows the results of runs in the chat. Package bot implements it.
type Notifier interface {
	// Report shows the result of a run. It does not wait for the network: it returns ErrLater if the message has not
	// been sent yet. The scheduler calls Report again until it returns nil, and does not log ErrLater. A further report
	// of the same run has no effect.
	Report(ctx context.Context, r Report) error
}
