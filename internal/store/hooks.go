package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ductor/heartbeat"
)

var _ heartbeat.HookStore = (*DB)(nil)

// TakeHook records a run and the seals of its delivery, all or none; see heartbeat.HookStore.
func (db *DB) TakeHook(ctx context.Context, d heartbeat.Delivery) (taken heartbeat.Taken, err error) {
	err = db.write.do(ctx, func(t *tx) (err error) {
		taken, err = t.takeHook(d)
		return err
	})
	return taken, wrap(fmt.Sprintf("take delivery of %s", d.Run.Job), err)
}

func (t *tx) takeHook(d heartbeat.Delivery) (heartbeat.Taken, error) {
	job := string(d.Run.Job)
	var enabled bool
	err := t.row(`SELECT enabled FROM jobs WHERE id = ?`, []any{job}, &enabled)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", heartbeat.ErrNoJob
	case err != nil:
		return "", err
	case !enabled:
		return heartbeat.TakenPaused, nil
	}
	for _, seen := range []struct {
		seal string
		as   heartbeat.Taken
	}{{d.Seal, heartbeat.Replayed}, {d.Event, heartbeat.TakenBefore}} {
		there, err := t.exists(`SELECT 1 FROM hook_seen WHERE hook = ? AND seal = ? AND seal <> ''`, job, seen.seal)
		if err != nil || there {
			return seen.as, err
		}
	}
	var open int
	if err := t.row(`SELECT count(*) FROM job_runs WHERE job = ? AND told = 0 AND `+openRun, []any{job}, &open); err != nil {
		return "", err
	}
	if open >= heartbeat.MostQueued {
		return heartbeat.TakenFull, nil
	}
	for _, seal := range []string{d.Seal, d.Event} {
		if _, err := t.exec(`INSERT INTO hook_seen (hook, seal, at) SELECT ?, ?, ? WHERE ? <> ''`, job, seal, millis(d.At), seal); err != nil {
			return "", err
		}
	}
	_, err = t.recordRun(d.Run)
	return heartbeat.TakenNow, err
}

// ForgetHooks forgets seals that are older than before, and says how many. Small transactions; see Prune.
func (db *DB) ForgetHooks(ctx context.Context, before time.Time) (int64, error) {
	var n int64
	err := db.deleteAll(ctx, &n, `DELETE FROM hook_seen WHERE (hook, seal) IN
		(SELECT hook, seal FROM hook_seen WHERE at < ? LIMIT ?)`, millis(before))
	return n, wrap("forget deliveries", err)
}
