package store

import (
	"context"
	"fmt"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// RecordBackground records that the agent of a run continues to work in the background after its last turn. If s.Note
// is empty, RecordBackground records that the background work has ended. It does not wait for the disk.
func (db *DB) RecordBackground(ctx context.Context, s cli.Start) error {
	return wrap("record background work", db.writeLazily(ctx, func(t tx) error {
		if s.Note == "" {
			return t.endBackground(s.Run)
		}
		_, err := t.Exec(`INSERT OR REPLACE INTO background (run, turn, output, input, note)
			SELECT run, id, ?, ?, ? FROM turns WHERE run = ?
			ORDER BY seq DESC LIMIT 1`, s.Output, s.Input, s.Note, string(s.Run))
		return err
	}))
}

func (t tx) endBackground(run cli.RunID) error {
	_, err := t.Exec(`DELETE FROM background WHERE run = ?`, string(run))
	return err
}

// EndBackground does not wait for the disk.
func (db *DB) EndBackground(ctx context.Context, run cli.RunID) error {
	return wrap(fmt.Sprintf("delete the background work of run %s", run),
		db.writeLazily(ctx, func(t tx) error { return t.endBackground(run) }))
}

func (db *DB) RunningTurns(ctx context.Context) ([]cli.OpenTurn, error) {
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (o cli.OpenTurn, err error) {
		var in orchestrator.ConversationID
		var crashes int
		err = row.Scan(&o.Turn, &o.Agent, &o.Account, &o.Sandbox, &in.Chat, &in.Topic, &crashes, &o.Background,
			&o.Start.Run, &o.Start.Output, &o.Start.Input, &o.Start.Note)
		o.Conversation, o.GivenUp = in.Key(), !o.Background && crashes >= orchestrator.MostCrashes
		return o, err
	}, `SELECT id, agent, account, sandbox, chat, topic, crashes, 0, run, run_output, run_input, run_note
		FROM turns WHERE delivered = 0 AND state = 'running'
		UNION ALL SELECT t.id, t.agent, t.account, t.sandbox, t.chat, t.topic, 0, 1, b.run, b.output, b.input, b.note
		FROM background b JOIN turns t ON t.id = b.turn`)
	return all, wrap("list running turns", err)
}

// LastStart returns the newest turn of a run, and how that turn started. It returns ErrNoTurn for an unknown run.
func (db *DB) LastStart(ctx context.Context, run cli.RunID) (turn cli.TurnID, s cli.Start, err error) {
	s, err = sqlite.One(ctx, db.file, func(row sqlite.Row) (s cli.Start, err error) {
		err = row.Scan(&turn, &s.Run, &s.Output, &s.Input, &s.Note)
		return s, err
	}, `SELECT id, run, run_output, run_input, run_note FROM turns WHERE run = ?
		ORDER BY seq DESC LIMIT 1`, string(run))
	s, err = mapNoRows(s, err, orchestrator.ErrNoTurn)
	return turn, s, wrap(fmt.Sprintf("find the last turn of run %s", run), err)
}
