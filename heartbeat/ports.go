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
	ErrNoJob      = errors.New("no such job")
	ErrNoRoom     = errors.New("the conversation's queue is full")
	ErrRefused    = errors.New("refused")
	ErrNotCalled  = errors.New("the webhook was not called yet")
	ErrLater      = errors.New("it is not shown yet")
	ErrFromConfig = errors.New("this job is in the configuration file; change it there")
)

// Standing is a job and how it stands.
type Standing struct {
	Job      Job
	Next     time.Time // zero for none
	Reckoned time.Time // what the clock showed when Next was worked out
	News               // what the chat was told last
	Runs     int       // that ended, skipped ones left out
	CostUSD  float64   // of all of them
	Last     *Run      // the last one that ended or was skipped; nil for none
	Open     int       // runs that wait or run
}

// News is the result that the chat was told last. Zero when there is none, or when that was a failure: what comes
// next is news then.
type News struct {
	Digest string     // orchestrator.Digest of the answer
	Shown  cli.TurnID // whose card shows it
	Same   int        // how often the answer was the same since
}

// Store keeps jobs and their runs. internal/store implements it. Every method is one transaction and durable when it
// returns. Safe for concurrent use.
type Store interface {
	// SaveJob stores a job, new or changed, and when it is due next. What it cost and its runs stay.
	SaveJob(ctx context.Context, j Job, next, reckoned time.Time) error
	// DeleteJob forgets a job and its runs; ErrNoJob if it is not there.
	DeleteJob(ctx context.Context, id JobID) error
	// Job returns ErrNoJob for an id that is not there.
	Job(ctx context.Context, id JobID) (Standing, error)
	// Jobs lists all jobs in the order they were made.
	Jobs(ctx context.Context) ([]Standing, error)
	// RecordRuns stores runs and when their job is due next, all or none. Runs whose id is known are passed
	// over; it returns those that were not. ErrNoJob if the job is not there.
	RecordRuns(ctx context.Context, job JobID, runs []Run, next, reckoned time.Time) ([]Run, error)
	// MoveRun stores all that can change of a run which is open. One that has ended or is gone is left as it is.
	MoveRun(ctx context.Context, r Run) error
	// EndRun is MoveRun for a run that ended: its cost goes to its job, and so does what the chat is told.
	EndRun(ctx context.Context, r Run, news News) error
	// ToldRun records that the chat has the result of a run.
	ToldRun(ctx context.Context, id RunID) error
	// OpenRuns lists runs that are open, or ended and not told, in the order they were recorded.
	OpenRuns(ctx context.Context) ([]Run, error)
	// Runs lists the last runs of a job, newest first.
	Runs(ctx context.Context, job JobID, limit int) ([]Run, error)
}

// Order is one turn that a job wants.
type Order struct {
	Turn         cli.TurnID // which asks once, however often it is asked for
	Job          JobID
	Kind         Kind
	Conversation orchestrator.ConversationID
	Person       orchestrator.PersonID
	Prompt       string
	Session      SessionMode
	Agent        cli.Agent
	Model        cli.ModelID
	Effort       cli.Effort
	Dir          string
	Sandbox      string
	Timeout      time.Duration
	Rights       orchestrator.Rights
	OKWord       string // an answer that is only this word is shown to nobody
	Known        string // orchestrator.Digest of the answer that the chat has: it is not shown once more; empty for none
	Title        string // says in the chat which job this is, and why it runs
	Then         string // what comes of a failure; empty for nothing
}

// Runner has turns run. cmd ties it to the orchestrator. Safe for concurrent use.
type Runner interface {
	// Ask puts a turn at the end of its conversation's queue; durable when it returns. A turn of this id that
	// is there already, in whatever state, is left alone, and that is no error. ErrNoRoom for a full queue.
	// An error that wraps ErrRefused is final and says why in a sentence for the chat; any other is tried again.
	Ask(ctx context.Context, o Order) error
	// Turn returns orchestrator.ErrNoTurn for an id that is not there.
	Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error)
	// Busy says whether a turn runs or waits in a conversation.
	Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error)
}

// Report is the end of a run as the chat is to show it.
type Report struct {
	Job  Job
	Run  Run
	Turn cli.TurnID
	// Silent: the result is that of the last time, so the message of News.Shown is edited to have Note below it, and
	// nobody is disturbed. Else there is a new message, which notifies: the card of Turn, or Note where there was none.
	Silent bool
	News   News
	Note   string
}

// Notifier shows results. Package bot implements it.
type Notifier interface {
	// Report shows the end of a run. What it takes on is durable when it returns nil; the same run reported
	// again is shown once. An error is tried again. It does not wait for the network for long: ErrLater says that it
	// is at it, and is no trouble.
	Report(ctx context.Context, r Report) error
}
