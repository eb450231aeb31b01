package store

import (
	"context"
	"fmt"
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
		return nil
	}))
}
