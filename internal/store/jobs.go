package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const (
	runColumns = `id, job, cause, due, stands_for, prompt, attempt, not_before, state, asked, ended, text, reason,
	changed, told, cost_usd`
	openRun    = `state IN ('waiting', 'asked')`
	jobColumns = `j.id, j.chat, j.topic, j.enabled, j.spec, j.created, j.next, j.planned, j.digest, j.shown, j.same,
	j.runs, j.cost_usd,
	(SELECT count(*) FROM job_runs r WHERE r.job = j.id AND r.told = 0 AND r.` + openRun + `),
	coalesce((SELECT r.id FROM job_runs r WHERE r.job = j.id AND r.state NOT IN ('waiting', 'asked') ORDER BY r.seq DESC
	LIMIT 1), ''),
	coalesce((SELECT r.id FROM job_runs r WHERE r.job = j.id AND r.told = 0 AND r.` + openRun + ` ORDER BY r.seq
	LIMIT 1), ''),
	EXISTS (SELECT 1 FROM turns t WHERE t.id = j.shown)`
)

func (db *DB) SaveJob(ctx context.Context, j orchestrator.Job, next, planned time.Time) error {
	op := fmt.Sprintf("save job %s", j.ID)
	spec, err := encode(rowOfJob(j))
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.write(ctx, func(t tx) error {
		return t.upsert("jobs", "id", `id, chat, topic, enabled, spec, created, next, planned`,
			string(j.ID), j.Conversation.Chat, j.Conversation.Topic, !j.Paused, spec, millis(j.Created), millis(next),
			millis(planned))
	}))
}

func (db *DB) DeleteJob(ctx context.Context, id orchestrator.JobID) error {
	return wrap(fmt.Sprintf("delete job %s", id), db.write(ctx, func(t tx) error {
		return t.execExisting(orchestrator.ErrNoJob, `DELETE FROM jobs WHERE id = ?`, string(id))
	}))
}

func (db *DB) Job(ctx context.Context, id orchestrator.JobID) (orchestrator.JobStatus, error) {
	all, err := db.jobStatuses(ctx, `SELECT `+jobColumns+` FROM jobs j WHERE j.id = ?`, string(id))
	if err == nil && len(all) == 0 {
		err = orchestrator.ErrNoJob
	}
	if err != nil {
		return orchestrator.JobStatus{}, wrap(fmt.Sprintf("load job %s", id), err)
	}
	return all[0], nil
}

func (db *DB) Jobs(ctx context.Context) ([]orchestrator.JobStatus, error) {
	all, err := db.jobStatuses(ctx, `SELECT `+jobColumns+` FROM jobs j ORDER BY j.seq`)
	return all, wrap("list jobs", err)
}

type statusRow struct {
	orchestrator.JobStatus
	last, oldest string // IDs of runs; empty for none
}

func (db *DB) jobStatuses(ctx context.Context, query string, args ...any) ([]orchestrator.JobStatus, error) {
	rows, err := sqlite.Many(ctx, db.file, scanStatus, query, args...)
	if err != nil {
		return nil, err
	}
	var all []orchestrator.JobStatus
	for _, row := range rows {
		if row.Last, err = db.runOf(ctx, row.last); err != nil {
			return nil, err
		}
		if row.Oldest, err = db.runOf(ctx, row.oldest); err != nil {
			return nil, err
		}
		all = append(all, row.JobStatus)
	}
	return all, nil
}

// runOf returns a run of a job. It returns nil if id is empty, or if a user has just deleted the job.
func (db *DB) runOf(ctx context.Context, id string) (*orchestrator.JobRun, error) {
	if id == "" {
		return nil, nil
	}
	r, err := sqlite.One(ctx, db.file, scan(runFields), `SELECT `+runColumns+` FROM job_runs WHERE id = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &r, err
}

func (db *DB) RecordRuns(
	ctx context.Context, job orchestrator.JobID, runs []orchestrator.JobRun, next, planned time.Time,
) ([]orchestrator.JobRun, error) {
	var fresh []orchestrator.JobRun
	err := db.write(ctx, func(t tx) error {
		err := t.execExisting(orchestrator.ErrNoJob,
			`UPDATE jobs SET next = ?, planned = ? WHERE id = ?`, millis(next), millis(planned), string(job))
		if err != nil {
			return err
		}
		for _, r := range runs {
			n, err := t.recordRun(r)
			if err != nil {
				return err
			}
			if n > 0 {
				fresh = append(fresh, r)
			}
		}
		return nil
	})
	if err != nil {
		fresh = nil
	}
	return fresh, wrap(fmt.Sprintf("record runs of job %s", job), err)
}

// recordRun stores a run, unless a run with this ID is stored already. It returns the number of new rows.
func (t tx) recordRun(r orchestrator.JobRun) (int64, error) {
	return t.insert("job_runs", runColumns, `ON CONFLICT (id) DO NOTHING`, runFields(&r)...)
}

func runFields(r *orchestrator.JobRun) []any {
	return []any{&r.ID, &r.Job, &r.Cause, timeColumn{&r.Due}, &r.StandsFor, &r.Prompt, &r.Attempt,
		timeColumn{&r.NotBefore}, &r.State,
		timeColumn{&r.Asked}, timeColumn{&r.Ended}, &r.Result.Text, &r.Result.Reason, &r.Result.Changed,
		&r.Result.Notified, &r.Result.CostUSD}
}

func (db *DB) MoveRun(ctx context.Context, r orchestrator.JobRun) error {
	return wrap(fmt.Sprintf("update run %s", r.ID), db.write(ctx, func(t tx) error {
		_, err := t.updateRun(r)
		return err
	}))
}

func (t tx) updateRun(r orchestrator.JobRun) (int64, error) {
	return t.Exec(`UPDATE job_runs SET attempt = ?, not_before = ?, state = ?, asked = ?, ended = ?,
		text = ?, reason = ?, changed = ?, told = ?, cost_usd = ? WHERE id = ? AND `+openRun,
		r.Attempt, millis(r.NotBefore), string(r.State), millis(r.Asked), millis(r.Ended), r.Result.Text,
		r.Result.Reason,
		r.Result.Changed, r.Result.Notified, r.Result.CostUSD, string(r.ID))
}

// EndRun does nothing if the run has already ended, so that the run's cost is counted only once.
func (db *DB) EndRun(ctx context.Context, r orchestrator.JobRun, result orchestrator.JobResult) error {
	return wrap(fmt.Sprintf("end run %s", r.ID), db.write(ctx, func(t tx) error {
		n, err := t.updateRun(r)
		if err != nil || n == 0 {
			return err
		}
		_, err = t.Exec(`UPDATE jobs SET runs = runs + 1, cost_usd = cost_usd + ?, digest = ?, shown = ?, same = ?
			WHERE id = ?`,
			r.Result.CostUSD, result.Digest, string(result.Shown), result.Same, string(r.Job))
		return err
	}))
}

func (db *DB) MarkNotified(ctx context.Context, id orchestrator.JobRunID) error {
	return db.exec(ctx, fmt.Sprintf("mark run %s as notified", id), db.write,
		`UPDATE job_runs SET told = 1 WHERE id = ?`, string(id))
}

func (db *DB) OpenRuns(ctx context.Context) ([]orchestrator.JobRun, error) {
	all, err := sqlite.Many(ctx, db.file, scan(runFields),
		`SELECT `+runColumns+` FROM job_runs WHERE told = 0 ORDER BY seq`)
	return all, wrap("list open runs", err)
}

func (db *DB) Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error) {
	all, err := sqlite.Many(ctx, db.file, scan(runFields),
		`SELECT `+runColumns+` FROM job_runs WHERE job = ? ORDER BY seq DESC LIMIT ?`,
		string(job), nonNegative(limit))
	return all, wrap(fmt.Sprintf("list runs of job %s", job), err)
}

func scanStatus(row sqlite.Row) (s statusRow, err error) {
	j := &s.Job
	var spec string
	var enabled, shown bool
	err = row.Scan(&j.ID, &j.Conversation.Chat, &j.Conversation.Topic, &enabled, &spec, timeColumn{&j.Created},
		timeColumn{&s.Next}, timeColumn{&s.Planned},
		&s.Digest, &s.Shown, &s.Same, &s.Runs, &s.CostUSD, &s.Open, &s.last, &s.oldest, &shown)
	if err == nil {
		err = decodeJob(spec, j)
	}
	if !shown { // the latest run failed, or a user has deleted the session with the answer
		s.JobResult = orchestrator.JobResult{}
	}
	j.Paused = !enabled
	return s, err
}
