package store

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// SaveSteps implements orchestrator.StepStore. It does nothing if the turn does not exist any more.
func (db *DB) SaveSteps(ctx context.Context, turn cli.TurnID, at time.Time, steps []orchestrator.Step) error {
	return wrap("save the steps of turn "+string(turn), db.writeShared(ctx, func(t tx) error {
		if _, err := t.Exec(`DELETE FROM steps WHERE turn = ?`, string(turn)); err != nil {
			return err
		}
		return t.saveSteps(turn, at, steps)
	}))
}

func (t tx) saveSteps(turn cli.TurnID, at time.Time, steps []orchestrator.Step) error {
	for _, s := range steps {
		_, err := t.Exec(`INSERT INTO steps (turn, number, at, tool, title, took, exit_code, err, change,
			output, lost, input, said)
			SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM turns
			WHERE id = ?`, s.Number, millis(at), s.Tool, s.Title, int64(s.Duration),
			s.ExitCode, s.Err, string(s.Change), blob([]byte(s.Output)), s.Lost, s.Input, s.Offset, string(turn))
		if err != nil {
			return err
		}
	}
	return nil
}

const stepColumns = `number, tool, title, took, exit_code, err, change, length(output), lost, input, said`

func (db *DB) StepsOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Step, error) {
	all, err := sqlite.Many(ctx, db.file, scanStep,
		`SELECT `+stepColumns+`, x'' FROM steps WHERE turn = ? ORDER BY number`, string(turn))
	return all, wrap("list the steps of turn "+string(turn), err)
}

func (db *DB) Step(ctx context.Context, turn cli.TurnID, number int) (orchestrator.Step, error) {
	s, err := sqlite.One(ctx, db.file, scanStep,
		`SELECT `+stepColumns+`, output FROM steps WHERE turn = ? AND number = ?`, string(turn), number)
	s, err = mapNoRows(s, err, orchestrator.ErrNoStep)
	return s, wrap("load a step of turn "+string(turn), err)
}

func scanStep(row sqlite.Row) (s orchestrator.Step, err error) {
	err = row.Scan(&s.Number, &s.Tool, &s.Title, &s.Duration, &s.ExitCode, &s.Err, &s.Change, &s.Size,
		&s.Lost, &s.Input, &s.Offset, &s.Output)
	return s, err
}

// Steps is the dataset of all steps.
func (db *DB) Steps() heartbeat.Dataset {
	return &dataset{db: db, name: "steps",
		selection: `SELECT seq, at, 100 + length(CAST(title AS BLOB)) + length(CAST(input AS BLOB)) +
			length(output) AS bytes FROM steps`,
		deletion: `DELETE FROM steps WHERE seq IN (SELECT value FROM json_each(?))`}
}

const changesColumns = `id, chat, topic, session, title, at, sandbox, checkpoint, undone, commit_id, trees, files, ` +
	`added, removed, ignored`

func changesFields(c *orchestrator.TurnChanges) []any {
	return []any{&c.ID, &c.Conversation.Chat, &c.Conversation.Topic, &c.Session, &c.Title,
		timeColumn{&c.At}, &c.Sandbox,
		&c.Checkpoint, &c.Undone,
		&c.Commit, listColumn[orchestrator.SnapshotTree]{&c.Snapshot.Trees}, &c.Changed.Files, &c.Changed.Added,
		&c.Changed.Removed, &c.Changed.Ignored}
}

// SaveChanges stores c. If its ID is stored already, it updates only Undone and Commit.
func (db *DB) SaveChanges(ctx context.Context, c orchestrator.TurnChanges) error {
	return wrap("save the changes of "+c.ID, db.write(ctx, func(t tx) error {
		_, err := t.insert("changes", changesColumns, `ON CONFLICT (id) DO UPDATE
			SET undone = excluded.undone, commit_id = excluded.commit_id`, changesFields(&c)...)
		return err
	}))
}

const selectChanges = `SELECT ` + changesColumns + ` FROM changes `

func (db *DB) ChangesOf(ctx context.Context, id string) (orchestrator.TurnChanges, error) {
	c, err := sqlite.One(ctx, db.file, scan(changesFields), selectChanges+`WHERE id = ?`, id)
	c, err = mapNoRows(c, err, orchestrator.ErrNoChanges)
	return c, wrap("load the changes of "+id, err)
}

func (db *DB) ListChanges(
	ctx context.Context, in orchestrator.ConversationID, session orchestrator.SessionID, limit int,
) ([]orchestrator.TurnChanges, error) {
	all, err := sqlite.Many(ctx, db.file, scan(changesFields), selectChanges+`WHERE chat = ? AND topic = ?
		AND (checkpoint = 1 OR session = ?) ORDER BY seq DESC LIMIT ?`,
		in.Chat, in.Topic, string(session), limit)
	return all, wrap("list changes", err)
}

func (db *DB) OldChanges(ctx context.Context, before time.Time, limit int) ([]orchestrator.TurnChanges, error) {
	all, err := sqlite.Many(ctx, db.file, scan(changesFields), selectChanges+`WHERE at < ?
		ORDER BY seq LIMIT ?`, millis(before), limit)
	return all, wrap("list old changes", err)
}

func (db *DB) DeleteChanges(ctx context.Context, id string) error {
	return db.exec(ctx, "delete the changes of "+id, db.write, `DELETE FROM changes WHERE id = ?`, id)
}
