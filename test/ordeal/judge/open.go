package judge

import (
	"database/sql"
	"fmt"

	"ductor/internal/sim/telegram"
)

// OpenIn returns the chats with an open approval or question in ductor's database.
func OpenIn(db *sql.DB) (map[telegram.ChatID]bool, error) {
	rows, err := db.Query(`SELECT DISTINCT chat FROM asks WHERE state = 'open'`)
	if err != nil {
		return nil, fmt.Errorf("list the chats of open approvals: %w", err)
	}
	defer rows.Close()
	open := map[telegram.ChatID]bool{}
	for rows.Next() {
		var chat telegram.ChatID
		if err := rows.Scan(&chat); err != nil {
			return nil, fmt.Errorf("list the chats of open approvals: %w", err)
		}
		open[chat] = true
	}
	return open, rows.Err()
}

// OwedIn returns the keys of the messages that ductor's database still has to be sent or changed.
func OwedIn(db *sql.DB) (keys []string, err error) {
	rows, err := db.Query(`SELECT key FROM messages WHERE content IS NOT NULL ORDER BY key`)
	if err != nil {
		return nil, fmt.Errorf("list owed messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, fmt.Errorf("list owed messages: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}
