package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// reuseAge is how old a stored update is at least when another one may have its id. Telegram gives an update
// again for a day at most, and begins to count anew after a week without any.
const reuseAge = 3 * 24 * time.Hour

// AppendUpdates stores updates before they are acknowledged, and returns those that have something in them and
// were not stored before. An update without Raw counts as handled. A handled one that is older than reuseAge
// gives way to the next one with its id. It shares a transaction: Flush waits for that.
func (db *DB) AppendUpdates(ctx context.Context, updates []orchestrator.Update) ([]orchestrator.Update, error) {
	if len(updates) == 0 {
		return nil, nil
	}
	now := db.now()
	var fresh []orchestrator.Update
	err := db.share(ctx, func(t tx) error {
		for _, u := range updates {
			added, err := t.receive(u, now)
			if err != nil {
				return err
			}
			if added && u.Raw != nil {
				u.Received = instant(millis(now))
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

// receive stores one update. False means that it is known.
func (t tx) receive(u orchestrator.Update, now time.Time) (bool, error) {
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

// PendingUpdates lists at most limit updates with an id above after that are not handled, in order of id.
func (db *DB) PendingUpdates(ctx context.Context, after int64, limit int) ([]orchestrator.Update, error) {
	all, err := sqlite.Many(ctx, db.file, scan(updateFields),
		`SELECT id, raw, received, crashes FROM inbox WHERE handled = 0 AND id > ? ORDER BY id LIMIT ?`, after, atMost(limit))
	return all, wrap("list pending updates", err)
}

// FinishUpdates marks updates handled and queues the notices they caused, both or neither. An id that is not
// in the inbox is passed over.
func (db *DB) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return wrap("finish updates", db.write(ctx, db.finishing(ids, notices)))
}

// ForgetUpdates is FinishUpdates for updates that hold a secret: when it returns, no file of the database holds
// their text.
func (db *DB) ForgetUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return wrap("forget updates", db.writeSecret(ctx, db.finishing(ids, notices)))
}

func (db *DB) finishing(ids []int64, notices []orchestrator.Message) func(tx) error {
	now := millis(db.now())
	return func(t tx) error {
		if err := t.handle(ids, now); err != nil {
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

// handle marks updates handled and blanks their text, which is of no use any more. The first time counts.
func (t tx) handle(ids []int64, now int64) error {
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
	return []any{&u.ID, &u.Raw, moment{&u.Received}, &u.Crashes}
}

// CountCrash records that ductor crashed: each update that is not handled, and each turn that runs or ended and is not
// shown, may be why.
func (db *DB) CountCrash(ctx context.Context) error {
	return db.setCrashes(ctx, "count a crash", "crashes + 1")
}

// ForgetCrashes records that what is there is not why ductor crashed.
func (db *DB) ForgetCrashes(ctx context.Context) error {
	return db.setCrashes(ctx, "forget crashes", "0")
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
