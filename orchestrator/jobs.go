package orchestrator

import (
	"context"
	"errors"
)

// Errors of Jobs that its callers tell apart.
var (
	ErrNoJob         = errors.New("no such job")
	ErrJobConfigured = errors.New("the configuration file defines this job; change it there")
	ErrJobsFull      = errors.New("there are too many")
)

// BadJob is an error in what a user wrote, as a sentence for the chat.
type BadJob struct{ Why string }

func (e *BadJob) Error() string { return e.Why }

// Jobs is what users do with the jobs of a conversation. Package heartbeat implements it. A method that gets a job of
// another conversation returns ErrElsewhere. Times are in the zone of their job. Safe for concurrent use; no method waits
// for an agent.
type Jobs interface {
	// Jobs lists the jobs of a conversation, the oldest first.
	Jobs(ctx context.Context, in ConversationID) ([]JobStatus, error)
	// Job is one of them; ErrNoJob for an unknown id.
	Job(ctx context.Context, id JobID, in ConversationID) (JobStatus, error)
	// JobRuns lists the last runs of a job, newest first.
	JobRuns(ctx context.Context, id JobID, in ConversationID, limit int) ([]JobRun, error)

	// ReadJob splits a request into a schedule and a prompt, and gives a job with the other fields at their defaults.
	// *BadJob says what is unclear, with examples.
	ReadJob(in ConversationID, text string) (Job, error)
	// ReadSchedule reads a schedule, in words or as a cron line, in the zone it names or else in the given one; *BadJob
	// as with ReadJob.
	ReadSchedule(text, zone string) (schedule, named string, err error)
	// CheckJob gives the status that a job would have if it were stored, with its defaults filled in; *BadJob for an
	// invalid one.
	CheckJob(j Job) (JobStatus, error)

	// AddJob stores a job under its id. A stored job of this id stays as it is, without an error. *BadJob for an invalid
	// job, ErrJobsFull for one too many.
	AddJob(ctx context.Context, j Job) (JobStatus, error)
	// EditJob changes a job by change, and computes its next run again. It changes nothing and returns *BadJob for an
	// invalid job, the error of change where that fails, and ErrJobConfigured.
	EditJob(ctx context.Context, id JobID, by Press, change func(*Job) error) (JobStatus, error)
	// PauseJob stops a job from running until ResumeJob.
	PauseJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// ResumeJob lets a job run again, from its next moment on.
	ResumeJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// RunJob runs a job now, once for each key: ErrRepeated for a used key. ErrJobsFull when too many runs wait, *BadJob
	// for a webhook that was never called.
	RunJob(ctx context.Context, id JobID, by Press, key string) (JobStatus, error)
	// DeleteJob deletes a job and its runs; ErrJobConfigured. A running turn continues.
	DeleteJob(ctx context.Context, id JobID, by Press) error
}
