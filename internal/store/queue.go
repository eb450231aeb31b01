package store

import (
	"context"
	"encoding/json"
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
	return true, t.rotate(positions)
}

// moveBehind moves a queued turn right behind another queued turn of the same conversation. Each turn between them moves
// forward by one. moveBehind does nothing if the turn is already behind the other turn.
func (t tx) moveBehind(id, other cli.TurnID) error {
	positions, err := sqlite.ManyIn(t.Tx, sqlite.Value[int64],
		`SELECT q.seq FROM turns q JOIN turns t ON t.chat = q.chat AND t.topic = q.topic
		JOIN turns o ON o.chat = q.chat AND o.topic = q.topic
		WHERE t.id = ? AND o.id = ? AND o.state = 'queued' AND q.state = 'queued' AND q.delivered = 0
		AND q.seq BETWEEN t.seq AND o.seq ORDER BY q.seq DESC`, string(id), string(other))
	if err != nil {
		return err
	}
	return t.rotate(positions)
}

// rotate moves the turn at each position to the next position of the list, and the last turn to the first position.
func (t tx) rotate(positions []int64) error {
	// No two turns may have the same position, not even for a moment. Negative positions are free, so move the turns
	// there first.
	for i, from := range positions {
		to := positions[(i+1)%len(positions)]
		if _, err := t.Exec(`UPDATE turns SET seq = -? WHERE seq = ?`, to, from); err != nil {
			return err
		}
	}
	_, err := t.Exec(`UPDATE turns SET seq = -seq WHERE seq < 0`)
	return err
}

func (db *DB) SteerTurn(ctx context.Context, id, into cli.TurnID, at time.Time) (ok bool, err error) {
	err = db.write(ctx, func(t tx) error {
		ok = false
		running, err := t.Exists(`SELECT 1 FROM turns WHERE id = ? AND state = 'running'`, string(into))
		if err != nil || !running {
			return err
		}
		if promoted, err := t.moveToFront(id); err != nil || !promoted {
			return err
		}
		n, err := t.Exec(`UPDATE turns SET state = 'cancelled', steered_into = ?1, started = ?2, ended = ?2,
			(session, agent, account, model, sandbox) =
			(SELECT session, agent, account, model, sandbox FROM turns WHERE id = ?1)
			WHERE id = ?3 AND state = 'queued'`, string(into), millis(at), string(id))
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
	// Encode a nil slice as [] and not as null. With null, the condition NOT IN below would match no turn.
	known, err := json.Marshal(append([]cli.TurnID{}, read...))
	if err != nil {
		return nil, fmt.Errorf("store: encode the turns that an agent has read: %w", err)
	}
	err = db.write(ctx, func(t tx) (err error) {
		all, err = sqlite.ManyIn(t.Tx, scanTurn, `UPDATE turns SET delivered = 0
			WHERE state = 'cancelled' AND steered_into = ? AND delivered = 1
				AND id NOT IN (SELECT value FROM json_each(?)) RETURNING `+turnColumns, string(into), string(known))
		return err
	})
	// Started is the time at which ductor added the prompt of the turn to the running turn.
	slices.SortStableFunc(all, func(a, b orchestrator.Turn) int { return a.Started.Compare(b.Started) })
	return all, wrap("doubt steered turns", err)
}

func (db *DB) UnsteerTurn(ctx context.Context, id, behind cli.TurnID) (ok bool, err error) {
	err = db.write(ctx, func(t tx) error {
		n, err := t.Exec(`UPDATE turns SET state = 'queued', steered_into = '', agent = '', account = '', model = '',
			sandbox = '', started = 0, ended = 0, delivered = 0, number = 0
			WHERE id = ? AND state = 'cancelled' AND steered_into <> ''`, string(id))
		if ok = n > 0; !ok || err != nil {
			return mapForeignKey(err)
		}
		return t.moveBehind(id, behind)
	})
	return ok && err == nil, wrap(fmt.Sprintf("unsteer turn %s", id), err)
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
