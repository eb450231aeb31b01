package orchestrator

import (
	"context"
	"errors"
)

// Errors of Jobs that callers distinguish.
var (
	ErrNoJob         = errors.New("no such job")
	ErrJobConfigured = errors.New("the configuration file defines this job; change it there")
	ErrJobsFull      = errors.New("there are too many")
)

// BadJob is the error if a user's input is invalid. Why is a sentence for the chat.
type BadJob struct{ Why string }

func (e *BadJob) Error() string { return e.Why }

// Jobs lets users manage the jobs of a conversation. Its methods return ErrElsewhere for a job of another conversation.
// Times are in the zone of the job. No method waits for an agent. Safe for concurrent use. Package heartbeat implements
// it.
type Jobs interface {
	// Jobs lists the jobs of a conversation, the oldest first.
	Jobs(ctx context.Context, in ConversationID) ([]JobStatus, error)
	// Job returns a job, or ErrNoJob for an unknown ID.
	Job(ctx context.Context, id JobID, in ConversationID) (JobStatus, error)
	// JobRuns lists the last runs of a job, newest first.
	JobRuns(ctx context.Context, id JobID, in ConversationID, limit int) ([]JobRun, error)

	// ReadJob splits a request into a schedule and a prompt, and returns a job with both. All other fields have their
	// defaults. It returns a *BadJob with examples if the request is unclear.
	ReadJob(in ConversationID, text string) (Job, error)
	// ReadSchedule parses a schedule, which is in words or a cron line. named is the zone in text, or else zone.
	// ReadSchedule returns a *BadJob like ReadJob.
	ReadSchedule(text, zone string) (schedule, named string, err error)
	// CheckJob adds the defaults to a job and returns the status that the job would have after AddJob. It returns a
	// *BadJob if the job is invalid.
	CheckJob(j Job) (JobStatus, error)

	// AddJob stores a job under its ID. It changes nothing and returns no error if a job with this ID exists. It
	// returns a *BadJob if the job is invalid, and ErrJobsFull if there are too many jobs.
	AddJob(ctx context.Context, j Job) (JobStatus, error)
	// EditJob applies change to a job and computes its next run. It changes nothing and returns an error in these
	// cases:
	//   - *BadJob: the job would become invalid
	//   - the error of change: change failed
	//   - ErrJobConfigured: the configuration defines the job
	EditJob(ctx context.Context, id JobID, by Press, change func(*Job) error) (JobStatus, error)
	// PauseJob stops the runs of a job until ResumeJob.
	PauseJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// ResumeJob continues a paused job. The next run is at the job's next due time.
	ResumeJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// RunJob runs a job now. key identifies the request: RunJob returns ErrRepeated for a used key. It returns
	// ErrJobsFull if too many runs wait, and a *BadJob for a webhook that was never called.
	RunJob(ctx context.Context, id JobID, by Press, key string) (JobStatus, error)
	// DeleteJob deletes a job and its runs, but does not stop a running turn. It returns ErrJobConfigured for a job of
	// the configuration.
	DeleteJob(ctx context.Context, id JobID, by Press) error
}
