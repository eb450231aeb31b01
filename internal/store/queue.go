package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

func (db *DB) PromoteTurn(ctx context.Context, id cli.TurnID) (ok bool, err error) {
	err = db.write(ctx, func(t tx) (err error) {
		ok, err = t.moveToFront(id)
		return err
	})
	return ok && err == nil, wrap(fmt.Sprintf("promote turn %s", id), err)
}

// moveToFront moves a turn to the front of its queue. The turn gets the position of the first turn, and each turn that
// was ahead of it moves back by one.
func (t tx) moveToFront(id cli.TurnID) (bool, error) {
	positions, err := sqlite.ManyIn(t.Tx, sqlite.Value[int64],
		`SELECT q.seq FROM turns q JOIN turns t ON t.chat = q.chat AND t.topic = q.topic
		WHERE t.id = ? AND t.state = 'queued' AND q.state = 'queued' AND q.delivered = 0 AND q.seq <= t.seq
		ORDER BY q.seq`, string(id))
	if err != nil || len(positions) == 0 {
		return false, err
	}
	// No two turns may have the same position, not even for a moment. Negative positions are free, so move the turns
	// there first.
	for i, from := range positions {
		to := positions[(i+1)%len(positions)]
		if _, err := t.Exec(`UPDATE turns SET seq = -? WHERE seq = ?`, to, from); err != nil {
			return false, err
		}
	}
	_, err = t.Exec(`UPDATE turns SET seq = -seq WHERE seq < 0`)
	return true, err
}

func (db *DB) SteerTurn(ctx context.Context, id, into cli.TurnID, at time.Time) (ok bool, err error) {
	err = db.write(ctx, func(t tx) error {
		ok = false
		var session, agent, account, model, sandbox string
		err := t.Row(`SELECT coalesce(session, ''), agent, account, model, sandbox FROM turns
			WHERE id = ? AND state = 'running'`,
			[]any{string(into)}, &session, &agent, &account, &model, &sandbox)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if promoted, err := t.moveToFront(id); err != nil || !promoted {
			return err
		}
		n, err := t.Exec(`UPDATE turns SET state = 'cancelled', steered_into = ?, session = nullif(?, ''), agent = ?,
			account = ?, model = ?, sandbox = ?, started = ?, ended = ? WHERE id = ? AND state = 'queued'`,
			string(into), session, agent, account, model, sandbox, millis(at), millis(at), string(id))
		ok = n > 0
		return err
	})
	return ok && err == nil, wrap(fmt.Sprintf("steer turn %s", id), err)
}

func (db *DB) MarkSteered(ctx context.Context, id, into cli.TurnID) (bool, error) {
	return db.changeQueued(ctx, "mark as steered", id, `UPDATE turns SET delivered = 1
		WHERE id = ? AND state = 'cancelled' AND steered_into = ?`, string(id), string(into))
}

func (db *DB) DoubtSteered(ctx context.Context, into cli.TurnID,
	read ...cli.TurnID) (all []orchestrator.Turn, err error) {
	err = db.write(ctx, func(t tx) error {
		query := `SELECT ` + turnColumns + ` FROM turns
			WHERE state = 'cancelled' AND steered_into = ? AND delivered = 1 ORDER BY seq`
		all, err = sqlite.ManyIn(t.Tx, scanTurn, query, string(into))
		all = slices.DeleteFunc(all, func(steered orchestrator.Turn) bool { return slices.Contains(read, steered.ID) })
		for _, steered := range all {
			if err == nil {
				_, err = t.Exec(`UPDATE turns SET delivered = 0 WHERE id = ?`, string(steered.ID))
			}
		}
		return err
	})
	return all, wrap("doubt steered turns", err)
}

func (db *DB) UnsteerTurn(ctx context.Context, id cli.TurnID) (bool, error) {
	return db.changeQueued(ctx, "unsteer", id,
		`UPDATE turns SET state = 'queued', steered_into = '', agent = '', account = '', model = '', sandbox = '',
		started = 0, ended = 0, delivered = 0, number = 0
		WHERE id = ? AND state = 'cancelled' AND steered_into <> ''`, string(id))
}

// Load counts the open turns, approvals and job runs, and all jobs.
func (db *DB) Load(ctx context.Context) (orchestrator.Load, error) {
	l, err := sqlite.One(ctx, db.file, scan(loadFields),
		`SELECT (SELECT count(*) FROM turns WHERE state = 'queued' AND delivered = 0),
		(SELECT count(*) FROM turns WHERE state = 'running' AND delivered = 0),
		(SELECT count(*) FROM asks WHERE state = 'open'),
		(SELECT count(*) FROM jobs WHERE enabled), (SELECT count(*) FROM jobs WHERE NOT enabled),
		(SELECT count(*) FROM job_runs WHERE told = 0 AND state IN ('waiting', 'asked'))`)
	return l, wrap("count open work", err)
}

func loadFields(l *orchestrator.Load) []any {
	return []any{&l.Queued, &l.Running, &l.Approvals, &l.Jobs, &l.JobsPaused, &l.JobRuns}
}
