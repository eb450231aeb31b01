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

// BadJob is the error if a user's description of a job is invalid. It contains an explanation for the user.
type BadJob struct{ Why string }

func (e *BadJob) Error() string { return e.Why }

// Jobs lets users manage the jobs of a conversation. Its methods return ErrElsewhere for a job of another conversation.
// The methods use the time zone of the job. They do not wait for agents, and are safe for concurrent use. Package
// heartbeat implements Jobs.
type Jobs interface {
	// Jobs lists the jobs of a conversation, the oldest first.
	Jobs(ctx context.Context, in ConversationID) ([]JobStatus, error)
	// Job returns a job, or ErrNoJob for an unknown ID.
	Job(ctx context.Context, id JobID, in ConversationID) (JobStatus, error)
	// JobRuns lists the last runs of a job, newest first.
	JobRuns(ctx context.Context, id JobID, in ConversationID, limit int) ([]JobRun, error)

	// ReadJob splits a user's text into a schedule and a prompt, and returns a job with both. The other fields have
	// their defaults. If the text is unclear, ReadJob returns a *BadJob with examples.
	ReadJob(in ConversationID, text string) (Job, error)
	// ReadSchedule parses a schedule in words or as a cron line. It also returns the time zone that the text contains,
	// or the given zone if the text contains none. It returns a *BadJob if the text is unclear.
	ReadSchedule(in ConversationID, text, zone string) (schedule, jobZone string, err error)
	// ReadDir resolves the path of a directory that a user chose for a job. It returns a *BadJob if agents may not work
	// in the directory. An empty path is the directory of the chat.
	ReadDir(in ConversationID, path string) (string, error)
	// CheckJob fills in the defaults of a job and returns the same results as AddJob, but stores nothing.
	CheckJob(j Job) (JobStatus, error)

	// AddJob stores a job. If a job with this ID exists, AddJob changes nothing and returns no error. It returns a
	// *BadJob if the job is invalid, and ErrJobsFull if the conversation has too many jobs. It also deletes old
	// finished jobs of the user.
	AddJob(ctx context.Context, j Job) (JobStatus, error)
	// EditJob changes a job: it calls edit with the stored job, stores the changed job, and computes the next run. It
	// stores nothing and returns an error in these cases:
	//   - edit returns an error: EditJob returns this error
	//   - the changed job is invalid: *BadJob
	//   - the configuration defines the job: ErrJobConfigured
	EditJob(ctx context.Context, id JobID, by Press, edit func(*Job) error) (JobStatus, error)
	// PauseJob prevents a job from starting runs until ResumeJob is called.
	PauseJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// ResumeJob continues a paused job. The next run is at the job's next due time. If the creator of the job is no
	// longer allowed to run it, the user who resumes the job becomes its creator. If the only due time of such a job
	// has passed, ResumeJob marks the job as finished; see JobStatus.Finished.
	ResumeJob(ctx context.Context, id JobID, by Press) (JobStatus, error)
	// RunJob runs a job now. The key identifies the request: if the key was used before, RunJob returns ErrRepeated. It
	// returns ErrJobsFull if too many runs wait. It returns a *BadJob if the webhook of the job was never called, or if
	// the creator of the job is no longer allowed to run it.
	RunJob(ctx context.Context, id JobID, by Press, key string) (JobStatus, error)
	// DeleteJob deletes a job and its runs, but does not stop a running turn. It returns ErrJobConfigured for a job of
	// the configuration.
	DeleteJob(ctx context.Context, id JobID, by Press) error
}
