package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ductor/heartbeat/webhook"
	"ductor/orchestrator"
)

func (db *DB) RecordDelivery(ctx context.Context, d webhook.Delivery) (result webhook.Result, err error) {
	err = db.write(ctx, func(t tx) (err error) {
		result, err = t.recordDelivery(d)
		return err
	})
	return result, wrap(fmt.Sprintf("record delivery of %s", d.Run.Job), err)
}

func (t tx) recordDelivery(d webhook.Delivery) (webhook.Result, error) {
	job := string(d.Run.Job)
	var enabled bool
	err := t.Row(`SELECT enabled FROM jobs WHERE id = ?`, []any{job}, &enabled)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", orchestrator.ErrNoJob
	case err != nil:
		return "", err
	case !enabled:
		return webhook.Paused, nil
	}
	for _, seen := range []struct {
		key string
		as  webhook.Result
	}{{d.Signature, webhook.Replayed}, {d.Event, webhook.Repeated}} {
		there, err := t.Exists(`SELECT 1 FROM hook_seen WHERE hook = ? AND seal = ? AND seal <> ''`, job, seen.key)
		if err != nil || there {
			return seen.as, err
		}
	}
	var open int
	if err := t.Row(`SELECT count(*) FROM job_runs WHERE job = ? AND told = 0
		AND `+openRun, []any{job}, &open); err != nil {
		return "", err
	}
	if open >= orchestrator.MostQueuedRuns {
		return webhook.QueueFull, nil
	}
	for _, key := range []string{d.Signature, d.Event} {
		if _, err := t.Exec(`INSERT INTO hook_seen (hook, seal, at) SELECT ?, ?, ?
			WHERE ? <> ''`, job, key, millis(d.At), key); err != nil {
			return "", err
		}
	}
	_, err = t.recordRun(d.Run)
	return webhook.Recorded, err
}

// PruneDeliveries deletes in several small transactions, like Prune.
func (db *DB) PruneDeliveries(ctx context.Context, before time.Time) (int64, error) {
	var n int64
	err := db.deleteAll(ctx, &n, `DELETE FROM hook_seen WHERE (hook, seal) IN
		(SELECT hook, seal FROM hook_seen WHERE at < ? LIMIT ?)`, millis(before))
	return n, wrap("prune deliveries", err)
}
