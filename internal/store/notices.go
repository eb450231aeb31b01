package store

import (
	"context"
	"fmt"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const noticeColumns = `id, chat, topic, content, state, message`

// openNotices repeats the condition of the index notices_open: SQLite uses a partial index only where the
// query says so, and notices that went out may be many.
const openNotices = ` AND state IN ('pending', 'sending')`

// PostNotice queues a notice that no update caused, and returns its id. It is pending, whatever n.State says.
func (db *DB) PostNotice(ctx context.Context, n orchestrator.Notice) (int64, error) {
	var id int64
	now := millis(db.now())
	err := db.write(ctx, func(t tx) (err error) {
		id, err = t.post(n, now)
		return err
	})
	return id, wrap("post notice", err)
}

func (t tx) post(n orchestrator.Notice, now int64) (int64, error) {
	return t.Insert(`INSERT INTO notices (chat, topic, content, state, moved) VALUES (?, ?, ?, 'pending', ?)`,
		n.Conversation.Chat, n.Conversation.Topic, blob(n.Content), now)
}

// PendingNotices lists notices not yet tried, in order of id.
func (db *DB) PendingNotices(ctx context.Context) ([]orchestrator.Notice, error) {
	all, err := sqlite.Many(ctx, db.file, scanNotice,
		`SELECT `+noticeColumns+` FROM notices WHERE state = 'pending'`+openNotices+` ORDER BY id`)
	return all, wrap("list pending notices", err)
}

// MoveNotice records a notice's state and its message, both as given. A notice that is not there is an error.
func (db *DB) MoveNotice(ctx context.Context, id int64, state orchestrator.SendState, message int) error {
	now := millis(db.now())
	err := db.write(ctx, func(t tx) error {
		rows, err := t.Exec(`UPDATE notices SET state = ?, message = ?, moved = ? WHERE id = ?`,
			string(state), message, now, id)
		if err == nil && rows == 0 {
			err = fmt.Errorf("there is no notice %d", id)
		}
		return err
	})
	return wrap(fmt.Sprintf("move notice %d to %s", id, state), err)
}

// LostNotices moves notices found in Sending (ductor died while they were on their way) to Unknown and
// returns them in order of id. Call it once, at start.
func (db *DB) LostNotices(ctx context.Context) ([]orchestrator.Notice, error) {
	var lost []orchestrator.Notice
	now := millis(db.now())
	err := db.write(ctx, func(t tx) error {
		var err error
		lost, err = sqlite.ManyIn(t.Tx, scanNotice, `SELECT `+noticeColumns+` FROM notices WHERE state = 'sending'`+openNotices+` ORDER BY id`)
		if err != nil || len(lost) == 0 {
			return err
		}
		_, err = t.Exec(`UPDATE notices SET state = 'unknown', moved = ? WHERE state = 'sending'`+openNotices, now)
		return err
	})
	if err != nil {
		return nil, wrap("find lost notices", err)
	}
	for i := range lost {
		lost[i].State = orchestrator.Unknown
	}
	return lost, nil
}

func scanNotice(row sqlite.Row) (n orchestrator.Notice, err error) {
	err = row.Scan(&n.ID, &n.Conversation.Chat, &n.Conversation.Topic, &n.Content, &n.State, &n.Message)
	return n, err
}
