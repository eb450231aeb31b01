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

// BadJob is an error in a user's input, as a sentence for the chat.
type BadJob struct{ Why string }

func (e *BadJob) Error() string { return e.Why }

// Jobs lets users manage the jobs of a conversation. Package heartbeat implements it. Its methods return ErrElsewhere
// for a job of another conversation. Times are in the zone of their job. Safe for concurrent use; no method waits for
// an agent.
type Jobs interface {
	// Jobs lists the jobs of a conversation, the oldest first.
	Jobs(ctx context.Context, in ConversationID) ([]JobStatus, error)
	// Job returns a job, or ErrNoJob for an unknown ID.
	Job(ctx context.Context, id JobID, in ConversationID) (JobStatus, error)
	// JobRuns lists the last runs of a job, newest first.
	JobRuns(ctx context.Context, id JobID, in ConversationID, limit int) ([]JobRun, error)

	// ReadJob splits a request into a schedule and a prompt, and returns a job with defaults in all other fields. If
	// the request is unclear, it returns a *BadJob with examples.
	ReadJob(in ConversationID, text string) (Job, error)
	// ReadSchedule parses a schedule, in words or as a cron line, in the zone it names or else in the given one. It
	// returns a *BadJob like ReadJob.
	ReadSchedule(text, zone string) (schedule, named string, err error)
	// CheckJob returns the status that the job would have if it were stored, with its defaults filled in, or a *BadJob
	// if it is invalid.
	CheckJob(j Job) (JobStatus, error)

	// AddJob stores a job under its ID. If a job with this ID exists, it stays unchanged, without an error. It returns
	// a *BadJob if the job is invalid, and ErrJobsFull if there are too many.
	AddJob(ctx context.Context, j Job) (JobStatus, error)
	// EditJob applies change to a job and computes its next run. If the job becomes invalid, change fails or the
	// configuration defines the job, it changes nothing and returns a *BadJob, the error of change or ErrJobConfigured.
	EditJob(ctx context.Context, id JobID, by Press, change func(*Job) error) (JobStatus, error)
	// PauseJob stops the runs of a job until ResumeJob.
	PauseJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// ResumeJob continues a paused job from its next due time on.
	ResumeJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// RunJob runs a job now, once for each key: it returns ErrRepeated for a used key. It returns ErrJobsFull if too
	// many runs wait, and a *BadJob for a webhook that was never called.
	RunJob(ctx context.Context, id JobID, by Press, key string) (JobStatus, error)
	// DeleteJob deletes a job and its runs, or returns ErrJobConfigured. A running turn continues.
	DeleteJob(ctx context.Context, id JobID, by Press) error
}
