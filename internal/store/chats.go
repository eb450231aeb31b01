package store

import (
	"cmp"
	"context"
	"fmt"

	"ductor/internal/store/sqlite"
)

// groupTables lists the tables in which MoveChat changes the column chat, after Telegram gave a group a new ID.
// Messages and approvals keep the old ID.
func groupTables() []string {
	return []string{"audit", "changes", "conversations", "jobs", "own_sessions", "rules", "sessions",
		"spent", "turns"}
}

func (db *DB) MoveChat(ctx context.Context, from, to int64) error {
	return wrap(fmt.Sprintf("move chat %d to %d", from, to), db.write(ctx, func(t tx) error {
		for _, table := range groupTables() {
			if _, err := t.Exec(`UPDATE OR IGNORE `+table+` SET chat = ? WHERE chat = ?`, to, from); err != nil {
				return err
			}
		}
		_, err := t.Exec(`INSERT OR IGNORE INTO former_chats (chat, former) VALUES (?, ?)`, to, from)
		return err
	}))
}

// CurrentChat implements heartbeat.Store.
func (db *DB) CurrentChat(ctx context.Context, chat int64) (int64, error) {
	const query = `SELECT chat FROM former_chats WHERE former = ?`
	current, err := sqlite.One(ctx, db.file, sqlite.Value[int64], query, chat)
	current, err = mapNoRows(current, err, nil)
	return cmp.Or(current, chat), wrap(fmt.Sprintf("find the current ID of chat %d", chat), err)
}

// FormerChat returns the ID that a group had before MoveChat, or 0 if it had no other ID.
func (db *DB) FormerChat(ctx context.Context, chat int64) (int64, error) {
	former, err := sqlite.One(ctx, db.file, sqlite.Value[int64], `SELECT former FROM former_chats WHERE chat = ?`, chat)
	former, err = mapNoRows(former, err, nil)
	return former, wrap(fmt.Sprintf("find the former ID of chat %d", chat), err)
}
