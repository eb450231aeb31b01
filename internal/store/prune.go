package store

import (
	"context"
	"time"
)

// Pruned counts what Prune deleted.
type Pruned struct{ Updates, Letters, Cards, Drafts, Asks int64 }

// pruneBatch bounds how long one deletion keeps other writers waiting.
const pruneBatch = 500

// Prune deletes what nobody will ask for again and is older than before: handled updates, letters that were sent or
// given up, what was asked and decided, cards of turns whose outcome was delivered, but for those that show the last
// result of a job, and what is kept beside the cards of turns: drafts of answers, edits and jobs that nobody finished,
// and cards of waiting turns. Turns and sessions stay: they are the history. So does the audit; see AuditTrail. It
// works in small transactions; when ctx ends in between, what was deleted is counted.
func (db *DB) Prune(ctx context.Context, before time.Time) (Pruned, error) {
	var p Pruned
	at := millis(before)
	for _, d := range []struct {
		count *int64
		query string
	}{
		{&p.Updates, `DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE handled > 0 AND handled < ? LIMIT ?)`},
		{&p.Letters, `DELETE FROM letters WHERE id IN (SELECT id FROM letters
			WHERE state IN ('sent', 'unknown', 'failed') AND moved < ? LIMIT ?)`},
		{&p.Cards, `DELETE FROM cards WHERE turn IN (SELECT c.turn FROM cards c JOIN turns t ON t.id = c.turn
			WHERE t.delivered = 1 AND t.ended < ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.shown = t.id) LIMIT ?)`},
		{new(int64), `DELETE FROM card_parts WHERE turn IN (SELECT c.turn FROM card_parts c JOIN turns t ON t.id = c.turn
			WHERE t.delivered = 1 AND t.ended < ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.shown = t.id) LIMIT ?)`},
		{&p.Drafts, `DELETE FROM cards WHERE turn IN (SELECT c.turn FROM cards c
			WHERE c.saved < ? AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = c.turn) LIMIT ?)`},
		{new(int64), `DELETE FROM card_parts WHERE turn IN (SELECT c.turn FROM card_parts c
			WHERE c.saved < ? AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = c.turn) LIMIT ?)`},
		{&p.Asks, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE state <> 'open' AND decided < ?
			AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = asks.turn AND t.state = 'running') LIMIT ?)`},
	} {
		if err := db.deleteAll(ctx, d.count, d.query, at); err != nil {
			return p, wrap("prune", err)
		}
	}
	return p, nil
}

func (db *DB) deleteAll(ctx context.Context, count *int64, query string, at int64) error {
	for {
		var n int64
		err := db.write.do(ctx, func(t *tx) (err error) {
			n, err = t.exec(query, at, pruneBatch)
			return err
		})
		if err != nil {
			return err
		}
		*count += n
		if n == 0 {
			return nil
		}
	}
}
