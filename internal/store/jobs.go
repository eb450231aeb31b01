package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ductor/heartbeat"
)

var _ heartbeat.Store = (*DB)(nil)

const (
	runColumns = `id, job, cause, due, stands_for, prompt, attempt, not_before, state, asked, ended, text, reason,
	changed, told, cost_usd`
	openRun    = `state IN ('waiting', 'asked')`
	jobColumns = `j.id, j.chat, j.topic, j.enabled, j.spec, j.created, j.next, j.reckoned, j.digest, j.shown, j.same, j.runs, j.cost_usd,
	(SELECT count(*) FROM job_runs r WHERE r.job = j.id AND r.told = 0 AND r.` + openRun + `),
	coalesce((SELECT r.id FROM job_runs r WHERE r.job = j.id AND r.state NOT IN ('waiting', 'asked') ORDER BY r.seq DESC LIMIT 1), '')`
)

// SaveJob stores a job, new or changed, and when it is due next. What it cost and its runs stay.
func (db *DB) SaveJob(ctx context.Context, j heartbeat.Job, next, reckoned time.Time) error {
	op := fmt.Sprintf("save job %s", j.ID)
	spec, err := encodeJob(j)
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.write.do(ctx, func(t *tx) error {
		_, err := t.exec(`INSERT INTO jobs (id, chat, topic, enabled, spec, created, next, reckoned)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET chat = excluded.chat, topic = excluded.topic, enabled = excluded.enabled,
				spec = excluded.spec, created = excluded.created, next = excluded.next, reckoned = excluded.reckoned`,
			string(j.ID), j.Conversation.Chat, j.Conversation.Topic, j.Enabled, spec, millis(j.Created), millis(next), millis(reckoned))
		return err
	}))
}

// DeleteJob forgets a job and its runs; heartbeat.ErrNoJob if it is not there.
func (db *DB) DeleteJob(ctx context.Context, id heartbeat.JobID) error {
	return wrap(fmt.Sprintf("delete job %s", id), db.write.do(ctx, func(t *tx) error {
		n, err := t.exec(`DELETE FROM jobs WHERE id = ?`, string(id))
		if err == nil && n == 0 {
			err = heartbeat.ErrNoJob
		}
		return err
	}))
}

// Job returns heartbeat.ErrNoJob for an id that is not there.
func (db *DB) Job(ctx context.Context, id heartbeat.JobID) (heartbeat.Standing, error) {
	all, err := db.standings(ctx, `SELECT `+jobColumns+` FROM jobs j WHERE j.id = ?`, string(id))
	if err == nil && len(all) == 0 {
		err = heartbeat.ErrNoJob
	}
	if err != nil {
		return heartbeat.Standing{}, wrap(fmt.Sprintf("load job %s", id), err)
	}
	return all[0], nil
}

// Jobs lists all jobs in the order they were made.
func (db *DB) Jobs(ctx context.Context) ([]heartbeat.Standing, error) {
	all, err := db.standings(ctx, `SELECT `+jobColumns+` FROM jobs j ORDER BY j.seq`)
	return all, wrap("list jobs", err)
}

type standingRow struct {
	heartbeat.Standing
	last string
}

func (db *DB) standings(ctx context.Context, query string, args ...any) ([]heartbeat.Standing, error) {
	rows, err := many(ctx, db.read, scanStanding, query, args...)
	if err != nil {
		return nil, err
	}
	var all []heartbeat.Standing
	for _, row := range rows {
		if row.last != "" {
			last, err := one(ctx, db.read, scanRun, `SELECT `+runColumns+` FROM job_runs WHERE id = ?`, row.last)
			if err != nil && !errors.Is(err, sql.ErrNoRows) { // it may be deleted meanwhile
				return nil, err
			}
			if err == nil {
				row.Last = &last
			}
		}
		all = append(all, row.Standing)
	}
	return all, nil
}

// RecordRuns stores runs and when their job is due next, all or none. Runs whose id is known are passed over; it
// returns those that were not. heartbeat.ErrNoJob if the job is not there.
func (db *DB) RecordRuns(ctx context.Context, job heartbeat.JobID, runs []heartbeat.Run, next, reckoned time.Time) ([]heartbeat.Run, error) {
	var fresh []heartbeat.Run
	err := db.write.do(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE jobs SET next = ?, reckoned = ? WHERE id = ?`, millis(next), millis(reckoned), string(job))
		if err != nil {
			return err
		}
		if n == 0 {
			return heartbeat.ErrNoJob
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

// recordRun stores a run unless its id is known, and says how many rows that made.
func (t *tx) recordRun(r heartbeat.Run) (int64, error) {
	return t.exec(`INSERT INTO job_runs (`+runColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`,
		string(r.ID), string(r.Job), string(r.Cause), millis(r.Due), r.StandsFor, r.Prompt, r.Attempt, millis(r.NotBefore),
		string(r.State), millis(r.Asked), millis(r.Ended), r.Text, r.Reason, r.Changed, r.Told, r.CostUSD)
}

// MoveRun stores all that can change of a run which is open. One that has ended or is gone is left as it is.
func (db *DB) MoveRun(ctx context.Context, r heartbeat.Run) error {
	return wrap(fmt.Sprintf("move run %s", r.ID), db.write.do(ctx, func(t *tx) error {
		_, err := t.moveRun(r)
		return err
	}))
}

func (t *tx) moveRun(r heartbeat.Run) (int64, error) {
	return t.exec(`UPDATE job_runs SET attempt = ?, not_before = ?, state = ?, asked = ?, ended = ?, text = ?, reason = ?,
		changed = ?, told = ?, cost_usd = ? WHERE id = ? AND `+openRun,
		r.Attempt, millis(r.NotBefore), string(r.State), millis(r.Asked), millis(r.Ended), r.Text, r.Reason,
		r.Changed, r.Told, r.CostUSD, string(r.ID))
}

// EndRun is MoveRun for a run that ended: its cost goes to its job, once, and so does what the chat is told.
func (db *DB) EndRun(ctx context.Context, r heartbeat.Run, news heartbeat.News) error {
	return wrap(fmt.Sprintf("end run %s", r.ID), db.write.do(ctx, func(t *tx) error {
		n, err := t.moveRun(r)
		if err != nil || n == 0 {
			return err
		}
		_, err = t.exec(`UPDATE jobs SET runs = runs + 1, cost_usd = cost_usd + ?, digest = ?, shown = ?, same = ? WHERE id = ?`,
			r.CostUSD, news.Digest, string(news.Shown), news.Same, string(r.Job))
		return err
	}))
}

// ToldRun records that the chat has the result of a run.
func (db *DB) ToldRun(ctx context.Context, id heartbeat.RunID) error {
	return wrap(fmt.Sprintf("mark run %s told", id), db.write.do(ctx, func(t *tx) error {
		_, err := t.exec(`UPDATE job_runs SET told = 1 WHERE id = ?`, string(id))
		return err
	}))
}

// OpenRuns lists runs that are open, or ended and not told, in the order they were recorded.
func (db *DB) OpenRuns(ctx context.Context) ([]heartbeat.Run, error) {
	all, err := many(ctx, db.read, scanRun, `SELECT `+runColumns+` FROM job_runs WHERE told = 0 ORDER BY seq`)
	return all, wrap("list open runs", err)
}

// Runs lists the last runs of a job, at most limit, newest first.
func (db *DB) Runs(ctx context.Context, job heartbeat.JobID, limit int) ([]heartbeat.Run, error) {
	all, err := many(ctx, db.read, scanRun, `SELECT `+runColumns+` FROM job_runs WHERE job = ? ORDER BY seq DESC LIMIT ?`,
		string(job), atMost(limit))
	return all, wrap(fmt.Sprintf("list runs of job %s", job), err)
}

func scanRun(row scanner) (r heartbeat.Run, err error) {
	var due, notBefore, asked, ended int64
	err = row.Scan(&r.ID, &r.Job, &r.Cause, &due, &r.StandsFor, &r.Prompt, &r.Attempt, &notBefore, &r.State, &asked, &ended,
		&r.Text, &r.Reason, &r.Changed, &r.Told, &r.CostUSD)
	r.Due, r.NotBefore, r.Asked, r.Ended = instant(due), instant(notBefore), instant(asked), instant(ended)
	return r, err
}

func scanStanding(row scanner) (s standingRow, err error) {
	var j heartbeat.Job
	var spec string
	var created, next, reckoned int64
	err = row.Scan(&j.ID, &j.Conversation.Chat, &j.Conversation.Topic, &j.Enabled, &spec, &created, &next, &reckoned,
		&s.Digest, &s.Shown, &s.Same, &s.Runs, &s.CostUSD, &s.Open, &s.last)
	if err != nil {
		return standingRow{}, err
	}
	j.Created, s.Next, s.Reckoned = instant(created), instant(next), instant(reckoned)
	if err := decodeJob(spec, &j); err != nil {
		return standingRow{}, err
	}
	s.Job = j
	return s, nil
}

// encodeJob gives all of a job that has no column of its own.
func encodeJob(j heartbeat.Job) (string, error) {
	text, err := json.Marshal(rowOfJob(j))
	if err != nil {
		return "", fmt.Errorf("encode job: %w", err)
	}
	return string(text), nil
}
