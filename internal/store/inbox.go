package store

import (
	"context"
	"encoding/json"
	"fmt"

	"ductor/orchestrator"
)

// AppendUpdates stores updates before they are acknowledged. Ids already known are passed over. It is not
// waited for: Flush is.
func (db *DB) AppendUpdates(ctx context.Context, updates []orchestrator.Update) error {
	if len(updates) == 0 {
		return nil
	}
	received := millis(db.now())
	err := db.write.doSoon(ctx, func(t *tx) error {
		for _, u := range updates {
			_, err := t.exec(`INSERT INTO inbox (id, raw, received) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`,
				u.ID, blob(u.Raw), received)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return wrap("append updates", err)
}

// Flush returns when all that was written before it outlives a power failure.
func (db *DB) Flush(context.Context) error { return wrap("flush", db.write.flush()) }

// PendingUpdates lists at most limit updates with an id above after that are not handled, in order of id.
func (db *DB) PendingUpdates(ctx context.Context, after int64, limit int) ([]orchestrator.Update, error) {
	all, err := many(ctx, db.read, scanUpdate,
		`SELECT id, raw FROM inbox WHERE handled = 0 AND id > ? ORDER BY id LIMIT ?`, after, atMost(limit))
	return all, wrap("list pending updates", err)
}

// LastUpdate is the highest id ever stored, 0 for none. Prune keeps it.
func (db *DB) LastUpdate(ctx context.Context) (int64, error) {
	id, err := one(ctx, db.read, scanOne[int64], `SELECT coalesce(max(id), 0) FROM inbox`)
	return id, wrap("find last update", err)
}

// FinishUpdates marks updates handled and queues the letters they caused, both or neither. An id that is not
// in the inbox is passed over.
func (db *DB) FinishUpdates(ctx context.Context, ids []int64, letters ...orchestrator.Letter) error {
	now := millis(db.now())
	err := db.write.do(ctx, func(t *tx) error {
		if err := t.handle(ids, now); err != nil {
			return err
		}
		for _, l := range letters {
			if _, err := t.post(l, now); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap("finish updates", err)
}

// handle marks updates handled. The first time counts.
func (t *tx) handle(ids []int64, now int64) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("encode update ids: %w", err)
	}
	_, err = t.exec(`UPDATE inbox SET handled = ? WHERE handled = 0 AND id IN (SELECT value FROM json_each(?))`,
		now, string(list))
	return err
}

func scanUpdate(row scanner) (u orchestrator.Update, err error) {
	err = row.Scan(&u.ID, &u.Raw)
	return u, err
}
