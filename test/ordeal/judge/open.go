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
