package store

import (
	"context"
	"time"

	"ductor/heartbeat"
	"ductor/internal/store/sqlite"
)

// Pruned counts the rows that Prune has deleted, by kind.
type Pruned struct{ Updates, Messages, Cards, Drafts, Approvals int64 }

// pruneBatch limits the rows that one transaction deletes, so that other writers do not wait long.
const pruneBatch = 500

// Prune deletes rows that are older than the given time and that ductor no longer needs:
//   - handled updates
//   - messages without content left to send
//   - closed approvals
//   - the messages and cards of delivered turns, except for the turn with the last result of a job
//   - content that SaveCard stored under names that are not turns, such as drafts
//
// Turns and sessions stay, because they are the history. Audit entries belong to AuditTrail. Prune uses several small
// transactions. Even with an error, the counts of deleted rows are correct.
func (db *DB) Prune(ctx context.Context, before time.Time) (Pruned, error) {
	var p Pruned
	at := millis(before)
	for _, d := range []struct {
		count *int64
		query string
	}{
		{&p.Updates, `DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE handled > 0 AND handled < ? LIMIT ?)`},
		{&p.Messages, `DELETE FROM messages WHERE seq IN (SELECT m.seq FROM messages m
			WHERE m.content IS NULL AND m.moved < ? AND NOT EXISTS (SELECT 1 FROM turns t
			WHERE t.id = m.turn) LIMIT ?)`},
		{&p.Messages, `DELETE FROM messages WHERE seq IN (SELECT m.seq FROM messages m JOIN turns t ON t.id = m.turn
			WHERE t.delivered = 1 AND t.ended < ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.shown = t.id) LIMIT ?)`},
		{&p.Cards, `DELETE FROM cards WHERE turn IN (SELECT c.turn FROM cards c JOIN turns t ON t.id = c.turn
			WHERE t.delivered = 1 AND t.ended < ? AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.shown = t.id) LIMIT ?)`},
		{&p.Drafts, `DELETE FROM cards WHERE turn IN (SELECT c.turn FROM cards c
			WHERE c.saved < ? AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = c.turn) LIMIT ?)`},
		{&p.Approvals, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE state <> 'open' AND decided < ?
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

// Transcripts is the dataset of prompts and answers of delivered turns. Its method Trim deletes the texts, but not the
// turns: ductor needs the turns to notice that a job or an update has run already.
func (db *DB) Transcripts() heartbeat.Dataset {
	return &dataset{db: db, name: "transcripts",
		selection: `SELECT seq, ended AS at,
			length(CAST(prompt AS BLOB)) + length(CAST(answer AS BLOB)) AS bytes FROM turns
			WHERE delivered = 1 AND ended > 0 AND (prompt <> '' OR answer <> '')`,
		deletion: `UPDATE turns SET prompt = '', answer = '', attachments = NULL WHERE seq IN (SELECT value
			FROM json_each(?)) AND delivered = 1`}
}

// AuditTrail is the dataset of audit entries.
func (db *DB) AuditTrail() heartbeat.Dataset {
	return &dataset{db: db, name: "audit",
		selection: `SELECT id AS seq, at, 100 + length(CAST(title AS BLOB)) + length(rule) + length(reason) AS bytes
			FROM audit`,
		deletion: `DELETE FROM audit WHERE id IN (SELECT value FROM json_each(?))`}
}

// JobRuns is the dataset of ended job runs. If ductor deletes a run, the job keeps the cost of the run.
func (db *DB) JobRuns() heartbeat.Dataset {
	return &dataset{db: db, name: "runs",
		selection: `SELECT seq, ended AS at, 200 + length(CAST(prompt AS BLOB)) + length(CAST(text AS BLOB)) AS bytes
			FROM job_runs
			WHERE told = 1 AND ended > 0`,
		deletion: `DELETE FROM job_runs WHERE seq IN (SELECT value FROM json_each(?)) AND told = 1 AND ended > 0`}
}

// dataset implements heartbeat.Dataset. It deletes old rows of one table, or only the texts in them.
type dataset struct {
	db        *DB
	name      string
	selection string // query that lists the rows that may be deleted, with columns seq, at and bytes
	// deletion is a statement that deletes rows. Its parameter is a JSON list of values of the column seq. deletion
	// repeats the conditions of the query in selection, because a row may have changed since this query.
	deletion string
}

type datasetRow struct{ seq, at, bytes int64 }

func datasetRowFields(r *datasetRow) []any { return []any{&r.seq, &r.at, &r.bytes} }

func (s *dataset) Plan(ctx context.Context, c heartbeat.Cutoff) (heartbeat.TrimStats, error) {
	_, t, err := s.selectOld(ctx, c)
	return t, wrap("select old rows of "+s.name, err)
}

// Trim uses several small transactions.
func (s *dataset) Trim(ctx context.Context, c heartbeat.Cutoff) (heartbeat.TrimStats, error) {
	gone, t, err := s.selectOld(ctx, c)
	if err != nil {
		return heartbeat.TrimStats{}, wrap("select old rows of "+s.name, err)
	}
	for len(gone) > 0 {
		batch := gone[:min(len(gone), pruneBatch)]
		if err := s.deleteRows(ctx, batch); err != nil {
			for _, r := range gone {
				t.CountRemoved(-1, -r.bytes)
			}
			return t, err
		}
		gone = gone[len(batch):]
	}
	return t, nil
}

func (s *dataset) deleteRows(ctx context.Context, rows []datasetRow) error {
	var seqs []int64
	for _, r := range rows {
		seqs = append(seqs, r.seq)
	}
	list, err := encodeList(seqs)
	if err != nil {
		return err
	}
	return s.db.exec(ctx, "trim "+s.name, s.db.write, s.deletion, list)
}

// selectOld returns the rows to delete, the oldest first, and their totals.
func (s *dataset) selectOld(
	ctx context.Context, c heartbeat.Cutoff,
) (gone []datasetRow, t heartbeat.TrimStats, err error) {
	rows, err := sqlite.Many(ctx, s.db.file, scan(datasetRowFields),
		`SELECT seq, at, bytes FROM (`+s.selection+`) ORDER BY at, seq`)
	if err != nil {
		return nil, t, err
	}
	for _, r := range rows {
		t.LeftItems, t.LeftBytes = t.LeftItems+1, t.LeftBytes+r.bytes
	}
	for i, r := range rows {
		if !c.Removes(t, time.UnixMilli(r.at)) {
			return rows[:i], t, nil
		}
		t.CountRemoved(1, r.bytes)
	}
	return rows, t, nil
}
