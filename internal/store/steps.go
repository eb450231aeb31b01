package store

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// SaveSteps stores the steps of a turn, in place of those it has. It shares a transaction. A turn that is gone has none.
func (db *DB) SaveSteps(ctx context.Context, turn cli.TurnID, at time.Time, steps []orchestrator.Step) error {
	return wrap("save the steps of turn "+string(turn), db.share(ctx, func(t tx) error {
		if _, err := t.Exec(`DELETE FROM steps WHERE turn = ?`, string(turn)); err != nil {
			return err
		}
		for _, s := range steps {
			_, err := t.Exec(`INSERT INTO steps (turn, number, at, tool, title, took, exit_code, err, change, output, lost)
				SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM turns WHERE id = ?`, s.Number, millis(at), s.Tool, s.Title, int64(s.Duration),
				s.ExitCode, s.Err, string(s.Change), blob([]byte(s.Output)), s.Lost, string(turn))
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

const stepColumns = `number, tool, title, took, exit_code, err, change, length(output), lost`

// StepsOf lists the steps of a turn without their outputs.
func (db *DB) StepsOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Step, error) {
	all, err := sqlite.Many(ctx, db.file, scanStep, `SELECT `+stepColumns+`, x'' FROM steps WHERE turn = ? ORDER BY number`, string(turn))
	return all, wrap("list the steps of turn "+string(turn), err)
}

// Step is a step with its output; ErrNoStep.
func (db *DB) Step(ctx context.Context, turn cli.TurnID, number int) (orchestrator.Step, error) {
	s, err := sqlite.One(ctx, db.file, scanStep, `SELECT `+stepColumns+`, output FROM steps WHERE turn = ? AND number = ?`, string(turn), number)
	s, err = known(s, err, orchestrator.ErrNoStep)
	return s, wrap("load a step of turn "+string(turn), err)
}

func scanStep(row sqlite.Row) (s orchestrator.Step, err error) {
	err = row.Scan(&s.Number, &s.Tool, &s.Title, &s.Duration, &s.ExitCode, &s.Err, &s.Change, &s.Size, &s.Lost, &s.Output)
	return s, err
}

// Steps is the heartbeat.Shelf of what agents did in turns.
func (db *DB) Steps() heartbeat.Shelf {
	return &shelf{db: db, what: "steps",
		all:  `SELECT seq, at, 100 + length(CAST(title AS BLOB)) + length(output) AS bytes FROM steps`,
		trim: `DELETE FROM steps WHERE seq IN (SELECT value FROM json_each(?))`}
}

const changesColumns = `id, chat, topic, session, title, at, sandbox, checkpoint, undone, commit_id, trees, files, added, removed, ignored`

func changesFields(c *orchestrator.TurnChanges) []any {
	return []any{&c.ID, &c.Conversation.Chat, &c.Conversation.Topic, &c.Session, &c.Title, moment{&c.At}, &c.Sandbox, &c.Checkpoint, &c.Undone,
		&c.Commit, list[orchestrator.SnapshotTree]{&c.Snapshot.Trees}, &c.Changed.Files, &c.Changed.Added, &c.Changed.Removed, &c.Changed.Ignored}
}

// SaveChanges stores what a turn changed, or a checkpoint, in place of what has its id.
func (db *DB) SaveChanges(ctx context.Context, c orchestrator.TurnChanges) error {
	return wrap("save the changes of "+c.ID, db.write(ctx, func(t tx) error {
		_, err := t.insert("changes", changesColumns, `ON CONFLICT (id) DO UPDATE SET undone = excluded.undone, commit_id = excluded.commit_id`, changesFields(&c)...)
		return err
	}))
}

const selectChanges = `SELECT ` + changesColumns + ` FROM changes `

// ChangesOf gives what a turn changed, or a checkpoint; ErrNoChanges.
func (db *DB) ChangesOf(ctx context.Context, id string) (orchestrator.TurnChanges, error) {
	c, err := sqlite.One(ctx, db.file, scan(changesFields), selectChanges+`WHERE id = ?`, id)
	c, err = known(c, err, orchestrator.ErrNoChanges)
	return c, wrap("load the changes of "+id, err)
}

// ListChanges lists what is kept of a session and the checkpoints of its conversation, newest first.
func (db *DB) ListChanges(ctx context.Context, in orchestrator.ConversationID, session orchestrator.SessionID, limit int) ([]orchestrator.TurnChanges, error) {
	all, err := sqlite.Many(ctx, db.file, scan(changesFields), selectChanges+`WHERE chat = ? AND topic = ? AND (checkpoint = 1 OR session = ?) ORDER BY seq DESC LIMIT ?`,
		in.Chat, in.Topic, string(session), limit)
	return all, wrap("list changes", err)
}

// OldChanges lists what was stored before a moment, oldest first.
func (db *DB) OldChanges(ctx context.Context, before time.Time, limit int) ([]orchestrator.TurnChanges, error) {
	all, err := sqlite.Many(ctx, db.file, scan(changesFields), selectChanges+`WHERE at < ? ORDER BY seq LIMIT ?`, millis(before), limit)
	return all, wrap("list old changes", err)
}

// DeleteChanges forgets what a turn changed, or a checkpoint.
func (db *DB) DeleteChanges(ctx context.Context, id string) error {
	return db.run(ctx, "forget the changes of "+id, db.write, `DELETE FROM changes WHERE id = ?`, id)
}
