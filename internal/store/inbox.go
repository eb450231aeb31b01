package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// After reuseAge, Telegram may use the ID of a stored update for a new one. Telegram repeats an update for at most a
// day, and restarts its numbering after a week without updates.
const reuseAge = 3 * 24 * time.Hour

// AppendUpdates uses a shared transaction. It stores an update without Raw as already handled. If the database contains
// an update with the same ID, AppendUpdates usually keeps this older update. It replaces the older update only if that
// is handled and was received more than reuseAge ago.
func (db *DB) AppendUpdates(ctx context.Context, updates []orchestrator.Update) ([]orchestrator.Update, error) {
	if len(updates) == 0 {
		return nil, nil
	}
	now := db.now()
	var fresh []orchestrator.Update
	err := db.writeShared(ctx, func(t tx) error {
		for _, u := range updates {
			added, err := t.insertUpdate(u, now)
			if err != nil {
				return err
			}
			if added && u.Raw != nil {
				u.Received = fromMillis(millis(now))
				fresh = append(fresh, u)
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("append updates", err)
	}
	return fresh, nil
}

// insertUpdate stores one update. It returns false if the update is already stored.
func (t tx) insertUpdate(u orchestrator.Update, now time.Time) (bool, error) {
	received, handled := millis(now), int64(0)
	if u.Raw == nil {
		handled = received
	}
	n, err := t.Exec(`INSERT INTO inbox (id, raw, received, handled) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
		SET raw = excluded.raw, received = excluded.received, handled = excluded.handled, crashes = 0
		WHERE inbox.handled > 0 AND inbox.received < ?`,
		u.ID, blob(u.Raw), received, handled, millis(now.Add(-reuseAge)))
	return n > 0, err
}

func (db *DB) PendingUpdates(ctx context.Context, after int64, limit int) ([]orchestrator.Update, error) {
	all, err := sqlite.Many(ctx, db.file, scan(updateFields),
		`SELECT id, raw, received, crashes FROM inbox WHERE handled = 0 AND id > ?
			ORDER BY id LIMIT ?`, after, nonNegative(limit))
	return all, wrap("list pending updates", err)
}

func (db *DB) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return wrap("finish updates", db.write(ctx, db.finishUpdates(ids, notices)))
}

func (db *DB) ForgetUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return wrap("forget updates", db.writeSecret(ctx, db.finishUpdates(ids, notices)))
}

// finishUpdates returns a function that marks updates as handled and stores notices, for use in a transaction.
func (db *DB) finishUpdates(ids []int64, notices []orchestrator.Message) func(tx) error {
	now := millis(db.now())
	return func(t tx) error {
		if err := t.markHandled(ids, now); err != nil {
			return err
		}
		for _, n := range notices {
			if err := t.saveMessage(n, now); err != nil {
				return err
			}
		}
		return nil
	}
}

// markHandled marks updates as handled and deletes their text. It does not change updates that are already handled.
func (t tx) markHandled(ids []int64, now int64) error {
	if len(ids) == 0 {
		return nil
	}
	const blank = `UPDATE inbox SET handled = ?, raw = x'' WHERE handled = 0 AND id `
	if len(ids) == 1 {
		_, err := t.Exec(blank+`= ?`, now, ids[0])
		return err
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("encode update ids: %w", err)
	}
	_, err = t.Exec(blank+`IN (SELECT value FROM json_each(?))`, now, string(list))
	return err
}

func updateFields(u *orchestrator.Update) []any {
	return []any{&u.ID, &u.Raw, timeColumn{&u.Received}, &u.Crashes}
}

// CountCrash records a crash of ductor for everything that may have caused it: unhandled updates, running turns, and
// turns whose outcome is not delivered.
func (db *DB) CountCrash(ctx context.Context) error {
	return db.setCrashes(ctx, "count a crash", "crashes + 1")
}

// ForgetCrashes resets the counters of CountCrash to 0.
func (db *DB) ForgetCrashes(ctx context.Context) error {
	return db.setCrashes(ctx, "reset crash counts", "0")
}

func (db *DB) setCrashes(ctx context.Context, op, value string) error {
	return wrap(op, db.write(ctx, func(t tx) error {
		if _, err := t.Exec(`UPDATE inbox SET crashes = ` + value + ` WHERE handled = 0`); err != nil {
			return err
		}
		_, err := t.Exec(`UPDATE turns SET crashes = ` + value + ` WHERE delivered = 0 AND state <> 'queued'`)
		return err
	}))
}
