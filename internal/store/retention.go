package store

import (
	"context"
	"time"

	"ductor/heartbeat"
	"ductor/internal/store/sqlite"
)

// Pruned counts what Prune deleted.
type Pruned struct{ Updates, Messages, Cards, Drafts, Approvals, Consults int64 }

// pruneBatch bounds how long one deletion keeps other writers waiting.
const pruneBatch = 500

// Prune deletes what ductor does not need again and is older than before: handled updates, messages that owe
// nothing, what was asked and decided, cards of turns whose outcome was delivered, but for those that show the last
// result of a job, and what is kept beside the cards of turns: drafts of answers, unfinished edits and jobs,
// cards of waiting turns, and side sessions. Turns and sessions stay: they are the history. So does the audit; see AuditTrail. It
// works in small transactions; when ctx ends in between, what was deleted is counted.
func (db *DB) Prune(ctx context.Context, before time.Time) (Pruned, error) {
	var p Pruned
	at := millis(before)
	for _, d := range []struct {
		count *int64
		query string
	}{
		{&p.Updates, `DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE handled > 0 AND handled < ? LIMIT ?)`},
		{&p.Messages, `DELETE FROM messages WHERE seq IN (SELECT m.seq FROM messages m
			WHERE m.content IS NULL AND m.moved < ? AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn) LIMIT ?)`},
		{&p.Messages, `DELETE FROM messages WHERE seq IN (SELECT m.seq FROM messages m JOIN turns t ON t.id = m.turn
			WHERE t.delivered = 1 AND t.ended < ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.shown = t.id) LIMIT ?)`},
		{&p.Cards, `DELETE FROM cards WHERE turn IN (SELECT c.turn FROM cards c JOIN turns t ON t.id = c.turn
			WHERE t.delivered = 1 AND t.ended < ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.shown = t.id) LIMIT ?)`},
		{&p.Drafts, `DELETE FROM cards WHERE turn IN (SELECT c.turn FROM cards c
			WHERE c.saved < ? AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = c.turn) LIMIT ?)`},
		{&p.Approvals, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE state <> 'open' AND decided < ?
			AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = asks.turn AND t.state = 'running') LIMIT ?)`},
		{&p.Consults, `DELETE FROM consults WHERE id IN (SELECT id FROM consults WHERE used < ? LIMIT ?)`},
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
		err := db.write(ctx, func(t tx) (err error) {
			n, err = t.Exec(query, at, pruneBatch)
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

// Transcripts is the heartbeat.Shelf of what was said: prompts and answers of turns whose outcome was delivered.
// The turns stay, without their words: they are what keeps a job or an update from running twice.
func (db *DB) Transcripts() heartbeat.Shelf {
	return &shelf{db: db, what: "transcripts",
		all: `SELECT seq, ended AS at, length(CAST(prompt AS BLOB)) + length(CAST(answer AS BLOB)) AS bytes FROM turns
			WHERE delivered = 1 AND ended > 0 AND (prompt <> '' OR answer <> '')`,
		trim: `UPDATE turns SET prompt = '', answer = '', attachments = NULL WHERE seq IN (SELECT value FROM json_each(?)) AND delivered = 1`}
}

// AuditTrail is the heartbeat.Shelf of the audit.
func (db *DB) AuditTrail() heartbeat.Shelf {
	return &shelf{db: db, what: "audit",
		all:  `SELECT id AS seq, at, 100 + length(CAST(title AS BLOB)) + length(rule) + length(reason) AS bytes FROM audit`,
		trim: `DELETE FROM audit WHERE id IN (SELECT value FROM json_each(?))`}
}

// JobRuns is the heartbeat.Shelf of runs of jobs that are over. Their costs stay with their jobs.
func (db *DB) JobRuns() heartbeat.Shelf {
	return &shelf{db: db, what: "runs",
		all: `SELECT seq, ended AS at, 200 + length(CAST(prompt AS BLOB)) + length(CAST(text AS BLOB)) AS bytes FROM job_runs
			WHERE told = 1 AND ended > 0`,
		trim: `DELETE FROM job_runs WHERE seq IN (SELECT value FROM json_each(?)) AND told = 1 AND ended > 0`}
}

// shelf trims rows of one table.
type shelf struct {
	db   *DB
	what string
	all  string // gives seq, at and bytes of every row that may go
	trim string // takes rows by a JSON list of seq, where they still may go: a seq can be that of another row by now
}

type shelfRow struct{ seq, at, bytes int64 }

func shelfFields(r *shelfRow) []any { return []any{&r.seq, &r.at, &r.bytes} }

// Plan says what Trim would take.
func (s *shelf) Plan(ctx context.Context, c heartbeat.Cut) (heartbeat.Trimmed, error) {
	_, t, err := s.part(ctx, c)
	return t, wrap("look through "+s.what, err)
}

// Trim takes it, in small transactions.
func (s *shelf) Trim(ctx context.Context, c heartbeat.Cut) (heartbeat.Trimmed, error) {
	gone, t, err := s.part(ctx, c)
	if err != nil {
		return heartbeat.Trimmed{}, wrap("look through "+s.what, err)
	}
	for len(gone) > 0 {
		batch := gone[:min(len(gone), pruneBatch)]
		if err := s.take(ctx, batch); err != nil {
			for _, r := range gone {
				t.Take(-1, -r.bytes)
			}
			return t, err
		}
		gone = gone[len(batch):]
	}
	return t, nil
}

func (s *shelf) take(ctx context.Context, rows []shelfRow) error {
	var seqs []int64
	for _, r := range rows {
		seqs = append(seqs, r.seq)
	}
	list, err := encodeList(seqs)
	if err != nil {
		return err
	}
	return s.db.run(ctx, "trim "+s.what, s.db.write, s.trim, list)
}

// part parts what goes from what stays, the oldest first.
func (s *shelf) part(ctx context.Context, c heartbeat.Cut) (gone []shelfRow, t heartbeat.Trimmed, err error) {
	rows, err := sqlite.Many(ctx, s.db.file, scan(shelfFields), `SELECT seq, at, bytes FROM (`+s.all+`) ORDER BY at, seq`)
	if err != nil {
		return nil, t, err
	}
	for _, r := range rows {
		t.LeftItems, t.LeftBytes = t.LeftItems+1, t.LeftBytes+r.bytes
	}
	for i, r := range rows {
		if !c.Goes(t, time.UnixMilli(r.at)) {
			return rows[:i], t, nil
		}
		t.Take(1, r.bytes)
	}
	return rows, t, nil
}
