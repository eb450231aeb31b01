package orchestrator

import (
	"context"
	"log/slog"
	"time"
)

// anyJobs is Jobs, of which a method has the name too.
type anyJobs interface{ Jobs }

// auditedJobs are Jobs of which every change that a user makes is audited, after it was made.
type auditedJobs struct {
	anyJobs
	store AskStore
	now   func() time.Time
	log   *slog.Logger
}

// AuditJobs gives jobs of which every change that a user makes is audited.
func AuditJobs(jobs Jobs, store AskStore, now func() time.Time, log *slog.Logger) Jobs {
	return auditedJobs{jobs, store, now, log}
}

// AddJob implements Jobs.
func (a auditedJobs) AddJob(ctx context.Context, j Job) (JobStanding, error) {
	st, err := a.anyJobs.AddJob(ctx, j)
	return a.did(ctx, "added", Press{Conversation: j.Conversation, Person: j.Person}, st, err)
}

// EditJob implements Jobs.
func (a auditedJobs) EditJob(ctx context.Context, id JobID, by Press, change func(*Job) error) (JobStanding, error) {
	st, err := a.anyJobs.EditJob(ctx, id, by, change)
	return a.did(ctx, "changed", by, st, err)
}

// PauseJob implements Jobs.
func (a auditedJobs) PauseJob(ctx context.Context, id JobID, by Press) (JobStanding, error) {
	st, err := a.anyJobs.PauseJob(ctx, id, by)
	return a.did(ctx, "paused", by, st, err)
}

// ResumeJob implements Jobs.
func (a auditedJobs) ResumeJob(ctx context.Context, id JobID, by Press) (JobStanding, error) {
	st, err := a.anyJobs.ResumeJob(ctx, id, by)
	return a.did(ctx, "resumed", by, st, err)
}

// RunJob implements Jobs.
func (a auditedJobs) RunJob(ctx context.Context, id JobID, by Press, key string) (JobStanding, error) {
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
func (a auditedJobs) did(ctx context.Context, what string, by Press, st JobStanding, err error) (JobStanding, error) {
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
