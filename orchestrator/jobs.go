package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"time"
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

// anyJobs is Jobs, of which a method has the name too.
type anyJobs interface{ Jobs }

// auditedJobs are Jobs of which every change that a user makes is audited, after it was made.
type auditedJobs struct {
	anyJobs
	store ApprovalStore
	now   func() time.Time
	log   *slog.Logger
}

// AuditJobs gives jobs of which every change that a user makes is audited.
func AuditJobs(jobs Jobs, store ApprovalStore, now func() time.Time, log *slog.Logger) Jobs {
	return auditedJobs{jobs, store, now, log}
}

// AddJob implements Jobs.
func (a auditedJobs) AddJob(ctx context.Context, j Job) (JobStatus, error) {
	st, err := a.anyJobs.AddJob(ctx, j)
	return a.did(ctx, "added", Press{Conversation: j.Conversation, Person: j.Person}, st, err)
}

// EditJob implements Jobs.
func (a auditedJobs) EditJob(ctx context.Context, id JobID, by Press, change func(*Job) error) (JobStatus, error) {
	st, err := a.anyJobs.EditJob(ctx, id, by, change)
	return a.did(ctx, "changed", by, st, err)
}

// PauseJob implements Jobs.
func (a auditedJobs) PauseJob(ctx context.Context, id JobID, by Press) (JobStatus, error) {
	st, err := a.anyJobs.PauseJob(ctx, id, by)
	return a.did(ctx, "paused", by, st, err)
}

// ResumeJob implements Jobs.
func (a auditedJobs) ResumeJob(ctx context.Context, id JobID, by Press) (JobStatus, error) {
	st, err := a.anyJobs.ResumeJob(ctx, id, by)
	return a.did(ctx, "resumed", by, st, err)
}

// RunJob implements Jobs.
func (a auditedJobs) RunJob(ctx context.Context, id JobID, by Press, key string) (JobStatus, error) {
	st, err := a.anyJobs.RunJob(ctx, id, by, key)
	return a.did(ctx, "ran", by, st, err)
}

// DeleteJob implements Jobs.
func (a auditedJobs) DeleteJob(ctx context.Context, id JobID, by Press) error {
	st, err := a.Job(ctx, id, by.Conversation)
	if err != nil {
		return err
	}
	_, err = a.did(ctx, "deleted", by, st, a.anyJobs.DeleteJob(ctx, id, by))
	return err
}

// did audits what was done to a job, unless it failed. What cannot be recorded is logged: it has happened already.
func (a auditedJobs) did(ctx context.Context, what string, by Press, st JobStatus, err error) (JobStatus, error) {
	if err != nil {
		return st, err
	}
	entry := AuditEntry{At: a.now(), What: AuditJob, Conversation: by.Conversation, By: by.Person, Agent: st.Job.Agent,
		Tool: what, Title: st.Job.Name, Reason: st.Job.When}
	if err := a.store.RecordAudit(context.WithoutCancel(ctx), entry); err != nil {
		a.log.Error("record the audit", "what", entry.What, "err", err)
	}
	return st, nil
}
