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
	jobColumns = `j.id, j.chat, j.topic, j.enabled, j.spec, j.created, j.next, j.planned, j.digest, j.shown, j.same, j.runs, j.cost_usd,
	(SELECT count(*) FROM job_runs r WHERE r.job = j.id AND r.told = 0 AND r.` + openRun + `),
	coalesce((SELECT r.id FROM job_runs r WHERE r.job = j.id AND r.state NOT IN ('waiting', 'asked') ORDER BY r.seq DESC LIMIT 1), '')`
)

// SaveJob stores a new or changed job and its next moment. Its cost and its runs stay.
func (db *DB) SaveJob(ctx context.Context, j orchestrator.Job, next, planned time.Time) error {
	op := fmt.Sprintf("save job %s", j.ID)
	spec, err := encode(rowOfJob(j))
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.write(ctx, func(t tx) error {
		return t.put("jobs", "id", `id, chat, topic, enabled, spec, created, next, planned`,
			string(j.ID), j.Conversation.Chat, j.Conversation.Topic, !j.Paused, spec, millis(j.Created), millis(next), millis(planned))
	}))
}

// DeleteJob deletes a job and its runs; orchestrator.ErrNoJob for an unknown id.
func (db *DB) DeleteJob(ctx context.Context, id orchestrator.JobID) error {
	return wrap(fmt.Sprintf("delete job %s", id), db.write(ctx, func(t tx) error {
		return t.execOr(orchestrator.ErrNoJob, `DELETE FROM jobs WHERE id = ?`, string(id))
	}))
}

// Job returns orchestrator.ErrNoJob for an unknown id.
func (db *DB) Job(ctx context.Context, id orchestrator.JobID) (orchestrator.JobStatus, error) {
	all, err := db.statuses(ctx, `SELECT `+jobColumns+` FROM jobs j WHERE j.id = ?`, string(id))
	if err == nil && len(all) == 0 {
		err = orchestrator.ErrNoJob
	}
	if err != nil {
		return orchestrator.JobStatus{}, wrap(fmt.Sprintf("load job %s", id), err)
	}
	return all[0], nil
}

// Jobs lists all jobs, the oldest first.
func (db *DB) Jobs(ctx context.Context) ([]orchestrator.JobStatus, error) {
	all, err := db.statuses(ctx, `SELECT `+jobColumns+` FROM jobs j ORDER BY j.seq`)
	return all, wrap("list jobs", err)
}

type statusRow struct {
	orchestrator.JobStatus
	last string
}

func (db *DB) statuses(ctx context.Context, query string, args ...any) ([]orchestrator.JobStatus, error) {
	rows, err := sqlite.Many(ctx, db.file, scanStatus, query, args...)
	if err != nil {
		return nil, err
	}
	var all []orchestrator.JobStatus
	for _, row := range rows {
		if row.last != "" {
			last, err := sqlite.One(ctx, db.file, scan(runFields), `SELECT `+runColumns+` FROM job_runs WHERE id = ?`, row.last)
			if err != nil && !errors.Is(err, sql.ErrNoRows) { // it may have been deleted since the query
				return nil, err
			}
			if err == nil {
				row.Last = &last
			}
		}
		all = append(all, row.JobStatus)
	}
	return all, nil
}

// RecordRuns stores runs and the next moment of their job, all or none. It skips runs with a stored id and returns the
// others. orchestrator.ErrNoJob for an unknown job.
func (db *DB) RecordRuns(ctx context.Context, job orchestrator.JobID, runs []orchestrator.JobRun, next, planned time.Time) ([]orchestrator.JobRun, error) {
	var fresh []orchestrator.JobRun
	err := db.write(ctx, func(t tx) error {
		err := t.execOr(orchestrator.ErrNoJob, `UPDATE jobs SET next = ?, planned = ? WHERE id = ?`, millis(next), millis(planned), string(job))
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

// recordRun stores a run unless its id is stored, and returns the number of new rows.
func (t tx) recordRun(r orchestrator.JobRun) (int64, error) {
	return t.insert("job_runs", runColumns, `ON CONFLICT (id) DO NOTHING`, runFields(&r)...)
}

func runFields(r *orchestrator.JobRun) []any {
	return []any{&r.ID, &r.Job, &r.Cause, moment{&r.Due}, &r.StandsFor, &r.Prompt, &r.Attempt, moment{&r.NotBefore}, &r.State,
		moment{&r.Asked}, moment{&r.Ended}, &r.Result.Text, &r.Result.Reason, &r.Result.Changed, &r.Result.Notified, &r.Result.CostUSD}
}

// MoveRun stores the changed fields of an open run. It does not change a run that ended, and ignores an unknown id.
func (db *DB) MoveRun(ctx context.Context, r orchestrator.JobRun) error {
	return wrap(fmt.Sprintf("move run %s", r.ID), db.write(ctx, func(t tx) error {
		_, err := t.moveRun(r)
		return err
	}))
}

func (t tx) moveRun(r orchestrator.JobRun) (int64, error) {
	return t.Exec(`UPDATE job_runs SET attempt = ?, not_before = ?, state = ?, asked = ?, ended = ?, text = ?, reason = ?,
		changed = ?, told = ?, cost_usd = ? WHERE id = ? AND `+openRun,
		r.Attempt, millis(r.NotBefore), string(r.State), millis(r.Asked), millis(r.Ended), r.Result.Text, r.Result.Reason,
		r.Result.Changed, r.Result.Notified, r.Result.CostUSD, string(r.ID))
}

// EndRun is MoveRun for a run that ended. It adds the cost of the run to its job, once, and stores the result of the job.
func (db *DB) EndRun(ctx context.Context, r orchestrator.JobRun, result orchestrator.JobResult) error {
	return wrap(fmt.Sprintf("end run %s", r.ID), db.write(ctx, func(t tx) error {
		n, err := t.moveRun(r)
		if err != nil || n == 0 {
			return err
		}
		_, err = t.Exec(`UPDATE jobs SET runs = runs + 1, cost_usd = cost_usd + ?, digest = ?, shown = ?, same = ? WHERE id = ?`,
			r.Result.CostUSD, result.Digest, string(result.Shown), result.Same, string(r.Job))
		return err
	}))
}

// MarkNotified records that the chat shows the result of a run.
func (db *DB) MarkNotified(ctx context.Context, id orchestrator.JobRunID) error {
	return db.run(ctx, fmt.Sprintf("mark run %s as notified", id), db.write, `UPDATE job_runs SET told = 1 WHERE id = ?`, string(id))
}

// OpenRuns lists runs that are open, or ended and not notified, in the order in which they were recorded.
func (db *DB) OpenRuns(ctx context.Context) ([]orchestrator.JobRun, error) {
	all, err := sqlite.Many(ctx, db.file, scan(runFields), `SELECT `+runColumns+` FROM job_runs WHERE told = 0 ORDER BY seq`)
	return all, wrap("list open runs", err)
}

// Runs lists the last runs of a job, at most limit, the newest first.
func (db *DB) Runs(ctx context.Context, job orchestrator.JobID, limit int) ([]orchestrator.JobRun, error) {
	all, err := sqlite.Many(ctx, db.file, scan(runFields), `SELECT `+runColumns+` FROM job_runs WHERE job = ? ORDER BY seq DESC LIMIT ?`,
		string(job), atMost(limit))
	return all, wrap(fmt.Sprintf("list runs of job %s", job), err)
}

func scanStatus(row sqlite.Row) (s statusRow, err error) {
	j := &s.Job
	var spec string
	var enabled bool
	err = row.Scan(&j.ID, &j.Conversation.Chat, &j.Conversation.Topic, &enabled, &spec, moment{&j.Created}, moment{&s.Next}, moment{&s.Planned},
		&s.Digest, &s.Shown, &s.Same, &s.Runs, &s.CostUSD, &s.Open, &s.last)
	if err == nil {
		err = decodeJob(spec, j)
	}
	j.Paused = !enabled
	return s, err
}
